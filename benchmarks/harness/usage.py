"""What processes take of the processor and of memory, from samples with their times."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

import psutil

_PERIOD_NS = 500_000_000


class Usage:
    """Samples of some processes, at most two a second."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._processes = {name: psutil.Process(pid) for name, pid in pids.items()}
        self._due_ns = 0
        self._samples: list[tuple[int, dict[str, tuple[float, float]]]] = []

    def sample(self) -> None:
        """Take a sample if one is due: processor time [s] and resident memory [bytes] of each."""
        now = time.monotonic_ns()
        if now < self._due_ns:
            return
        self._due_ns = now + _PERIOD_NS
        taken = {}
        for name, process in self._processes.items():
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    taken[name] = (times.user + times.system, process.memory_info().rss)
            except psutil.NoSuchProcess:
                continue
        self._samples.append((now, taken))

    def between(self, begin_ns: int, end_ns: int, namespace: str = "") -> dict[str, Any]:
        """Return the share of a core [%] and the resident memory [MB] of a namespace's processes.

        Measured from the first to the last sample in between; nothing where there are not two.
        """
        inside = [entry for entry in self._samples if begin_ns <= entry[0] <= end_ns]
        figures: dict[str, Any] = {"cpu_percent": {}, "rss_mb": {}}
        if len(inside) < 2:
            return figures
        (first_ns, first), (last_ns, last) = inside[0], inside[-1]
        for full in first.keys() & last.keys():
            space, _, name = full.rpartition("/")
            if space == namespace:
                spent = last[full][0] - first[full][0]
                figures["cpu_percent"][name] = 100.0 * spent / ((last_ns - first_ns) * 1e-9)
                figures["rss_mb"][name] = last[full][1] / 1e6
        return figures


def total(shares: Mapping[str, float], names: Iterable[str]) -> float | None:
    """Return the sum over those of the processes that are there; None when none is."""
    found = [shares[name] for name in names if name in shares]
    return sum(found) if found else None
