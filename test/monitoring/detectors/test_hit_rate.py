"""A cache that answers less often than it used to is told, one that learns is not."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kv_action_router.monitoring.detectors.hit_rate import LEAST, HitRateDetector
from kv_action_router.monitoring.samples import RatesSample
from kv_action_router.monitoring.signals import SignalTable


class Cache:
    """A cache whose statistics are heard after every few decisions."""

    def __init__(self) -> None:
        self.table, self.detector = SignalTable(), HitRateDetector()
        self.decisions = self.hits = self.now_ns = 0
        self.tell()

    def tell(self) -> float:
        self.now_ns += 500_000_000
        counts = {"task": (self.decisions, self.hits)}
        self.detector.on_rates(RatesSample(counts, self.now_ns), self.table)
        return self.table.value("hit_rate_decay", self.now_ns, source="task")

    def answer(self, hits: Iterable[bool], every: int = 3) -> float:
        """Decide, and return the decay that is measured at the end."""
        for hit in hits:
            self.decisions += 1
            self.hits += hit
            if self.decisions % every == 0:
                self.tell()
        return self.tell()


def pattern(count: int, misses_of_ten: int) -> list[bool]:
    return [k % 10 >= misses_of_ten for k in range(count)]


def test_a_steady_cache_does_not_decay() -> None:
    assert abs(Cache().answer(pattern(400, 1))) < 0.05


def test_a_decay_of_a_fifth_is_seen_within_some_dozen_decisions() -> None:
    cache = Cache()
    cache.answer(pattern(300, 1))
    assert cache.answer(pattern(60, 4)) >= 0.15  # from 0.9 to 0.6
    recent, long_term = cache.detector.rates["task"]
    assert recent == pytest.approx(0.65, abs=0.07)
    assert 0.75 < long_term < 0.9


def test_after_a_decay_the_new_rate_becomes_the_long_term_one() -> None:
    cache = Cache()
    cache.answer(pattern(300, 1))
    cache.answer(pattern(60, 4))
    assert cache.answer(pattern(1_000, 4)) < 0.05


def test_a_cache_that_fills_decays_by_nothing() -> None:
    cache = Cache()
    assert math.isnan(cache.answer([False] * (LEAST - 10)))  # nothing to compare with yet
    assert cache.answer([False] * 20) == 0.0  # no hit ever: nothing to lose
    assert cache.answer(pattern(200, 1)) < 0.0


def test_a_cache_that_was_started_again_goes_on_counting() -> None:
    cache = Cache()
    cache.answer(pattern(300, 1))
    before = cache.detector.rates["task"]
    cache.decisions = cache.hits = 0
    cache.tell()
    assert cache.detector.rates["task"] == before


@settings(max_examples=25)
@given(st.lists(st.booleans(), min_size=LEAST, max_size=150), st.integers(1, 10))
def test_the_rates_are_shares(hits: list[bool], every: int) -> None:
    cache = Cache()
    decay = cache.answer(hits, every)
    assert all(0.0 <= rate <= 1.0 for rate in cache.detector.rates["task"])
    assert decay <= 1.0
