"""From a match to a motion: reuse with a local correction, or a full replan."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kv_action_router.contracts import CacheMatch, FloatArray, Pose
from kv_action_router.errors import CollisionError, InputError, ReanchorError
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.clearance import Clearance
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.goal import goal_configuration
from kv_action_router.synthesis.kinematics import shifted_end
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.line import distance_from_line
from kv_action_router.synthesis.pressing import PRESSING, Pressing, measured_in, spindle_end
from kv_action_router.synthesis.reanchor import (
    joined,
    merged,
    reanchor,
    shifted_by_turns,
    slow,
)
from kv_action_router.synthesis.reference import Reference
from kv_action_router.synthesis.source import BehaviorSource, PlanRequest
from kv_action_router.synthesis.spline import Motion, MotionState
from kv_action_router.tasks.stages import (
    PressGoal,
    SearchGoal,
    StageDefinition,
    TargetGoal,
    TipGoal,
)

SAME_PLACE = 1.0e-6  # [m] a target that moved less has not moved
LINE_CHECKS = np.array([0.3, 0.5, 0.7])  # shares of the duration
NEAREST_SAMPLES = 64
LARGEST_PHASE = 0.99  # of a motion that is taken up: it is not over before the robot is back on it
LONGEST_CORRECTION = 1.5  # [s] added to what is left of a motion, at most


@dataclass(frozen=True, slots=True)
class Decided:
    """A motion, and where it came from.

    Attributes:
        motion: from the start state to the goal.
        target: pose that it acts on; None = none.
        reused: it is a cached one, corrected (a behavior hit).
        refused: why the cached one could not be used; empty = it was, or there was none.
    """

    motion: Motion
    target: Pose | None
    reused: bool
    refused: str = ""


class Decider:
    """Makes motions of matches. Not thread safe."""

    def __init__(
        self,
        model: RobotModel,
        config: SynthesisConfig,
        source: BehaviorSource,
        clearance: Clearance | None = None,
    ) -> None:
        """Make a decider.

        Args:
            model: of the robot.
            config: of the stage.
            source: of motions that the cache has not.
            clearance: tests corrected motions; None = nothing is tested.
        """
        self._model = model
        self._config = config
        self._source = source
        self._clearance = clearance
        self._limits = MotionLimits.of(model)
        self._pressing = Pressing(model)
        self._scaled: dict[float, MotionLimits] = {}

    def limits(self, stage: StageDefinition) -> MotionLimits:
        """Return the planning limits of a stage."""
        scale, config = stage.velocity_scale, self._config
        if scale not in self._scaled:
            self._scaled[scale] = self._limits.scaled(
                config.velocity_share * scale,
                config.acceleration_share * scale,
                config.jerk_share * scale,
            )
        return self._scaled[scale]

    def decide(
        self,
        stage: StageDefinition,
        match: CacheMatch,
        start: MotionState,
        obstacles: FloatArray,
        origin: Pose | None = None,
    ) -> Decided:
        """Answer a match.

        Args:
            stage: under way.
            match: to be answered.
            start: state in which the motion begins.
            obstacles: spheres x, y, z, r in the base frame [m] (k, 4).
            origin: where the tip was when the stage began, for a goal that counts from there.

        Raises:
            SynthesisError: neither the cache nor the source has a motion inside the limits.
        """
        target = match.target.pose if stage.needs_target and match.target is not None else None
        if isinstance(stage.goal, TipGoal):
            target = origin
        refused = ""
        request = PlanRequest(stage, start, target, obstacles, match)
        if match.hit and match.behavior is not None:
            try:
                motion = self._reuse(stage, match, start, target)
                # From rest the cache's guard has tested this very motion, with the same start and
                # target; a start in motion fades in as only this stage knows.
                if self._clearance is not None and not slow(start):
                    self._clearance.check(motion, request)
                return Decided(motion, target, True)
            except (ReanchorError, CollisionError, InputError) as error:
                refused = str(error)
        return Decided(self._source.plan(request), target, False, refused)

    def _reuse(
        self, stage: StageDefinition, match: CacheMatch, start: MotionState, target: Pose | None
    ) -> Motion:
        behavior = match.behavior
        assert behavior is not None
        model = self._model
        motion = shifted_by_turns(
            Motion.from_behavior(behavior, model.joint_names), start.position, model
        )
        end = motion.end
        measured = measured_in(match, model, start)
        longest = motion.duration * self._config.stretch_limit
        limits, size = self.limits(stage), self._config.coefficients
        if isinstance(stage.goal, PressGoal):
            sent = None if target is None else np.asarray(target.position)
            end = self._pressing.end(stage.goal, start.position, measured, sent)
            if isinstance(stage.goal, SearchGoal):
                carried = self._pressing.carried(motion, measured, end)
                # Not before the press is built up: until then the stored one is what it was there.
                return merged(carried, start, limits, longest, size, soonest=PRESSING)
        elif isinstance(stage.goal, TargetGoal):
            stored = behavior.target
            if isinstance(stage.goal, TipGoal):
                stored = Pose(model.forward(motion.start)[0])
            if target is None or stored is None:
                raise ReanchorError(f"stage {stage.name!r} needs a target, then and now")
            aim = self._moved(self._pressing.relieved(end, stage.goal.press), target, stored)
            end = self._pressing.pressed(aim, stage.goal.press) if stage.goal.press else aim
        else:
            end = goal_configuration(stage, model)
            end = end + np.where(model.continuous, motion.end - end, 0.0)
        if not isinstance(stage.goal, PressGoal):
            end = spindle_end(model, end, measured)
        joined_motion = reanchor(motion, start, end, limits, longest, size)
        if isinstance(stage.goal, TargetGoal) and stage.goal.line and slow(start):
            self._check_line(joined_motion, stage.goal.press)
        return joined_motion

    def follow(
        self,
        stage: StageDefinition,
        reference: Reference,
        displacement: FloatArray,
        now_ns: int,
    ) -> Motion:
        """Return what is left of a motion, its end moved by a displacement [m] (3,), from now on.

        It begins as the motion itself is at its planned speed, whatever rate it is run at.

        Raises:
            ReanchorError: not inside the limits.
        """
        motion = reference.motion
        end = shifted_end(self._model, motion.end, displacement)
        rest = motion.remainder(reference.motion_time(now_ns), self._config.coefficients)
        return reanchor(
            rest,
            reference.own_state(now_ns),
            end,
            self.limits(stage),
            rest.duration + LONGEST_CORRECTION,
            self._config.coefficients,
        )

    def take_up(
        self, reference: Reference, request: PlanRequest, now_ns: int
    ) -> tuple[Motion, float]:
        """Return the rest of a motion that was laid aside, from where the robot is, and its phase.

        Raises:
            SynthesisError: not inside the limits, or something is in the way.
        """
        stage, motion, size = request.stage, reference.motion, self._config.coefficients
        time = reference.motion_time(now_ns)
        phase = min(reference.phase_of(time), LARGEST_PHASE)
        goal = stage.goal
        if isinstance(goal, PressGoal) or (isinstance(goal, TargetGoal) and goal.line):
            return self._source.plan(request), phase
        rest = motion.remainder(time, size)
        longest = rest.duration * self._config.stretch_limit + LONGEST_CORRECTION
        joined_rest = reanchor(rest, request.start, motion.end, self.limits(stage), longest, size)
        if self._clearance is not None:
            self._clearance.check(joined_rest, request)
        return joined_rest, phase

    def check_rest(self, reference: Reference, request: PlanRequest, now_ns: int) -> None:
        """Test what is left of a motion that is to go on along its path.

        Raises:
            CollisionError: something has come into its way.
        """
        if self._clearance is not None:
            self._clearance.check(reference.motion, request, reference.motion_time(now_ns))

    def moved_template(self, template: Motion, displacement: FloatArray) -> Motion:
        """Return a whole motion with its end moved by a displacement [m] (3,).

        Raises:
            ReanchorError: the end can't be moved that far by a local correction.
        """
        end = shifted_end(self._model, template.end, displacement)
        return joined(template, template.state(0.0), end, template.duration)

    def rejoin(
        self,
        stage: StageDefinition | None,
        reference: Reference,
        measured: MotionState,
        now_ns: int,
    ) -> tuple[Motion, float]:
        """Return the rest of a motion, joined to where the robot really is, and its phase.

        Raises:
            ReanchorError: not inside the limits.
        """
        motion = reference.motion
        times = np.linspace(0.0, reference.motion_time(now_ns), NEAREST_SAMPLES)
        away = np.abs(motion.derivative(times, 0) - measured.position).max(axis=1)
        nearest = float(times[int(away.argmin())])
        limits = self._limits if stage is None else self.limits(stage)
        rest = motion.remainder(nearest, self._config.coefficients)
        longest = rest.duration * self._config.stretch_limit + LONGEST_CORRECTION
        return (
            merged(rest, measured, limits, longest, self._config.coefficients),
            reference.phase_of(nearest),
        )

    def _moved(self, end: FloatArray, target: Pose, stored: Pose) -> FloatArray:
        displacement = np.asarray(target.position) - np.asarray(stored.position)
        if np.abs(displacement).max() < SAME_PLACE:
            return end
        return shifted_end(self._model, end, displacement)

    def _check_line(self, motion: Motion, press: float) -> None:
        first, end = self._model.forward(motion.start)[0], self._model.forward(motion.end)[0]
        last, turned = self._model.forward(self._pressing.relieved(motion.end, press))
        # Beyond the line's end the set-point leaves it, to press.
        length, beyond = math.dist(first, last), max(0.0, float((end - last) @ turned[:, 2]))
        share = length / max(length + beyond, SAME_PLACE)
        inside = motion.derivative(LINE_CHECKS * share * motion.duration, 0)
        away = distance_from_line(self._model, inside, first, last)
        if away > self._config.line_tolerance:
            raise ReanchorError(
                f"cached line would be missed by {away * 1e3:.2f} mm, must be at most"
                f" {self._config.line_tolerance * 1e3:.2f} mm"
            )
