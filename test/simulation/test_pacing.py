"""Rates, deadlines and the real-time factor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.simulation.pacing import Pace, Rate, RealTimeFactor

MS = 1_000_000


@given(st.integers(1, 500), st.integers(100, 3000))
def test_a_stream_is_due_as_often_as_its_rate_says(rate: int, steps: int) -> None:
    stream = Rate(rate, 0.002)
    count = sum(stream.due(step) for step in range(steps))
    assert abs(count - rate * 0.002 * steps) <= 1.0


def test_late_ticks_are_made_up_for() -> None:
    pace = Pace(2 * MS, 10 * MS, 0)
    pace.advance(9 * MS)  # 7 ms late
    assert pace.due_ns == 4 * MS
    assert pace.lost_ns == 0


def test_what_is_beyond_the_limit_is_given_up() -> None:
    pace = Pace(2 * MS, 10 * MS, 0)
    pace.advance(102 * MS)  # 100 ms late
    assert pace.lost_ns == 90 * MS
    assert pace.due_ns == 94 * MS


def test_factor_of_a_slow_simulation() -> None:
    factor = RealTimeFactor()
    value = 1.0
    for tick in range(40):
        value = factor.update(tick * 100 * MS, tick * 0.08)
    assert value == pytest.approx(0.8)


def test_factor_forgets_what_is_older_than_its_window() -> None:
    factor = RealTimeFactor()
    simulated = 0.0
    for tick in range(60):
        value = factor.update(tick * 100 * MS, simulated)
        simulated += 0.05 if tick < 30 else 0.1
    assert value == pytest.approx(1.0)
