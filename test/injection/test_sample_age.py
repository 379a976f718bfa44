"""Samples that look fresh and are not; and clocks that are set, which is no fault of a sample."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from injection_builders import MS

from kv_action_router.injection.sample_age import SampleAge

STAMP_NS = 1_700_000_000_000_000_000  # of a wall clock
START_NS = 5_000_000_000  # of the monotonic clock
PERIOD = 2 * MS


def running(samples: int = 50) -> SampleAge:
    age = SampleAge(20 * MS)
    for i in range(samples):
        assert not age.check(STAMP_NS + i * PERIOD, START_NS + i * PERIOD)
    return age


def test_a_sample_that_was_held_up_is_named_with_limit_and_delay() -> None:
    age = running()
    # 100 ms of silence, then the samples go on where they were.
    for i in range(50, 200):
        fault = age.check(STAMP_NS + i * PERIOD, START_NS + i * PERIOD + 100 * MS)
        assert fault == "late by 100 ms (limit 20 ms)"


def test_samples_that_are_in_time_again_are_fresh_at_once() -> None:
    age = running()
    assert age.check(STAMP_NS + 50 * PERIOD, START_NS + 50 * PERIOD + 100 * MS)
    assert not age.check(STAMP_NS + 100 * PERIOD, START_NS + 100 * PERIOD)


def test_a_delay_that_grows_slowly_is_seen_too() -> None:
    age = running()
    faults = [
        age.check(STAMP_NS + i * PERIOD, START_NS + i * PERIOD + (i - 50) * MS // 10)
        for i in range(50, 400)
    ]
    assert not any(faults[:200])
    assert all(faults[-100:])


@given(st.lists(st.integers(0, 19 * MS), min_size=1, max_size=200))
def test_jitter_below_the_limit_is_no_delay(jitter: list[int]) -> None:
    age = running()
    for i, late in enumerate(jitter, start=50):
        assert not age.check(STAMP_NS + i * PERIOD, START_NS + i * PERIOD + late)


@pytest.mark.parametrize("drift", [-0.0005, 0.0005])  # as fast as a clock is slewed
def test_clocks_that_drift_apart_make_no_delay(drift: float) -> None:
    age = SampleAge(20 * MS)
    for second in range(3600):
        receipt = START_NS + second * 1000 * MS
        assert not age.check(STAMP_NS + int(second * 1000 * MS * (1.0 + drift)), receipt)


def test_samples_out_of_order_are_refused_one_by_one() -> None:
    age = running(50)
    for i in range(50, 80, 2):
        assert not age.check(STAMP_NS + (i + 1) * PERIOD, START_NS + i * PERIOD)
        fault = age.check(STAMP_NS + i * PERIOD, START_NS + (i + 1) * PERIOD)
        assert fault == "older than the one before by 2.0 ms"


@pytest.mark.parametrize("step_ms", [-3_600_000, -900, -50, 50, 900, 3_600_000])
def test_a_clock_that_is_set_costs_a_few_samples_at_most(step_ms: int) -> None:
    age = running()
    faults = [
        age.check(STAMP_NS + i * PERIOD + step_ms * MS, START_NS + i * PERIOD)
        for i in range(50, 150)
    ]
    assert sum(map(bool, faults)) < 5
    assert not any(faults[5:])
    assert age.check(STAMP_NS + 150 * PERIOD + step_ms * MS, START_NS + 150 * PERIOD + 100 * MS)


def test_a_stream_without_stamps_is_never_blamed() -> None:
    age = SampleAge(20 * MS)
    assert not any(age.check(0, START_NS + i * 500 * MS) for i in range(10))


def test_a_clock_that_stands_still_is_never_blamed() -> None:
    age = running()
    assert not any(age.check(STAMP_NS + 49 * PERIOD, START_NS + i * 50 * MS) for i in range(2, 20))
    assert not age.check(STAMP_NS + 500 * PERIOD, START_NS + 500 * PERIOD)


def test_no_limit_leaves_the_order() -> None:
    age = SampleAge(0)
    assert not age.check(STAMP_NS, START_NS)
    assert not age.check(STAMP_NS + MS, START_NS + 1000 * MS)
    assert "older" in age.check(STAMP_NS, START_NS + 1001 * MS)
