"""The last estimate of the target, held while something stands before it."""

from __future__ import annotations

from kv_action_router.contracts import TargetEstimate


class TargetHold:
    """Holds an estimate with its age.

    The tool hides the target just when it is about to touch it, so a hidden target is held. A
    target whose place is in plain view and empty is gone, and one that was hidden for too long is
    not known any more.
    """

    def __init__(self, limit: float, gone_frames: int) -> None:
        """Hold at most ``limit`` [s]; drop after ``gone_frames`` images of the empty place."""
        self._limit_ns = int(limit * 1e9)
        self._gone_frames = gone_frames
        self._target: TargetEstimate | None = None
        self._receipt_ns = 0
        self._empty = 0

    def seen(self, target: TargetEstimate, receipt_ns: int) -> None:
        """Take in a new estimate, from an image received at this CLOCK_MONOTONIC instant [ns]."""
        self._target, self._receipt_ns, self._empty = target, receipt_ns, 0

    def not_seen(self, place_is_empty: bool) -> None:
        """Take in an image without an estimate."""
        self._empty = self._empty + 1 if place_is_empty else 0
        if self._empty >= self._gone_frames:
            self.drop()

    def drop(self) -> None:
        """Forget the estimate."""
        self._target, self._empty = None, 0

    @property
    def held(self) -> TargetEstimate | None:
        """The newest estimate, whatever its age."""
        return self._target

    def current(self, now_ns: int) -> tuple[TargetEstimate | None, float]:
        """Return the estimate, None when it is too old, and the age of the image behind it [s]."""
        if self._target is None:
            return None, float("inf")
        age = now_ns - self._receipt_ns
        return (self._target if age <= self._limit_ns else None), age * 1e-9
