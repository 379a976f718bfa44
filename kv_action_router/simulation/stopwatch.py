"""How much processor time the parts of an episode take, while its own time is simulated.

Processor time of the thread: what other processes do does not count.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


class Stopwatch:
    """Computing times by name."""

    def __init__(self) -> None:
        self._taken_ns: dict[str, list[int]] = {}

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Measure what runs inside."""
        begin = time.thread_time_ns()
        try:
            yield
        finally:
            self.record(name, time.thread_time_ns() - begin)

    @staticmethod
    def now() -> int:
        """Return a begin for :meth:`since` [ns]."""
        return time.thread_time_ns()

    def since(self, name: str, begin_ns: int) -> None:
        """Note the time since a begin, under a name that is known only now."""
        self.record(name, time.thread_time_ns() - begin_ns)

    def record(self, name: str, taken_ns: int) -> None:
        """Note one time [ns]."""
        self._taken_ns.setdefault(name, []).append(taken_ns)

    def table(self) -> dict[str, tuple[int, float, float, float]]:
        """Return, by name: count, median, 99th percentile and maximum [us]."""
        rows = {}
        for name, taken in self._taken_ns.items():
            values = np.array(taken) * 1e-3
            p50, p99 = np.percentile(values, (50, 99))
            rows[name] = (len(taken), float(p50), float(p99), float(values.max()))
        return rows


class StillStopwatch(Stopwatch):
    """Measures nothing: asking for processor time can cost more than what is measured."""

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Let pass what runs inside."""
        yield

    @staticmethod
    def now() -> int:
        """Return 0."""
        return 0

    def since(self, name: str, begin_ns: int) -> None:
        """Keep nothing."""

    def record(self, name: str, taken_ns: int) -> None:
        """Keep nothing."""
