"""Wake-up lateness of a periodic loop in fixed bins: no allocation, any number of samples."""

from __future__ import annotations

import math
from dataclasses import dataclass

BIN_US = 5.0
BINS = 2000  # up to 10 ms; what is later goes into the last one
_NONE = (0,) * BINS


@dataclass(frozen=True, slots=True)
class Lateness:
    """Summary of some wake-ups; quantiles are the upper edges of their bins [us]."""

    count: int = 0
    p50_us: float = math.nan
    p99_us: float = math.nan
    p999_us: float = math.nan
    max_us: float = math.nan


def _bin(lateness_us: float) -> int:
    """Return the bin of a lateness."""
    if not lateness_us > 0.0:
        return 0
    index = int(lateness_us / BIN_US)
    return index if index < BINS else BINS - 1


class Histogram:
    """Counts of lateness in bins of 5 us.

    Invariant: the counts' sum is the number of samples recorded since :meth:`clear`.
    """

    def __init__(self) -> None:
        self.counts = [0] * BINS
        self._count = 0
        self._most = 0.0

    def record(self, lateness_us: float) -> None:
        """Count one wake-up."""
        self.count_in(_bin(lateness_us), lateness_us)

    def count_in(self, index: int, lateness_us: float) -> None:
        """Count one wake-up whose bin is known."""
        self.counts[index] += 1
        self._count += 1
        if lateness_us > self._most:
            self._most = lateness_us

    def clear(self) -> None:
        """Forget everything."""
        self.counts[:] = _NONE
        self._count = 0
        self._most = 0.0

    def summary(self) -> Lateness:
        """Return quantiles and maximum; a quantile never exceeds the maximum."""
        if self._count == 0:
            return Lateness()
        ranks = [math.ceil(share * self._count) for share in (0.5, 0.99, 0.999)]
        edges: list[float] = []
        seen = 0
        for index, count in enumerate(self.counts):
            seen += count
            while len(edges) < len(ranks) and seen >= ranks[len(edges)]:
                edges.append(min((index + 1) * BIN_US, self._most))
            if len(edges) == len(ranks):
                break
        return Lateness(self._count, edges[0], edges[1], edges[2], self._most)


class LatenessMeter:
    """Lateness over the last full second, and since the start.

    Attributes:
        total: since the start.
        last: summary of the last full second.
        rate_hz: wake-ups a second in it.
        missed: periods that were skipped since the start.
        realtime: whether the loop's thread runs under a real-time policy.
    """

    def __init__(self, now_ns: int) -> None:
        self.total = Histogram()
        self.last = Lateness()
        self.rate_hz = 0.0
        self.missed = 0
        self.realtime = False
        self._second = Histogram()
        self._since_ns = now_ns

    def record(self, now_ns: int, late_ns: int) -> None:
        """Count a wake-up at ``now_ns`` that was due ``late_ns`` before."""
        lateness = late_ns * 1e-3
        index = _bin(lateness)
        self.total.count_in(index, lateness)
        self._second.count_in(index, lateness)
        elapsed = now_ns - self._since_ns
        if elapsed >= 1_000_000_000:
            self.last = self._second.summary()
            self.rate_hz = self.last.count / (elapsed * 1e-9)
            self._second.clear()
            self._since_ns = now_ns
