"""Watchdogs on receipt times: what was heard of, and what was not for too long."""

from __future__ import annotations

from collections.abc import Sequence


class Watchdog:
    """Watches one source; all times are CLOCK_MONOTONIC [ns].

    Invariant: it is never satisfied by a sample that was received before it was started, or later
    than the instant at which it is asked (a receipt from the future counts as now at most).

    Attributes:
        name: of the source, for people.
        timeout_ns: the source is lost when it was not heard of for longer.
        doubt: why the newest sample does not count, for people; empty = it does.
    """

    def __init__(self, name: str, timeout_ns: int, grace_ns: int) -> None:
        self.name = name
        self.timeout_ns = timeout_ns
        self.doubt = ""
        self._grace_ns = max(grace_ns, timeout_ns)
        self._start_ns = 0
        self.last_ns = 0
        self._settled = False

    def start(self, now_ns: int) -> None:
        """Begin to watch; a source that is not heard of gets the grace period."""
        self._start_ns = now_ns
        self.last_ns = 0
        self.doubt = ""
        self._settled = False

    def seen(self, receipt_ns: int, *, starting: bool = False) -> bool:
        """Note that a sample was received; return whether the grace period ended by it.

        Args:
            receipt_ns: when [ns].
            starting: the source says that it is not at work yet; its gaps are forgiven until the
                grace period is over.
        """
        if receipt_ns > self.last_ns and receipt_ns > self._start_ns - self.timeout_ns:
            self.last_ns = receipt_ns
            if not self._settled and not starting:
                self._settled = True
                return True
        return False

    def silence_ns(self, now_ns: int) -> int:
        """Return for how long the source has not been heard of."""
        return now_ns - (self.last_ns or self._start_ns)

    def lost(self, now_ns: int) -> bool:
        """Return whether the source counts as lost."""
        if not self._settled and now_ns - self._start_ns <= self._grace_ns:
            return False
        if self.last_ns == 0:
            return True
        if self.last_ns > now_ns:
            self.last_ns = now_ns
        return now_ns - self.last_ns > self.timeout_ns

    def expires_ns(self) -> int:
        """Return the instant up to which it cannot be lost, unless it is started again [ns].

        A sample moves that instant into the future, unless it ends the grace period.
        """
        end_of_grace = 0 if self._settled else self._start_ns + self._grace_ns
        return max(end_of_grace, self.last_ns + self.timeout_ns if self.last_ns else 0)

    def describe(self, now_ns: int) -> str:
        """Return what is lost and for how long, for people."""
        how = "not heard of for" if self.last_ns else "never heard of in"
        doubt = f": {self.doubt}" if self.doubt else ""
        return f"{self.name} {how} {self.silence_ns(now_ns) * 1e-6:.0f} ms{doubt}"


def first_lost(watchdogs: Sequence[Watchdog], now_ns: int) -> Watchdog | None:
    """Return the first watchdog whose source is lost, or None."""
    for watchdog in watchdogs:
        if watchdog.lost(now_ns):
            return watchdog
    return None
