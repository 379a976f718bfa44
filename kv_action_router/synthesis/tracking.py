"""Newest samples of the robot, and whether the injector follows what it was asked to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kv_action_router.contracts import (
    TRIGGER_DEADLINE_NS,
    ExecutionFeedback,
    FloatArray,
    InjectorState,
    JointSample,
)
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.reference import Reference
from kv_action_router.synthesis.spline import MotionState

MOVABLE = (InjectorState.HOLD, InjectorState.FOLLOW, InjectorState.RAMP)
LONGEST_AHEAD_NS = 20_000_000  # by which a set-point that was told is carried on
ADOPTION_NS = 15_000_000  # after its first chunk was sent, a motion is surely adopted, or never
TAKEN_NS = 60_000_000  # a chunk that was not adopted by then was refused, or is lost
JUST_NS = 7_000_000  # what comes behind a joint state takes 3 ms, and 8 when both cores are busy
IN_FORCE = (InjectorState.FOLLOW, InjectorState.HOLD)
OUT_OF_FORCE = (InjectorState.INACTIVE, InjectorState.FAIL_SAFE, InjectorState.STOPPED)


class Tracking:
    """What is measured.

    Attributes:
        joints: newest joint state, in the model's order; None = never seen.
        feedback: newest of the injector; None = never heard.
    """

    def __init__(
        self, joint_names: tuple[str, ...], config: SynthesisConfig, spindles: Sequence[bool] = ()
    ) -> None:
        """Watch a robot.

        Args:
            joint_names: in the model's order (n).
            config: of the stage.
            spindles: joints that work against what they turn (n,), empty = none: how far they are
                behind their set-point says nothing. That is led along its path like any other.
        """
        self._names = joint_names
        self._spindles = [index for index, one in enumerate(spindles) if one]
        self._led = [
            index for index in range(len(joint_names)) if not (len(spindles) and spindles[index])
        ]
        self._all = range(len(joint_names))
        self._envelope = config.tracking_envelope
        self._rest_speed = config.rest_speed
        self._feedback_limit_ns = int(config.feedback_limit_ms * 1e6)
        self._joints_limit_ns = min(int(config.joints_limit_ms * 1e6), TRIGGER_DEADLINE_NS)
        self.joints: JointSample | None = None
        self.feedback: ExecutionFeedback | None = None

    @property
    def epoch(self) -> int:
        """The injector's epoch, as its newest feedback says; 0 = never heard."""
        return 0 if self.feedback is None else self.feedback.epoch

    def may_move(self, now_ns: int) -> bool:
        """Say whether the injector would take a chunk now."""
        feedback = self.feedback
        if feedback is None or now_ns - feedback.monotonic_ns > self._feedback_limit_ns:
            return False
        return feedback.state in MOVABLE

    def stopped(self) -> str:
        """Return why no motion can begin before somebody acts; empty = nothing is known of that.

        A fail-safe ends by itself, or in a stop.
        """
        feedback = self.feedback
        if feedback is None or feedback.state is not InjectorState.STOPPED:
            return ""
        return f"a stop is engaged, {feedback.reason or 'for a reason that is not known'}"

    def sees_joints(self, now_ns: int) -> bool:
        """Say whether the joint state is fresh enough to trigger a chunk."""
        return self.joints is not None and now_ns - self.joints.receipt_ns <= self._joints_limit_ns

    def just_saw_joints(self, now_ns: int) -> bool:
        """Say whether the joint state is so fresh that a chunk made from it arrives in time."""
        return self.joints is not None and now_ns - self.joints.receipt_ns <= JUST_NS

    def at_rest(self, now_ns: int) -> bool:
        """Say whether the robot is measured at rest."""
        if self.joints is None or not self.sees_joints(now_ns):
            return False
        return float(np.nan_to_num(np.abs(self.joints.velocity)).max()) <= self._rest_speed

    def measured(self) -> MotionState:
        """Return the measured state; a velocity that is not measured counts as 0."""
        assert self.joints is not None
        position = np.asarray(self.joints.position, dtype=float)
        return MotionState(position, np.nan_to_num(self.joints.velocity), np.zeros(len(position)))

    def standing(self, *, presses: bool = False) -> MotionState:
        """Return the state that a motion begins in which nobody follows: the measured one.

        A spindle that works against something is begun where the injector's set-point is by then,
        and as fast: that is how its torque goes on. So is the whole arm when it ``presses``: from
        where it is measured it would press with nothing.
        """
        state = self.measured()
        feedback = self.feedback
        led_on = list(self._all) if presses else self._spindles
        if not led_on or feedback is None or feedback.state not in MOVABLE:
            return state
        setpoint = self._ordered(feedback)
        if setpoint is None:
            return state
        position = np.array(state.position)
        velocity = np.array(state.velocity)
        assert self.joints is not None
        speed = self._ordered_as(feedback, feedback.setpoint_velocity)[led_on]
        since_ns = min(max(self.joints.receipt_ns - feedback.monotonic_ns, 0), LONGEST_AHEAD_NS)
        position[led_on] = setpoint[led_on] + speed * (since_ns * 1.0e-9)
        velocity[led_on] = speed
        return MotionState(position, velocity, state.acceleration)

    def follows(self, reference: Reference, since_ns: int) -> bool:
        """Say whether the injector follows a reference, and the robot the injector.

        Args:
            reference: that was sent.
            since_ns: CLOCK_MONOTONIC when its first chunk went out; feedback from before it, and
                from the first moments after it, can't know of it and is not asked.
        """
        feedback, joints = self.feedback, self.joints
        if feedback is None or joints is None:
            return False
        if not self._near(joints.position, reference.position(joints.receipt_ns), self._led):
            return False
        if feedback.monotonic_ns <= since_ns + ADOPTION_NS:
            return True
        if feedback.state not in IN_FORCE:
            return False
        setpoint = self._ordered(feedback)
        if setpoint is None or feedback.chunk_sequence == 0:
            return False
        return self._near(setpoint, reference.position(feedback.monotonic_ns), self._all)

    def passed_over(self, sequence: int, sent_ns: int) -> bool:
        """Say whether feedback that must know of a chunk by now has an older one.

        Args:
            sequence: number of the chunk.
            sent_ns: CLOCK_MONOTONIC when it went out.
        """
        feedback = self.feedback
        if feedback is None or feedback.chunk_sequence >= sequence:
            return False
        return feedback.monotonic_ns - sent_ns > TAKEN_NS

    def led(self, since_ns: int) -> tuple[list[float], list[float]] | None:
        """Return positions and set-points of the joints that are led along a path [rad] (n,).

        Spindles are not: they work against what they turn.

        Args:
            since_ns: CLOCK_MONOTONIC of the motion's beginning; feedback from before it, and from
                the first moments after it, may be of another motion.

        Returns:
            None while no chunk is followed, or nothing is known of it.
        """
        feedback = self.feedback
        if feedback is None or feedback.state is not InjectorState.FOLLOW:
            return None
        if feedback.monotonic_ns <= since_ns + ADOPTION_NS or feedback.joints != self._names:
            return None
        places, wanted = feedback.position.tolist(), feedback.setpoint_position.tolist()
        if len(places) != len(wanted):
            return None
        return [places[index] for index in self._led], [wanted[index] for index in self._led]

    def held_back(self, reference: Reference) -> bool:
        """Say whether the robot left a reference that the injector followed.

        Where chunks came late it was the injector that left it: its set-point is then farther from
        the reference than the robot from the set-point.
        """
        feedback = self.feedback
        if feedback is None or feedback.state not in IN_FORCE:
            return False
        setpoint = self._ordered(feedback)
        if setpoint is None:
            return False
        led = self._led
        lag = np.abs(feedback.position - feedback.setpoint_position)[led].max()
        left = np.abs(setpoint - reference.position(feedback.monotonic_ns)).max()
        return bool(lag > left)

    def _near(self, position: FloatArray, reference: FloatArray, among: Sequence[int]) -> bool:
        """Say whether the joints ``among`` are inside the envelope; NaN is outside."""
        envelope = self._envelope
        places, wanted = position.tolist(), reference.tolist()
        return all(abs(places[index] - wanted[index]) <= envelope for index in among)

    def _ordered(self, feedback: ExecutionFeedback) -> FloatArray | None:
        """Return the set-point in the model's order."""
        if feedback.joints == self._names:
            return feedback.setpoint_position
        if any(name not in feedback.joints for name in self._names):
            return None
        return self._ordered_as(feedback, feedback.setpoint_position)

    def _ordered_as(self, feedback: ExecutionFeedback, values: FloatArray) -> FloatArray:
        """Return values of a feedback's joints in the model's order, which all are there."""
        if feedback.joints == self._names:
            return values
        places = {name: index for index, name in enumerate(feedback.joints)}
        ordered: FloatArray = values[[places[name] for name in self._names]]
        return ordered
