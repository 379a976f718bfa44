"""What drives take from the link on which their commands come.

A drive knows nothing of whoever commands it but what arrives. So it takes no command twice, none
that was overtaken or held up on its way (a loop that is closed over a late link swings up), and
once it has stopped by itself, none before the commander has shown that it knows: by a pause. A
commander that goes on as if nothing had happened would pull the arm after its set-point.
"""

from __future__ import annotations

from kv_action_router.injection.sample_age import SampleAge

_WRAP = 1 << 32  # stamps are microseconds in 32 bits
_HALF = _WRAP >> 1


class CommandLink:
    """Judges the commands of one bank of drives; all times on CLOCK_MONOTONIC [ns].

    Invariants: a command that is refused, or comes again, does not feed the watchdog. From
    :meth:`stop_until_pause` on nothing is taken before nothing has come for the time-out.

    Attributes:
        last_ns: receipt of the last command that was taken; 0 = none yet.
        locked: the drives have stopped by themselves and wait for the pause.
    """

    def __init__(self, timeout_ns: int, delay_limit_ns: int) -> None:
        """Take commands that are late by up to ``delay_limit_ns``; 0 = whatever is in order."""
        self._timeout_ns = timeout_ns
        self._age = SampleAge(delay_limit_ns)
        self._stamp_us = 0
        self._heard_ns = 0
        self.last_ns = 0
        self.locked = False

    def lost(self, now_ns: int) -> bool:
        """Return whether no command was taken for longer than the time-out."""
        return now_ns - self.last_ns > self._timeout_ns

    def stop_until_pause(self) -> None:
        """Take nothing more before a pause."""
        self.locked = True

    def repeated(self, stamp_us: int) -> bool:
        """Return whether a command is the one before, once more."""
        return stamp_us != 0 and stamp_us == self._stamp_us

    def check(self, stamp_us: int, now_ns: int, *, moving: bool) -> str:
        """Return why a command is not taken, or an empty string; it counts as heard either way.

        Args:
            stamp_us: when it was sent, on CLOCK_MONOTONIC of the sender, modulo 2^32 [us]; 0 = it
                does not say, and is not judged.
            now_ns: when it came.
            moving: the drives' own stop is under way.
        """
        silence_ns, self._heard_ns = now_ns - self._heard_ns, now_ns
        if stamp_us:
            self._stamp_us = stamp_us
            fault = self._age.check(self._unwrapped_ns(stamp_us, now_ns), now_ns)
            if fault:
                return fault
        if self.locked:
            if moving:
                return "in the middle of the quick stop"
            if silence_ns < self._timeout_ns:
                return f"without a pause of {self._timeout_ns * 1e-6:g} ms after the quick stop"
        return ""

    def take(self, now_ns: int) -> None:
        """Note that a command was taken; the drives work again."""
        self.last_ns = now_ns
        self.locked = False

    @staticmethod
    def _unwrapped_ns(stamp_us: int, now_ns: int) -> int:
        """Return the stamp nearest to the receipt that is the same modulo 2^32 us; never 0."""
        now_us = now_ns // 1000
        since = (now_us - stamp_us + _HALF) % _WRAP - _HALF
        return (now_us - since) * 1000 or 1
