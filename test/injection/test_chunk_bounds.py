"""The quick look at a chunk takes nothing that the closer one refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from injection_builders import START_NS, TwoJoints, chunk, execution_value, moving

from kv_action_router.injection.chunk_bounds import ChunkBounds
from kv_action_router.injection.chunk_table import ChunkChecker
from kv_action_router.injection.execution_table import ExecutionTable

MODEL = TwoJoints()
LIMITS = ExecutionTable(MODEL, execution_value()).current


def bounds() -> ChunkBounds:
    made = ChunkBounds(2)
    made.set(LIMITS, MODEL.lower.tolist(), MODEL.upper.tolist(), MODEL.continuous.tolist())
    return made


def test_an_ordinary_chunk_needs_no_closer_look() -> None:
    new = chunk(moving([0.1, 500.0], [1.9, -1.9]), START_NS)
    assert bounds().hold(new.samples)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("row", [0, 42, 99])
@pytest.mark.parametrize("column", range(4))
def test_what_is_not_finite_needs_one(bad: float, row: int, column: int) -> None:
    new = chunk(moving([0.1, 0.2], [0.5, -0.5]), START_NS)
    new.samples[row, column] = bad
    assert not bounds().hold(new.samples)


@given(
    start=st.floats(-3.0, 3.0),
    speed=st.tuples(st.floats(-2.1, 2.1), st.floats(-2.1, 2.1)),
    where=st.tuples(st.integers(0, 99), st.integers(0, 3)),
    change=st.floats(-0.02, 0.02),
    ramp=st.floats(-11.0, 11.0),
)
def test_what_passes_passes_the_closer_look_too(
    start: float,
    speed: tuple[float, float],
    where: tuple[int, int],
    change: float,
    ramp: float,
) -> None:
    def path(t: float) -> tuple[list[float], list[float]]:
        moved = [start + speed[0] * t + 0.5 * ramp * t * t, speed[1] * t]
        return moved, [speed[0] + ramp * t, speed[1]]

    new = chunk(path, START_NS)
    new.samples[where] += change
    if bounds().hold(new.samples):
        _, rows = ChunkChecker(MODEL)._look_closer(new, new.samples, LIMITS)  # does not raise
        assert np.array_equal(rows, new.samples)
