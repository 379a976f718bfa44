"""Ramp to rest: on the path, inside the deceleration, at rest in the end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.injection.ramp import Ramp

START = 7_000_000_000
speeds = st.tuples(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0))
accelerations = st.tuples(st.floats(-10.0, 10.0), st.floats(-10.0, 10.0))


def sampled(ramp: Ramp, count: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = ([], [], [])
    for t in np.linspace(0.0, ramp.duration, count):
        state = ([0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
        ramp.evaluate(START + round(t * 1e9), *state)
        for row, values in zip(rows, state, strict=True):
            row.append(list(values))
    return tuple(np.array(row) for row in rows)


@given(speeds, accelerations)
def test_begins_with_the_state_and_ends_at_rest_inside_limits(
    speed: tuple[float, float], acceleration: tuple[float, float]
) -> None:
    ramp = Ramp(2)
    ramp.begin(START, [0.3, -0.2], speed, acceleration, [10.0, 10.0])
    position, velocity, rate = sampled(ramp)
    assert position[0] == pytest.approx([0.3, -0.2])
    assert velocity[0] == pytest.approx(speed)
    assert velocity[-1] == pytest.approx([0.0, 0.0], abs=1e-6)
    assert rate[-1] == pytest.approx([0.0, 0.0], abs=1e-5)
    assert np.abs(rate).max() <= 10.0 + 1e-6
    assert (np.abs(velocity) <= np.abs(np.array(speed)) + 1e-9).all()  # never speeds up
    assert [ramp.stop_position(i) for i in range(2)] == pytest.approx(position[-1].tolist())


@given(speeds)
def test_direction_is_kept(speed: tuple[float, float]) -> None:
    ramp = Ramp(2)
    ramp.begin(START, [0.0, 0.0], speed, [0.0, 0.0], [10.0, 5.0])
    position, _, _ = sampled(ramp)
    assert np.abs(position[:, 0] * speed[1] - position[:, 1] * speed[0]).max() < 1e-9


def test_half_a_radian_a_second_rests_within_75_ms() -> None:
    ramp = Ramp(1)
    ramp.begin(START, [0.0], [0.5], [0.0], [10.0])
    assert ramp.duration == pytest.approx(0.075)
    assert ramp.done(START + 75_000_001)
