"""Header stamps that order nothing are counted, and counting always goes on."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.monitoring.detectors.stamps import StampDetector
from kv_action_router.monitoring.samples import StampSample
from kv_action_router.monitoring.signals import SignalTable

MS = 1_000_000
WALL = 1_700_000_000_000 * MS
SIX_YEARS = 189_000_000_000 * MS


class Stamps:
    def __init__(self) -> None:
        self.table, self.detector, self.ms = SignalTable(), StampDetector(), 0

    def faults(self, *stamps_ns: int) -> float:
        """Take stamps 20 ms apart and return the count of the last second."""
        for stamp_ns in stamps_ns:
            self.ms += 20
            self.detector.on_stamp(StampSample("wrench", stamp_ns, self.ms * MS))
        self.detector.measure(self.table, self.ms * MS)
        return self.table.value("stamp_faults", self.ms * MS, source="wrench")


def good(count: int, first: int = 0, offset_ns: int = 0) -> list[int]:
    return [WALL + offset_ns + (first + k) * 20 * MS for k in range(count)]


def test_rising_stamps_are_no_fault() -> None:
    assert Stamps().faults(*good(60)) == 0.0


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (WALL + 4 * 20 * MS, "the same as before"),
        (WALL + 20 * MS, "earlier than before"),
        (WALL + SIX_YEARS, "far from the clock before"),
        (0, "zero"),
    ],
)
def test_each_kind_is_one_fault_and_told(bad: int, words: str) -> None:
    stamps = Stamps()
    assert stamps.faults(*good(5), bad) == 1.0
    assert words in stamps.detector.detail["wrench"]


def test_a_clock_that_was_set_is_one_fault_and_goes_on_from_there() -> None:
    stamps = Stamps()
    assert stamps.faults(*good(5), *good(40, 5, SIX_YEARS)) == 1.0
    assert stamps.faults(*good(20, 45, SIX_YEARS)) == 0.0  # a second later it is forgotten


def test_stamps_that_are_always_zero_are_counted_each_time() -> None:
    assert Stamps().faults(*[0] * 40) == 40.0


def test_a_stream_that_was_never_seen_has_no_count() -> None:
    table, detector = SignalTable(), StampDetector()
    detector.measure(table, 0)
    assert math.isnan(table.value("stamp_faults", 0, source="wrench"))


@given(st.lists(st.sampled_from([0, WALL, WALL + SIX_YEARS, WALL - SIX_YEARS]), max_size=30))
def test_after_any_disorder_good_stamps_are_good_again(disorder: list[int]) -> None:
    stamps = Stamps()
    stamps.faults(*disorder)
    assert stamps.faults(*good(60, 100)) == 0.0
