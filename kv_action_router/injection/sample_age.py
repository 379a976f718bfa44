"""Samples that are older than their receipt says: held up on their way, or out of order.

A sample that was under way for 100 ms looks fresh to whoever sees its receipt only, and a loop that
is closed on it swings up. Its header stamp tells, though its clock and ours have no common zero:
what counts is how much more lies between stamp and receipt than did for the best sample so far.
"""

from __future__ import annotations

_LEAK = 1000  # of the time that passes, one part: clocks drift apart by less
_BACKWARD = 5  # older stamps in a row are a clock that was set back, fewer are out of order


class SampleAge:
    """Judges the stamps of one stream. All times in [ns].

    A clock that is set is no delay: stamps that go on behind an older one begin a new baseline, as
    do stamps that leap ahead. A delay that was there from the first sample on is not seen.
    """

    def __init__(self, limit_ns: int) -> None:
        """Accept what is late by up to ``limit_ns``; 0 = whatever is in order."""
        self._limit_ns = limit_ns
        self.reset()

    def reset(self) -> None:
        """Forget all samples."""
        self._offset_ns = 0  # receipt - stamp of the best sample
        self._stamp_ns = self._receipt_ns = 0
        self._backward = 0

    def check(self, stamp_ns: int, receipt_ns: int) -> str:
        """Return why a sample is older than it looks, or an empty string.

        Args:
            stamp_ns: of the header, on any clock; 0 = none. That is not blamed, nor is one that is
                repeated.
            receipt_ns: on CLOCK_MONOTONIC.
        """
        if stamp_ns in (0, self._stamp_ns):
            return ""  # a clock that stands still tells nothing
        if stamp_ns < self._stamp_ns:
            self._backward += 1
            if self._backward < _BACKWARD:
                return f"older than the one before by {(self._stamp_ns - stamp_ns) * 1e-6:.1f} ms"
            self.reset()
        offset_ns = receipt_ns - stamp_ns
        if self._stamp_ns == 0 or offset_ns < self._offset_ns:
            self._offset_ns = offset_ns
        else:
            self._offset_ns += (receipt_ns - self._receipt_ns) // _LEAK
        self._stamp_ns, self._receipt_ns, self._backward = stamp_ns, receipt_ns, 0
        late_ns = offset_ns - self._offset_ns
        if 0 < self._limit_ns < late_ns:
            return f"late by {late_ns * 1e-6:.0f} ms (limit {self._limit_ns * 1e-6:g} ms)"
        return ""
