"""Checks of a chunk: columns by name, finite, nothing outside limits (K01, K05, K15)."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from injection_builders import START_NS, TwoJoints, chunk, execution_value, holding, moving

from kv_action_router.contracts import AuxiliaryOutput, TrajectoryChunk
from kv_action_router.errors import ChunkRefusedError
from kv_action_router.injection.chunk_table import ChunkChecker
from kv_action_router.injection.execution_table import ExecutionTable

MODEL = TwoJoints()
LIMITS = ExecutionTable(MODEL, execution_value()).current
NAMES = ("a/position", "b/position", "a/velocity", "b/velocity")


def table(new: TrajectoryChunk):
    return ChunkChecker(MODEL).check(new, LIMITS)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2), (2, 0, 3, 1)])
def test_columns_come_in_any_order(order: tuple[int, ...]) -> None:
    new = chunk(moving([0.1, 0.2], [0.5, -0.5]), START_NS)
    mixed = dataclasses.replace(
        new, columns=tuple(NAMES[i] for i in order), samples=new.samples[:, list(order)]
    )
    result = table(mixed)
    assert result.rows[0].tolist() == [0.1, 0.2, 0.5, -0.5]
    assert result.velocities[7].tolist() == [0.5, -0.5]
    assert result.accelerations()[50] == pytest.approx([0.0, 0.0])
    assert not result.rests


def test_velocities_are_differentiated_where_they_are_missing() -> None:
    new = chunk(moving([0.1, 0.2], [0.5, -0.5]), START_NS)
    short = dataclasses.replace(new, columns=NAMES[:2], samples=new.samples[:, :2])
    assert table(short).velocities[50] == pytest.approx([0.5, -0.5])


def test_a_joint_may_be_given_by_velocity_only() -> None:
    new = chunk(moving([0.1, 0.2], [0.5, -0.5]), START_NS)
    part = dataclasses.replace(
        new, columns=NAMES[:1] + NAMES[2:], samples=new.samples[:, [0, 2, 3]]
    )
    result = table(part)
    assert result.relative == (False, True)
    assert result.rows[-1, :2] == pytest.approx([0.1 + 0.5 * 0.0495, -0.5 * 0.0495])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("a/position", "c/position", "a/velocity", "b/velocity"), "'c/position' is unknown"),
        (("a/position", "b/torque", "a/velocity", "b/velocity"), "'b/torque' is unknown"),
        (("a/position", "a/position", "a/velocity", "b/velocity"), "'a/position' comes twice"),
        (("a", "b/position", "a/velocity", "b/velocity"), "'a' is unknown"),
        (("a/position", "b/position", "a/velocity"), "must be of shape (100, 3), got (100, 4)"),
    ],
)
def test_columns_that_do_not_fit_are_named(columns: tuple[str, ...], message: str) -> None:
    new = dataclasses.replace(chunk(holding([0.0, 0.0]), START_NS), columns=columns)
    with pytest.raises(ChunkRefusedError) as refusal:
        table(new)
    assert message in str(refusal.value)


def test_a_missing_joint_is_named() -> None:
    new = chunk(holding([0.0, 0.0]), START_NS)
    half = dataclasses.replace(new, columns=("a/position",), samples=new.samples[:, :1])
    with pytest.raises(ChunkRefusedError, match="joint b has neither position nor velocity"):
        table(half)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_not_finite_is_named_with_its_sample(bad: float) -> None:
    new = chunk(holding([0.0, 0.0]), START_NS)
    new.samples[42, 2] = bad
    with pytest.raises(
        ChunkRefusedError, match=rf"a/velocity must be finite, got {bad} in sample 42"
    ):
        table(new)


@pytest.mark.parametrize("count", [0, 1, 2, 99, 101])
def test_other_than_a_hundred_samples_are_refused(count: int) -> None:
    new = chunk(holding([0.0, 0.0]), START_NS)
    samples = np.resize(new.samples, (count, 4))
    with pytest.raises(ChunkRefusedError, match="must be of shape"):
        table(dataclasses.replace(new, samples=samples))


def jumping(t: float) -> tuple[list[float], list[float]]:
    """Way-points on equal steps that no joint can follow: 0, then 1."""
    return ([0.0, 0.0], [0.0, 0.0]) if t < 0.025 else ([1.0, 0.0], [0.0, 0.0])


def test_samples_on_a_limit_are_taken_and_beyond_it_refused() -> None:
    assert table(chunk(holding([3.0, 500.0]), START_NS)).rests
    with pytest.raises(ChunkRefusedError, match="a must stay inside -3.0000 to 3.0000 rad"):
        table(chunk(holding([3.01, 0.0]), START_NS))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (jumping, "velocity of a must be at most 2.0000 rad/s, got 2000"),
        (moving([0.0, 0.0], [0.0, 2.1]), "velocity of b must be at most 2.0000 rad/s, got 2.1"),
        (
            lambda t: ([0.0, 6.0 * t * t], [0.0, 12.0 * t]),
            "acceleration of b must be at most 10.0000 rad/s^2, got 12.0000",
        ),
        (
            lambda t: ([0.0, 0.5 * t], [0.0, 0.0]),
            "b: velocities must be the slope of the positions within 0.02 rad/s, got 0.5",
        ),
    ],
)
def test_outside_limits_is_refused_openly(path, message: str) -> None:
    with pytest.raises(ChunkRefusedError) as refusal:
        table(chunk(path, START_NS))
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("time", "value"), [(-0.01, 1.0), (0.06, 1.0), (math.nan, 1.0), (0.0, math.inf)]
)
def test_auxiliary_outputs_are_checked(time: float, value: float) -> None:
    outputs = (AuxiliaryOutput("horn", time, value),)
    with pytest.raises(ChunkRefusedError, match="auxiliary horn must be finite"):
        table(chunk(holding([0.0, 0.0]), START_NS, auxiliary=outputs))
