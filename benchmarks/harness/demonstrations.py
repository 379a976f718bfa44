"""Motions of a task as demonstrations for a policy: planned, with starts and targets varied."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kv_action_router.contracts import FloatArray, Pose
from kv_action_router.errors import SynthesisError
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.policy import Observation
from kv_action_router.synthesis.replan import ReplanSource
from kv_action_router.synthesis.source import PlanRequest
from kv_action_router.synthesis.spline import MotionState
from kv_action_router.tasks.definition import load_task

POINTS = 24  # of a demonstration, equally far apart in time
START_NOISE = 0.01  # [rad] the arm is never exactly where the last stage was to end
DEPTH = (0.005, 0.015)  # [m] below the target's face where a touch may have ended


@dataclass(frozen=True)
class Demonstrations:
    """What a policy learns from, a row a motion.

    Attributes:
        stages: names, in the order of the task.
        condition: stage as one-hot, start [rad], target x, y, z [m] (k, s + n + 3).
        motion: way-points relative to the start [rad], and the duration [s] (k, POINTS n + 1).
    """

    stages: tuple[str, ...]
    condition: FloatArray
    motion: FloatArray


def condition_of(stages: tuple[str, ...], seen: Observation) -> FloatArray:
    """Return what a policy is told as numbers (s + n + 3,)."""
    stage = np.array([float(name == seen.stage) for name in stages])
    target = np.zeros(3) if seen.target is None else np.asarray(seen.target.position)
    return np.concatenate((stage, seen.position, target))


def demonstrate(task: str, config: SimulationConfig, tasks: int, seed: int) -> Demonstrations:
    """Plan a task's stages for random targets in the cell.

    Args:
        task: name or file.
        config: of the cell.
        tasks: to plan.
        seed: of targets and starts.
    """
    robot = RobotModel.load(config.robot)
    synthesis, definition = SynthesisConfig(), load_task(task)
    planner = ReplanSource(robot, synthesis)
    generator = np.random.default_rng(seed)
    names = tuple(stage.name for stage in definition.stages)
    conditions, motions = [], []
    while len(conditions) < tasks * len(names):
        place = generator.uniform((config.target_x[0], config.target_y[0]),
                                  (config.target_x[1], config.target_y[1]))  # fmt: skip
        target = Pose(np.array([*place, config.target_height]))
        start = np.array(robot.home)
        rows = []
        try:
            for stage in definition.stages:
                start = start + generator.normal(0.0, START_NOISE, robot.n)
                acted_on = target if stage.needs_target else None
                request = PlanRequest(stage, MotionState.at_rest(start), acted_on, np.zeros((0, 4)))
                motion = planner.plan(request)
                times = np.linspace(0.0, motion.duration, POINTS)
                way = motion.derivative(times, 0)
                seen = Observation(stage.name, start, np.zeros(robot.n), acted_on, np.zeros((0, 4)))
                rows.append((condition_of(names, seen), way - start, motion.duration))
                start = way[-1]
                if stage.needs_target and not stage.needs_image:  # a touch ends on contact
                    start = way[int(generator.integers(POINTS // 2, POINTS))]
        except SynthesisError:
            continue  # out of reach
        for condition, way, duration in rows:
            conditions.append(condition)
            motions.append(np.append(way.ravel(), duration))
    return Demonstrations(names, np.array(conditions), np.array(motions))
