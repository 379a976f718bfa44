"""Motions that press: set-points beside where the tip is, by what the arm's springs ask for.

Without their integral part the drives of an arm are springs: a joint that is held back by dq gives
the torque kp dq. A force F at the tip is the torques J^T F, so a set-point that is kp^-1 J^T F
beside the measured joint positions presses with F, in its direction and in no other. (A set-point
straight below the tip would not: the arm's compliance has no axes of its own, the tip would slide.)
"""

from __future__ import annotations

import math

import numpy as np

from kv_action_router.contracts import SLOT, CacheMatch, FloatArray
from kv_action_router.errors import (
    ConfigError,
    LimitError,
    PlanPendingError,
    TaskDefinitionError,
)
from kv_action_router.robots.execution_values import load_execution_value
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.basis import basis
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.reanchor import slow
from kv_action_router.synthesis.retime import load_of, within
from kv_action_router.synthesis.spline import Motion, MotionState, fit_motion
from kv_action_router.tasks.stages import PressGoal, SearchGoal, TurnGoal

PRESSING = 0.25  # [s] in which the press is built up
WINDING = 14  # coefficients a winding of a spiral
ATTEMPTS = 8
SLOWER = 1.25
_DAMPING = 1.0e-8
_RELIEVING = 4  # steps to where a set-point presses; each is a hundredth of the one before


class Pressing:
    """Plans what presses, searches and turns. Not thread safe."""

    def __init__(self, model: RobotModel) -> None:
        """Make a planner; a robot without execution values is refused when it is to press."""
        self._model = model
        self._compliance: FloatArray | None = None

    def pressed(self, place: FloatArray, press: float) -> FloatArray:
        """Return the set-point (n,) at which a tip that is held at ``place`` (n,) presses [N].

        Raises:
            ConfigError: there are no execution values for this robot.
        """
        jacobian = np.array(self._model.jacobian(place))
        axis = self._model.forward(place)[1][:, 2]
        return np.asarray(place + self._gains() * (jacobian[:3].T @ (axis * press)))

    def relieved(self, setpoint: FloatArray, press: float) -> FloatArray:
        """Return the joint positions (n,) that a set-point (n,) presses at; see :meth:`pressed`.

        Raises:
            ConfigError: there are no execution values for this robot.
        """
        place = setpoint
        for _ in range(_RELIEVING if press else 0):
            place = place + setpoint - self.pressed(place, press)
        return place

    def end(
        self,
        goal: PressGoal,
        start: FloatArray,
        measured: FloatArray,
        sent: FloatArray | None = None,
    ) -> FloatArray:
        """Return the joint positions (n,) that a motion ends at.

        Args:
            goal: of the stage.
            start: set-point that it begins at [rad] (n,).
            measured: joint positions, in contact [rad] (n,).
            sent: where the tip should be across the tool [m] (3,); None = where it is.

        Raises:
            TaskDefinitionError: the joint to turn is no spindle of this robot.
            ConfigError: there are no execution values for this robot.
        """
        model = self._model
        jacobian = np.array(model.jacobian(measured))
        axis = model.forward(measured)[1][:, 2]
        way = np.array(goal.offset, dtype=float)
        if isinstance(goal, TurnGoal):
            way += axis * (goal.pitch * abs(goal.turns))
        end = self.pressed(measured, goal.press) + _moved(jacobian, way)
        if isinstance(goal, SearchGoal):
            around = _spiral(goal, np.ones(1))[0]
            if sent is not None:  # the tip has slid since it stands on something
                slid = sent - model.forward(measured)[0]
                around += slid - (slid @ axis) * axis
            end += _moved(jacobian, around)
        end = np.where(model.spindles, measured, end)
        if isinstance(goal, TurnGoal):
            joint = self._spindle(goal)
            end[joint] = start[joint] + goal.turns * math.tau
        return end

    def carried(self, motion: Motion, place: FloatArray, end: FloatArray) -> Motion:
        """Return a motion in contact that goes the same way across the work-piece, elsewhere.

        The same joint motion at another place is another way of the tip: a spiral becomes an oval,
        and its windings pass beside what they were to pass over. So the joints' ways become the
        tip's by the Jacobian of the motion's own start, and the joints' again by that of the place.

        Args:
            motion: as it is stored; spindles keep theirs.
            place: joint positions where it is to go [rad] (n,).
            end: where it ends there [rad] (n,); the whole motion is laid there.
        """
        model = self._model
        arm = ~model.spindles
        ways = motion.coefficients - motion.start
        tip = ways[:, arm] @ np.array(model.jacobian(motion.start))[:, arm].T
        ways[:, arm] = (tip @ _inverse(np.array(model.jacobian(place))).T)[:, arm]
        return Motion(motion.knots, ways + (end - ways[-1]))

    def plan(
        self,
        goal: PressGoal,
        start: MotionState,
        measured: FloatArray,
        limits: MotionLimits,
        sent: FloatArray | None = None,
    ) -> Motion:
        """Return a motion from a start state; arguments as of :meth:`end`.

        Raises:
            TaskDefinitionError, ConfigError: as :meth:`end`.
            PlanPendingError: it does not fit to a start in motion: ask again.
            LimitError: it does not fit into the joints' limits.
        """
        end = self.end(goal, start.position, measured, sent)
        size = _size(goal)
        duration = self._duration(goal)
        # Share of the motion in which the press is built up.
        pressed = 1.0 if goal.rate else PRESSING / duration
        shares = basis(size).samples
        for _ in range(ATTEMPTS):
            path = self._path(goal, start.position, end, shares, pressed)
            motion = fit_motion(path, start, MotionState.at_rest(end), duration, size)
            if within(load_of(motion, limits)):
                return motion
            duration *= SLOWER
        if not slow(start):
            raise PlanPendingError("the motion before comes to rest first")
        raise LimitError(f"{type(goal).__name__} does not fit into the joints' limits")

    def _duration(self, goal: PressGoal) -> float:
        if isinstance(goal, SearchGoal):
            return PRESSING + math.pi * goal.radius**2 / (goal.pitch * goal.speed)
        if isinstance(goal, TurnGoal):
            return PRESSING + abs(goal.turns) * math.tau / goal.speed
        return max(PRESSING, abs(goal.press) / goal.rate) if goal.rate else PRESSING

    def _path(
        self,
        goal: PressGoal,
        start: FloatArray,
        end: FloatArray,
        shares: FloatArray,
        pressed: float,
    ) -> FloatArray:
        """Return joint positions (m, n) at shares of the duration (m,)."""
        built = _smooth(np.minimum(shares / pressed, 1.0))[:, None]
        if isinstance(goal, SearchGoal):
            jacobian = np.array(self._model.jacobian(start))
            center = end - _moved(jacobian, _spiral(goal, np.ones(1))[0])
            wound = _moved(jacobian, _spiral(goal, shares))
            return np.asarray(start + built * (center - start) + wound)
        if isinstance(goal, TurnGoal):
            # The press first, then what is driven in and turned, evenly.
            even = _ramped(shares, min(0.4, pressed))[:, None]
            joint = self._spindle(goal)
            path = start + np.minimum(1.0, 0.5 * (built + even)) * (end - start)
            path[:, joint] = (start + even * (end - start))[:, joint]
            return np.asarray(path)
        return np.asarray(start + built * (end - start))

    def _spindle(self, goal: TurnGoal) -> int:
        model = self._model
        names = [
            name for name, is_one in zip(model.joint_names, model.spindles, strict=True) if is_one
        ]
        for index, name in enumerate(model.joint_names):
            if name in names and name.endswith(goal.joint):
                return index
        raise TaskDefinitionError(
            f"turn: joint must be a spindle of the robot ({', '.join(names) or 'it has none'}),"
            f" got {goal.joint!r}"
        )

    def _gains(self) -> FloatArray:
        """Return the joints' compliance [rad/(N m)] (n,)."""
        if self._compliance is None:
            model = self._model
            value = load_execution_value(model.name)
            rows = []
            for name in model.joint_names:
                row = next(
                    (i for i, drive in enumerate(value.drives) if name.endswith(drive)), None
                )
                if row is None:
                    raise ConfigError("execution_values", f"with {name}", value.drives)
                rows.append(float(value.slots[row, SLOT["proportional_gain"]]))
            self._compliance = 1.0 / np.maximum(np.array(rows), 1.0e-9)
        return self._compliance


def measured_in(match: CacheMatch | None, model: RobotModel, start: MotionState) -> FloatArray:
    """Return where a match's joints were [rad] (n,); not measured = where the motion starts."""
    if match is None or not len(match.joints.names):
        return start.position
    order = model.order(match.joints.names)
    return np.asarray(match.joints.position, dtype=float)[order]


def spindle_end(model: RobotModel, end: FloatArray, measured: FloatArray) -> FloatArray:
    """Return an end (n,) at which spindles stand where they are measured: they turn nothing."""
    return np.where(model.spindles, measured, end) if model.spindles.any() else end


def _moved(jacobian: FloatArray, ways: FloatArray) -> FloatArray:
    """Return the joints' ways (m, n) that move the tip by ways (m, 3) [m] and do not turn it."""
    return np.asarray(ways @ _inverse(jacobian)[:, :3].T)


def _inverse(jacobian: FloatArray) -> FloatArray:
    """Return the damped pseudo-inverse (n, 6) of a Jacobian (6, n)."""
    normal = jacobian @ jacobian.T
    normal.flat[:: len(normal) + 1] += _DAMPING
    return np.asarray(np.linalg.solve(normal, jacobian).T)


def _spiral(goal: SearchGoal, shares: FloatArray) -> FloatArray:
    """Return the way from the middle (m, 3) [m], at nearly the same speed all along."""
    angle = math.tau * goal.radius / goal.pitch * shares**0.6
    radius = goal.pitch / math.tau * angle
    return np.column_stack((radius * np.cos(angle), radius * np.sin(angle), 0.0 * angle))


def _smooth(share: FloatArray) -> FloatArray:
    return np.asarray(share**3 * (10.0 - 15.0 * share + 6.0 * share**2))


def _ramped(shares: FloatArray, ramp: float) -> FloatArray:
    """Return an even way that speeds up and slows down over a share ``ramp`` of it each."""
    fine = np.linspace(0.0, 1.0, 400)
    speed = _smooth(np.minimum(fine, 1.0 - fine) / ramp * (fine >= 0.0)).clip(0.0, 1.0)
    speed[(fine > ramp) & (fine < 1.0 - ramp)] = 1.0
    way = np.concatenate(([0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1]))))
    return np.asarray(np.interp(shares, fine, way / way[-1]))


def _size(goal: PressGoal) -> int:
    if isinstance(goal, SearchGoal):
        return min(100, 16 + math.ceil(goal.radius / goal.pitch) * WINDING)
    return 28
