"""Rest for good: nothing that moves later may be overlooked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.reporting.rest import SpeedLog

LIMIT = 0.01


def log_of(*speeds: float) -> SpeedLog:
    """A sample every 2 ns from 0 on."""
    log = SpeedLog()
    for index, speed in enumerate(speeds):
        log.add(2 * index, speed)
    return log


def test_rest_begins_with_the_first_sample_of_those_that_stay():
    log = log_of(0.5, 0.4, 0.01, 0.0, 0.005)
    assert log.rest_ns(0, LIMIT) == 4
    assert log.rested_ns(0, LIMIT) == 4
    assert log.peak(1) == 0.4


def test_a_rest_that_did_not_last_is_none():
    assert log_of(0.5, 0.0, 0.0, 0.02, 0.0).rest_ns(0, LIMIT) == 8


@pytest.mark.parametrize("last", [0.02, float("nan")])
def test_what_moves_or_is_not_known_does_not_rest(last: float):
    log = log_of(0.5, 0.0, last)
    assert log.rest_ns(0, LIMIT) is None
    assert log.rested_ns(0, LIMIT) == 0


def test_without_samples_since_then_nothing_rests():
    assert log_of().rest_ns(0, LIMIT) is None
    assert log_of().newest is None
    assert log_of(0.0, 0.0).rest_ns(3, LIMIT) is None


def test_rest_before_the_instant_does_not_count():
    assert log_of(0.0, 0.0, 0.0).rest_ns(3, LIMIT) == 4


def test_instants_do_not_fall():
    log = log_of(0.0, 0.0)
    with pytest.raises(ValueError, match="must not fall"):
        log.add(1, 0.0)


@given(st.lists(st.floats(0.0, 0.05), min_size=1, max_size=20), st.integers(0, 40))
def test_rest_is_the_earliest_instant_with_nothing_fast_behind_it(speeds: list[float], since: int):
    rest = log_of(*speeds).rest_ns(since, LIMIT)
    quiet = [
        2 * i
        for i in range(len(speeds))
        if 2 * i >= since and all(speed <= LIMIT for speed in speeds[i:])
    ]
    assert rest == (quiet[0] if quiet else None)
