"""Ways from a start to a perceived target, on one problem each: ours, and what users know.

All share the robot's model, inverse kinematics and collision test, so that only the planning
differs. Each returns a motion at equal steps, (k, n) positions [rad], and its duration [s].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kv_action_router.contracts import FloatArray, Pose
from kv_action_router.errors import RouterError
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.clearance import Clearance
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.replan import ReplanSource
from kv_action_router.synthesis.source import PlanRequest
from kv_action_router.synthesis.spline import MotionState
from kv_action_router.tasks.stages import StageDefinition, TargetGoal

STEPS = 200
_HEIGHT = 0.06  # [m] of the tip above the target
_RRT_S = 1.0  # time that RRTConnect gets
_SIMPLIFY_S = 0.05
_RESOLUTION = 0.01  # of the space's extent, between two checked states
_VELOCITY, _ACCELERATION, _JERK = 1.875, 5.7735, 60.0  # peaks of a quintic from rest to rest


@dataclass(frozen=True)
class Problem:
    """From joint positions at rest [rad] (n,) to above a target [m] (3,), past spheres (k, 4)."""

    start: FloatArray
    target: FloatArray
    obstacles: FloatArray


class Trajectory(NamedTuple):
    """Positions at equal steps [rad] (k, n) and the whole duration [s]."""

    positions: FloatArray
    duration: float


Planner = Callable[[Problem], Trajectory]


class Cell:
    """Robot, limits and collision test that all planners share."""

    def __init__(self) -> None:
        self.config = SynthesisConfig()
        self.model = RobotModel.load("ur5e")
        self.collision = self.model.collision_model(self.config.table_plane)
        self.velocity = self.model.velocity_limit * self.config.velocity_share
        self.acceleration = self.model.acceleration_limit * self.config.acceleration_share
        self.jerk = self.model.jerk_limit * self.config.jerk_share
        self.stage = StageDefinition(
            "approach",
            "approach_v1",
            TargetGoal(np.array([0.0, 0.0, _HEIGHT])),
            (),
            needs_target=True,
        )

    def touches(self, path: FloatArray, obstacles: FloatArray) -> bool:
        """Return whether any configuration of a path (k, n) would touch, padding included."""
        padding = self.config.collision_padding
        return self.collision.first_collision(path, obstacles, padding) is not None

    def goal(self, problem: Problem) -> FloatArray:
        """Return joint positions above the target, tool down (n,).

        Raises:
            UnreachableError: there are none inside the limits.
        """
        place = problem.target + np.array([0.0, 0.0, _HEIGHT])
        return self.model.solve_ik(place, None, problem.start)


def problems(cell: Cell, count: int, seed: int = 1) -> list[Problem]:
    """Return problems whose start touches nothing: targets on the table, a few things beside it."""
    generator = np.random.default_rng(seed)
    found = []
    while len(found) < count:
        start = cell.model.home + generator.uniform(-0.3, 0.3, cell.model.n)
        target = np.array([generator.uniform(0.36, 0.56), generator.uniform(-0.15, 0.15), 0.01])
        spheres = np.column_stack(
            (
                generator.uniform(0.2, 0.7, 8),
                np.sign(generator.uniform(-1.0, 1.0, 8)) * generator.uniform(0.3, 0.5, 8),
                generator.uniform(0.03, 0.3, 8),
                np.full(8, 0.03),
            )
        )
        if not cell.touches(start[None, :], spheres):
            found.append(Problem(start, target, spheres))
    return found


def replan(cell: Cell) -> Planner:
    """Return our miss path: the source of motions that the synthesizer asks."""
    source = ReplanSource(cell.model, cell.config, Clearance(cell.model, cell.config))

    def plan(problem: Problem) -> Trajectory:
        motion = source.plan(
            PlanRequest(
                cell.stage,
                MotionState.at_rest(problem.start),
                Pose(problem.target),
                problem.obstacles,
            )
        )
        times = np.linspace(0.0, motion.duration, STEPS)
        return Trajectory(motion.derivative(times, 0), motion.duration)

    return plan


def quintic(cell: Cell) -> Planner:
    """Return inverse kinematics and a polynomial of degree 5 from rest to rest; nothing is tested.

    The peaks of s(u) = 10 u^3 - 15 u^4 + 6 u^5 are 1.875, 10 / sqrt(3) and 60.
    """

    def plan(problem: Problem) -> Trajectory:
        way = cell.goal(problem) - problem.start
        size = np.abs(way)
        duration = max(
            float((_VELOCITY * size / cell.velocity).max()),
            float(np.sqrt(_ACCELERATION * size / cell.acceleration).max()),
            float(np.cbrt(_JERK * size / cell.jerk).max()),
        )
        u = np.linspace(0.0, 1.0, STEPS)
        share = u**3 * (10.0 + u * (6.0 * u - 15.0))
        return Trajectory(problem.start + share[:, None] * way, duration)

    return plan


def rrt_connect(cell: Cell) -> Planner:
    """Return OMPL's RRTConnect, simplified, timed by TOPP-RA inside velocity and acceleration.

    Raises:
        ImportError: ``make bench`` installs both.
    """
    from ompl import base, geometric, util
    from toppra import constraint  # noqa: F401  # the module is asked for below

    util.setLogLevel(util.LogLevel.LOG_NONE)
    model = cell.model
    space = base.RealVectorStateSpace(model.n)
    bounds = base.RealVectorBounds(model.n)
    for joint in range(model.n):
        bounds.setLow(joint, max(-6.2, float(model.lower[joint])))
        bounds.setHigh(joint, min(6.2, float(model.upper[joint])))
    space.setBounds(bounds)

    def state(positions: FloatArray) -> Any:
        made = space.allocState()
        for joint, value in enumerate(positions.tolist()):
            made[joint] = value
        return made

    def plan(problem: Problem) -> Trajectory:
        setup = geometric.SimpleSetup(space)
        joints = range(model.n)

        def is_free(at: Any) -> bool:
            here = np.array([[at[joint] for joint in joints]])
            return not cell.touches(here, problem.obstacles)

        setup.setStateValidityChecker(is_free)
        information = setup.getSpaceInformation()
        information.setStateValidityCheckingResolution(_RESOLUTION)
        setup.setPlanner(geometric.RRTConnect(information))
        setup.setStartAndGoalStates(state(problem.start), state(cell.goal(problem)))
        setup.solve(_RRT_S)
        if not setup.haveExactSolutionPath():
            raise PlanningError(f"no path within {_RRT_S} s")
        setup.simplifySolution(_SIMPLIFY_S)
        path = setup.getSolutionPath()
        points = [path.getState(at) for at in range(path.getStateCount())]
        return timed(cell, np.array([[point[joint] for joint in joints] for point in points]))

    return plan


class PlanningError(RouterError):
    """A planner that is compared with ours has found nothing."""

    error_code = 9


def timed(cell: Cell, points: FloatArray) -> Trajectory:
    """Return the time-optimal motion along a spline through points (k, n) (TOPP-RA).

    Raises:
        PlanningError: there is none.
    """
    from toppra import SplineInterpolator
    from toppra.algorithm import TOPPRA
    from toppra.constraint import JointAccelerationConstraint, JointVelocityConstraint

    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    places = np.concatenate([[0.0], np.cumsum(np.maximum(lengths, 1e-6))])
    path = SplineInterpolator(places, points)
    limits = [
        JointVelocityConstraint(np.column_stack((-cell.velocity, cell.velocity))),
        JointAccelerationConstraint(np.column_stack((-cell.acceleration, cell.acceleration))),
    ]
    motion = TOPPRA(limits, path).compute_trajectory()
    if motion is None:
        raise PlanningError("the path cannot be timed inside the limits")
    times = np.linspace(0.0, motion.duration, STEPS)
    return Trajectory(motion(times), float(motion.duration))
