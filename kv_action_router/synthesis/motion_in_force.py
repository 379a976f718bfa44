"""The motion in force: the reference that the injector follows, kept continuous."""

from __future__ import annotations

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import SynthesisError
from kv_action_router.synthesis.decider import Decider
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.reference import Reference
from kv_action_router.synthesis.speed_limits import SpeedLimits
from kv_action_router.synthesis.spline import Motion, MotionState
from kv_action_router.synthesis.tracking import OUT_OF_FORCE, Tracking
from kv_action_router.tasks.stages import StageDefinition


class MotionInForce:
    """At most one reference, and its tie to what is measured.

    Invariant: a reference belongs to the injector's epoch in which it was begun. While the injector
    follows it, every new one begins in its state; else every new one begins in the measured state.

    Attributes:
        reference: what is followed; None = nothing is in force.
        changed: the reference changed since its owner sent a chunk of it: the next is due now.
        speed: who wants motions slower than planned; changed by :meth:`limit_speed`.
    """

    def __init__(self, decider: Decider, limits: MotionLimits, tracking: Tracking) -> None:
        self._decider = decider
        self._limits = limits
        self._tracking = tracking
        self._epoch = 0
        self._since_ns = 0
        self.reference: Reference | None = None
        self.changed = False
        self.speed = SpeedLimits()

    def start_state(self, now_ns: int) -> MotionState:
        """Return the state that a new motion begins in."""
        if self.reference is not None and self.followed(self.reference):
            return self.reference.state(now_ns)
        return self._tracking.standing()

    def followed(self, reference: Reference) -> bool:
        """Say whether the injector follows a reference."""
        return self._tracking.follows(reference, self._since_ns)

    @property
    def held_back(self) -> bool:
        """Whether the robot left the reference although the injector followed it."""
        return self.reference is not None and self._tracking.held_back(self.reference)

    @property
    def in_force(self) -> bool:
        """Whether the injector follows the reference, or would if the robot did."""
        return self.reference is not None and (
            self.followed(self.reference) or self._tracking.held_back(self.reference)
        )

    def begin(self, motion: Motion, now_ns: int, phase: float = 0.0) -> Reference:
        """Put a motion in force from now on."""
        if self.reference is None or not self.followed(self.reference):
            self._since_ns = now_ns
        self._epoch = self._tracking.epoch
        self.reference = Reference(motion, now_ns, phase)
        if self.speed.scale < 1.0:
            self.reference.release(now_ns, self._limits, self.speed.scale)
        return self.reference

    def swap(self, motion: Motion, now_ns: int, phase: float) -> None:
        """Put what :meth:`follow_target` made in force, at the rate that the motion has."""
        assert self.reference is not None
        self.reference = self.reference.replaced(motion, now_ns, phase)

    def confirmed(self, stage: StageDefinition | None, now_ns: int) -> Reference:
        """Return the reference, joined to the measured state first when nobody follows it.

        Raises:
            SynthesisError: it can't be joined, or there is none: a fresh decision is needed.
        """
        reference = self.reference
        if reference is not None and self.followed(reference):
            return reference
        return self.join(stage, now_ns)

    def join(self, stage: StageDefinition | None, now_ns: int) -> Reference:
        """Return the reference, joined to where the arm stands: where it presses, its set-point.

        Raises:
            SynthesisError: it can't be joined, or there is none: a fresh decision is needed.
        """
        reference = self.reference
        if reference is None:
            raise SynthesisError("no motion is in force")
        standing = self._tracking.standing(presses=stage is not None and stage.presses)
        motion, phase = self._decider.rejoin(stage, reference, standing, now_ns)
        stops = reference.stops
        self._since_ns = now_ns
        joined = self.begin(motion, now_ns, phase)
        if stops:
            joined.brake(now_ns, self._limits)
        return joined

    def follow_target(
        self, stage: StageDefinition, displacement: FloatArray, now_ns: int
    ) -> tuple[Motion, float] | None:
        """Return the rest of the motion with its end moved [m] (3,), and its phase.

        None while the motion stops or nobody follows it.

        Raises:
            SynthesisError: not inside the limits.
        """
        reference = self.reference
        if reference is None or reference.stops or not self.followed(reference):
            return None
        motion = self._decider.follow(stage, reference, displacement, now_ns)
        return motion, reference.phase(now_ns)

    def brake(self, now_ns: int) -> None:
        """Come to rest on the path."""
        if self.reference is not None and self.reference.brake(now_ns, self._limits) > 0.0:
            self.changed = True

    def release(self, now_ns: int) -> None:
        """Go on along the path, at the speed in force."""
        if self.reference is None:
            return
        if self.reference.release(now_ns, self._limits, self.speed.scale) > 0.0:
            self.changed = True

    def limit_speed(self, source: str, scale: float, reason: str, now_ns: int) -> None:
        """Run motions at a share of their planned speed, or lift that; one that stops still does.

        Raises:
            InputError: as :meth:`SpeedLimits.ask`.
        """
        self.speed.ask(source, scale, reason)
        if self.reference is not None and not self.reference.stops:
            self.release(now_ns)

    def phase(self, now_ns: int) -> float:
        """Return the share of the motion that is done, 0 to 1; 0 without one."""
        return 0.0 if self.reference is None else self.reference.phase(now_ns)

    def at_rest(self, now_ns: int) -> bool:
        """Say whether the reference stands still, or there is none."""
        return self.reference is None or self.reference.at_rest(now_ns)

    def drop(self) -> None:
        """Nothing is in force any more."""
        self.reference = None

    def lost_by_injector(self) -> str:
        """Return why the injector has left the motion; empty = it hasn't, or there is none."""
        feedback = self._tracking.feedback
        if feedback is None or self.reference is None:
            return ""
        if feedback.state in OUT_OF_FORCE:
            return f"injector: {feedback.state.name.lower()} {feedback.reason}".strip()
        if feedback.epoch != self._epoch:
            return f"injector: epoch {feedback.epoch} instead of {self._epoch}"
        return ""
