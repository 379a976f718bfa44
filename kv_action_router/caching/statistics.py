"""Counters of each layer and domain, and how long matches take."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kv_action_router.caching.store.report import NOT_STORED, StoreReport
from kv_action_router.contracts import MissReason

WINDOW_NS = 10_000_000_000


@dataclass(slots=True)
class LayerCounters:
    """Counts since activation. Each field is written by one thread only."""

    decisions: int = 0
    hits: int = 0
    refreshes: int = 0
    misses_empty: int = 0
    misses_similarity: int = 0
    misses_target: int = 0
    misses_guard: int = 0
    misses_confidence: int = 0
    misses_no_target: int = 0
    misses_invalid_key: int = 0
    false_hits: int = 0
    insertions: int = 0
    merges: int = 0
    evictions: int = 0
    invalidations_request: int = 0
    invalidations_condition: int = 0
    invalidations_failure: int = 0

    def frozen(self) -> LayerCounters:
        """Return a copy that nobody counts in."""
        return LayerCounters(
            self.decisions,
            self.hits,
            self.refreshes,
            self.misses_empty,
            self.misses_similarity,
            self.misses_target,
            self.misses_guard,
            self.misses_confidence,
            self.misses_no_target,
            self.misses_invalid_key,
            self.false_hits,
            self.insertions,
            self.merges,
            self.evictions,
            self.invalidations_request,
            self.invalidations_condition,
            self.invalidations_failure,
        )

    def count_miss(self, reason: MissReason) -> None:
        """Count a decision that was no hit, by its reason."""
        name = "misses_" + reason.name.lower()
        setattr(self, name, getattr(self, name) + 1)


@dataclass(frozen=True, slots=True)
class LayerReport:
    """One layer in one domain (``LayerStatistics``)."""

    layer: str
    domain: str
    entries: int
    capacity: int
    entries_not_confident: int
    counters: LayerCounters


@dataclass(frozen=True, slots=True)
class CacheReport:
    """State of the cache (``CacheStatistics``); match times in microseconds, NaN = none yet."""

    layers: tuple[LayerReport, ...]
    keys: int
    keys_refused: int
    updates_refused: int
    match_time_p50_us: float
    match_time_p99_us: float
    match_time_max_us: float
    store: StoreReport = NOT_STORED


class MatchTimes:
    """Durations of the newest matches in a ring; one thread records, another may summarize."""

    def __init__(self, size: int = 4096) -> None:
        self._size = size
        self._at = array("q", bytes(8 * size))  # written as plain numbers, read as arrays
        self._duration = array("q", bytes(8 * size))
        self._times: npt.NDArray[np.int64] = np.frombuffer(self._at, dtype=np.int64)
        self._durations: npt.NDArray[np.int64] = np.frombuffer(self._duration, dtype=np.int64)
        self._count = 0

    def record(self, now_ns: int, duration_ns: int) -> None:
        """Note one match: when it was published and how long it took [ns]."""
        place = self._count % self._size
        self._at[place] = now_ns
        self._duration[place] = duration_ns
        self._count += 1

    def summary(self, now_ns: int) -> tuple[float, float, float]:
        """Return p50, p99 and maximum [us] over the last 10 s; NaN when there was none."""
        count = min(self._count, self._size)
        recent = self._durations[:count][self._times[:count] > now_ns - WINDOW_NS]
        if not recent.size:
            return math.nan, math.nan, math.nan
        recent.sort()
        return _quantile(recent, 0.5), _quantile(recent, 0.99), float(recent[-1]) / 1e3


def _quantile(rising: npt.NDArray[np.int64], share: float) -> float:
    """Return a quantile [us] of sorted durations [ns] (n,), linear between two of them."""
    place = share * (len(rising) - 1)
    below = int(place)
    low, high = int(rising[below]), int(rising[min(below + 1, len(rising) - 1)])
    return (low + (place - below) * (high - low)) / 1e3


class Statistics:
    """All counters of a cache manager. ``task`` and ``behavior`` are by domain."""

    def __init__(self) -> None:
        self.task: dict[str, LayerCounters] = {}
        self.behavior: dict[str, LayerCounters] = {}
        self.execution: dict[str, LayerCounters] = {}
        self.match_times = MatchTimes()
        self.keys = 0
        self.keys_refused = 0
        self.updates_refused = 0

    def of_task(self, domain: str) -> LayerCounters:
        """Return the task layer's counters of a domain."""
        return self.task.get(domain) or self.task.setdefault(domain, LayerCounters())

    def of_behavior(self, domain: str) -> LayerCounters:
        """Return the behavior layer's counters of a domain."""
        return self.behavior.get(domain) or self.behavior.setdefault(domain, LayerCounters())

    def of_execution(self, domain: str) -> LayerCounters:
        """Return the execution layer's counters of a domain."""
        return self.execution.get(domain) or self.execution.setdefault(domain, LayerCounters())
