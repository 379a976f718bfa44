"""Sees that the drives have stopped by themselves, although they are commanded."""

from __future__ import annotations

from kv_action_router.contracts import DriveSample

DRIVES = "drives"
# Feedback on its way may tell of the time before the first command.
_GRACE_NS = 150_000_000


class DriveStops:
    """Compares what is sent with what the drives say of themselves; all times [ns].

    Drives that make no feedback of their brakes never count as stopped.

    Attributes:
        stopped: what the newest feedback says: some brake is engaged, or about to be.
    """

    def __init__(self) -> None:
        self.stopped = False
        self._names: tuple[str, ...] = ()
        self._sends = False
        self._since_ns = 0  # commands have gone out, or stayed away, from then on
        self._denied_ns = 0  # when the newest feedback that denies the commands came; 0 = none has

    def reset(self, now_ns: int) -> None:
        """Forget what was sent; the drives' own account stays."""
        self._sends = False
        self._since_ns = now_ns
        self._denied_ns = 0

    def sending(self, now_ns: int, *, sends: bool) -> None:
        """Note whether a command goes out now."""
        if sends is not self._sends:
            self._sends = sends
            self._since_ns = now_ns
            self._denied_ns = 0

    def heard(self, sample: DriveSample) -> None:
        """Take the drives' feedback."""
        self.stopped = bool(sample.braked.any())
        if not self.stopped:
            self._denied_ns = 0
            return
        self._names = tuple(n for n, b in zip(sample.names, sample.braked, strict=True) if b)
        if self._sends and sample.receipt_ns - self._since_ns > _GRACE_NS:
            self._denied_ns = sample.receipt_ns

    def judge(self) -> tuple[str, str]:
        """Return what is at fault and why, for people; two empty strings when all is well."""
        if self._denied_ns == 0:
            return "", ""
        return DRIVES, f"{', '.join(self._names)} stopped by themselves: commands do not arrive"
