"""The full replan: inverse kinematics and a jerk-limited motion to the perceived target."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import LimitError
from kv_action_router.robots.model import RobotModel
from kv_action_router.robots.turns import whole_turns
from kv_action_router.synthesis.basis import basis
from kv_action_router.synthesis.clearance import Clearance
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.detour import Detours
from kv_action_router.synthesis.goal import goal_configuration, tip_goal, tool_down_at
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.line import LinePath, PressedLine, distance_from_line
from kv_action_router.synthesis.pressing import Pressing, measured_in, spindle_end
from kv_action_router.synthesis.progress import StateToState
from kv_action_router.synthesis.reanchor import faded, joined, slow
from kv_action_router.synthesis.retime import load_of, slow_down, within
from kv_action_router.synthesis.source import PlanRequest
from kv_action_router.synthesis.spline import Motion, MotionState, fit_motion
from kv_action_router.tasks.stages import PressGoal, TargetGoal

ATTEMPTS = 5
CALMER = 0.64  # factor on the speed of a line that left the limits
# A spline fitted to the fastest way rings where that way's jerk steps. So these shares of the
# limits are planned with first, and less of the limit that was left.
FIT_SPEED, FIT_RATE, FIT_JERK = 0.99, 0.97, 0.5
RINGING = 1.02  # share of the speed limit
SHORTEST = 0.05  # [s] tried first for a way without a cruise
SHORTEST_CRUISE = 0.01  # [s]
SHORTEST_LINE = 1.0e-4  # [m]
LINE_CHECKS = np.array([0.2, 0.35, 0.5, 0.65, 0.8])  # shares of the duration


class ReplanSource:
    """A ``BehaviorSource`` that plans from nothing but the robot's model. Not thread safe."""

    def __init__(
        self,
        model: RobotModel,
        config: SynthesisConfig,
        clearance: Clearance | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Make a planner.

        Args:
            model: of the robot.
            config: of the stage.
            clearance: tests motions; None = nothing is tested.
            clock: CLOCK_MONOTONIC [ns], which ends the search for a way around.
        """
        self._model = model
        self._config = config
        self._clearance = clearance
        self._detours = None if clearance is None else Detours(model, config, clearance, clock)
        self._limits = MotionLimits.of(model)
        self._pressing = Pressing(model)
        self._scaled: dict[float, MotionLimits] = {}
        self._joints = StateToState(model.n)
        self._line = StateToState(1)
        basis(config.coefficients)  # made now, not in the first decision

    def plan(self, request: PlanRequest) -> Motion:
        """Return a motion from the request's start state to its stage's goal.

        Raises:
            UnreachableError: the goal can't be reached inside the position limits.
            LimitError: no motion keeps the limits.
            CollisionError: the motion would touch something, and no way around was found.
        """
        calm = self._stage_limits(request.stage.velocity_scale)
        limits = calm.leaving(request.start.velocity, request.start.acceleration)
        limits.check_positions(request.start.position[None, :])
        tip = tip_goal(request.stage, request.target)
        if isinstance(request.stage.goal, PressGoal):
            measured = measured_in(request.match, self._model, request.start)
            motion = self._pressing.plan(request.stage.goal, request.start, measured, limits, tip)
            if self._clearance is not None:
                self._clearance.check(motion, request)
            return motion
        if isinstance(request.stage.goal, TargetGoal) and request.stage.goal.line:
            assert tip is not None
            motion = self._straight(request, tip, request.stage.goal, calm, limits)
            if self._clearance is not None:
                self._clearance.check(motion, request)
            return motion
        if tip is None:
            goal = goal_configuration(request.stage, self._model)
        else:
            goal = self._model.solve_ik(tip, None, request.start.position)
        goal = spindle_end(
            self._model, goal, measured_in(request.match, self._model, request.start)
        )
        motion = self._free(request.start, goal, calm, limits)
        if self._clearance is None or self._detours is None:
            return motion
        touch = self._clearance.first_touch(motion, request)
        if touch is None:
            return motion
        return self._detours.around(request, motion.end, limits, touch)

    def _stage_limits(self, scale: float) -> MotionLimits:
        """Return the planning limits of stages with a velocity scale."""
        limits, config = self._scaled.get(scale), self._config
        if limits is None:
            limits = self._scaled[scale] = self._limits.scaled(
                config.velocity_share * scale,
                config.acceleration_share * scale,
                config.jerk_share * scale,
            )
        return limits

    def _free(
        self, start: MotionState, goal: FloatArray, calm: MotionLimits, limits: MotionLimits
    ) -> Motion:
        """Plan in joint space, as fast as the limits allow.

        Args:
            start, goal: of the motion.
            calm: what a motion from rest keeps.
            limits: what this one must keep; the same, or wider when it leaves another motion.
        """
        shifting = self._model.continuous & ~self._model.spindles
        turned = goal + whole_turns(goal, start.position, shifting)
        size = self._config.coefficients
        samples = basis(size).samples
        speed, rate, jerk, duration = FIT_SPEED, FIT_RATE, FIT_JERK, 0.0
        for _ in range(ATTEMPTS):
            tried = dataclasses.replace(
                calm,
                velocity=np.maximum(calm.velocity * speed, np.abs(start.velocity)),
                acceleration=np.maximum(calm.acceleration * rate, np.abs(start.acceleration)),
                jerk=limits.jerk * jerk,
            )
            duration = self._joints.solve(start, turned, tried)
            if duration < SHORTEST_CRUISE:
                break
            end = MotionState.at_rest(turned)
            motion = fit_motion(self._joints.positions(samples), start, end, duration, size)
            load = load_of(motion, limits)
            if within(load):
                return motion
            if load.velocity > RINGING and not start.acceleration.any():
                # The spline cannot follow so short a ramp to the cruise; one that ends another
                # motion must be short.
                rate, jerk = 0.5 * rate, 0.25 * jerk
                continue
            speed *= min(1.0, FIT_SPEED / load.velocity)
            rate *= min(1.0, FIT_RATE / load.acceleration)
            jerk *= min(1.0, FIT_RATE / load.jerk)
        return self._short(start, turned, limits, max(duration, SHORTEST))

    def _short(
        self, start: MotionState, goal: FloatArray, limits: MotionLimits, duration: float
    ) -> Motion:
        """Plan the least-jerk polynomial, for ways that are too short to have a cruise."""
        shape = Motion.uniform(np.tile(goal, (self._config.coefficients, 1)), 1.0)
        return slow_down(lambda length: joined(shape, start, goal, length), duration, limits)

    def _straight(
        self,
        request: PlanRequest,
        tip: FloatArray,
        goal: TargetGoal,
        calm: MotionLimits,
        limits: MotionLimits,
    ) -> Motion:
        """Plan a straight line of the tip, tool down, at a limited speed; at its end it presses."""
        start = request.start
        model, config, size = self._model, self._config, self._config.coefficients
        first, turned = model.forward(start.position)
        rotation = tool_down_at(turned)
        line = LinePath(model, start.position, tip, rotation)
        line.end = spindle_end(
            model, line.end, measured_in(request.match, self._model, request.start)
        )
        path = self._pressed(line, goal.press)
        if line.length < SHORTEST_LINE:
            return self._free(start, path.end, calm, limits)
        samples = basis(size).samples
        direction = (tip - first) / line.length
        speed = float((model.jacobian(start.position) @ start.velocity)[:3] @ direction)
        share = 1.0
        for _ in range(ATTEMPTS):
            motion = self._along(path, speed, start, goal, samples, share, limits)
            if within(load_of(motion, limits)):
                break
            share *= CALMER
        else:
            raise LimitError(f"line of {path.length:.3f} m does not fit into the joints' limits")
        on_line = line.length / path.length * motion.duration
        checked = motion.derivative(LINE_CHECKS * on_line, 0)
        away = distance_from_line(model, checked, first, tip)
        if away > config.line_tolerance and slow(start):
            raise LimitError(
                f"line is missed by {away * 1e3:.2f} mm, must be at most"
                f" {config.line_tolerance * 1e3:.2f} mm"
            )
        return motion

    def _pressed(self, line: LinePath, press: float) -> LinePath | PressedLine:
        """Return a line that presses at its end with a force [N]; 0 = it just ends."""
        if not press:
            return line
        end = self._pressing.pressed(line.end, press)
        place, turned = self._model.forward(line.end)
        beyond = float((self._model.forward(end)[0] - place) @ turned[:, 2])
        return PressedLine(line, end, beyond)

    def _along(
        self,
        path: LinePath | PressedLine,
        speed: float,
        start: MotionState,
        goal: TargetGoal,
        samples: FloatArray,
        share: float,
        joint_limits: MotionLimits,
    ) -> Motion:
        """Run along a path with limited speed; the start's deviation from it dies out smoothly."""
        config, size, length = self._config, self._config.coefficients, path.length
        limits = MotionLimits(
            ("line",),
            np.array([-np.inf]),
            np.array([np.inf]),
            np.array([(goal.speed_limit or config.line_speed) * share]),
            np.array([config.line_acceleration * share**2]),
            np.array([config.line_jerk * share**3]),
        )
        begin = MotionState(np.zeros(1), np.array([max(speed, 0.0)]), np.zeros(1))
        duration = self._line.solve(begin, np.array([length]), limits)
        shares = self._line.positions(samples)[:, 0] / length
        end = MotionState.at_rest(path.end)
        slope = path.slope(0.0) * (begin.velocity[0] / length)
        along = MotionState(start.position, slope, np.zeros(len(path.end)))
        fitted = fit_motion(path.positions(shares), along, end, duration, size)
        whole = joined(fitted, start, path.end, duration)
        return faded(fitted, whole, start, path.end, joint_limits)
