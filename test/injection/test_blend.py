"""Offset blend: starts where it should, ends at 0, stays inside the budget it was given."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.injection.blend import OffsetBlend, shortest_duration

START = 5_000_000_000


def sampled(blend: OffsetBlend, duration: float, count: int = 400) -> np.ndarray:
    """Return position, velocity and acceleration over the blend (count, 3)."""
    rows = []
    for t in np.linspace(0.0, duration, count, endpoint=False):
        p, v, a = [0.0], [0.0], [0.0]
        blend.add_to(START + round(t * 1e9), p, v, a)
        rows.append((p[0], v[0], a[0]))
    return np.array(rows)


def make(p: float, v: float, a: float, duration: float) -> OffsetBlend:
    blend = OffsetBlend(1)
    blend.position[0], blend.velocity[0], blend.acceleration[0] = p, v, a
    blend.start_ns, blend.duration = START, duration
    return blend


differences = st.tuples(st.floats(-0.2, 0.2), st.floats(-2.0, 2.0), st.floats(-10.0, 10.0))


@given(differences, st.floats(0.01, 0.5))
def test_begins_with_the_difference_and_ends_at_nothing(
    difference: tuple[float, float, float], duration: float
) -> None:
    blend = make(*difference, duration)
    rows = sampled(blend, duration)
    assert rows[0] == pytest.approx(difference, abs=1e-9)
    p, v, a = [0.0], [0.0], [0.0]
    blend.add_to(START + round(duration * 1e9) + 1, p, v, a)
    assert (p, v, a) == ([0.0], [0.0], [0.0])
    assert not blend.active(START + round(duration * 1e9) + 1)


@given(differences)
def test_velocity_and_acceleration_are_derivatives(difference: tuple[float, float, float]) -> None:
    duration, count = 0.1, 2000
    rows = sampled(make(*difference, duration), duration, count)
    dt = duration / count
    for column in (0, 1):
        slope = np.diff(rows[:, column]) / dt
        middle = 0.5 * (rows[1:, column + 1] + rows[:-1, column + 1])
        assert np.abs(slope - middle).max() < 1e-3 * (1.0 + np.abs(rows[:, column + 1]).max())


@given(st.floats(-0.2, 0.2), st.floats(-2.0, 2.0), st.floats(1.0, 20.0))
def test_shortest_duration_keeps_the_budget(p: float, v: float, budget: float) -> None:
    duration = shortest_duration([p], [v], [budget])
    if duration < 1e-4:
        return
    rows = sampled(make(p, v, 0.0, duration), duration)
    assert np.abs(rows[:, 2]).max() <= budget * 1.001
