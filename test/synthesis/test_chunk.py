"""Chunks: columns, sizes, the end at rest, timed outputs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from kv_action_router.contracts import CHUNK_PERIOD, CHUNK_SAMPLES, ChunkKind, Decision
from kv_action_router.synthesis.chunk import ChunkMaker
from kv_action_router.synthesis.headers import answering, continuing
from kv_action_router.synthesis.reference import Reference
from kv_action_router.synthesis.spline import Motion
from kv_action_router.tasks.stages import TimedOutput

MS = 1_000_000
MAKER = ChunkMaker(("a", "b"))


def made(reference: Reference, anchor_ns: int, **more):  # type: ignore[no-untyped-def]
    return MAKER.make(reference, anchor_ns, Decision(), ChunkKind.DECISION, phase=0.5, **more)


def test_one_waypoint_is_a_finite_hold() -> None:
    chunk = made(Reference(Motion.through(np.array([0.3, -0.4])), 0), 7 * MS)
    assert chunk.samples.shape == (CHUNK_SAMPLES, 4)
    assert np.allclose(chunk.samples, [0.3, -0.4, 0.0, 0.0], atol=1e-12)
    assert chunk.ends_at_rest


def test_samples_are_the_reference_half_a_millisecond_apart() -> None:
    motion = Motion.through(np.array([[0.0, 0.0], [0.5, 1.0], [1.0, 0.3]]))
    chunk = made(Reference(motion, 100 * MS), 600 * MS)
    times = 0.5 + np.arange(CHUNK_SAMPLES) * CHUNK_PERIOD
    assert np.allclose(chunk.samples[:, :2], motion.derivative(times, 0))
    assert np.allclose(chunk.samples[:, 2:], motion.derivative(times, 1))
    assert chunk.columns == ("a/position", "b/position", "a/velocity", "b/velocity")
    assert chunk.samples.flags.c_contiguous
    assert not chunk.ends_at_rest
    assert chunk.anchor_ns == 600 * MS


def test_velocity_column_is_the_derivative_of_the_position_column() -> None:
    motion = Motion.through(np.array([[0.0, 0.0], [0.5, 1.0], [1.0, 0.3]]))
    chunk = made(Reference(motion, 0), 700 * MS)
    slope = np.gradient(chunk.samples[:, :2], CHUNK_PERIOD, axis=0)[2:-2]
    assert np.allclose(slope, chunk.samples[2:-2, 2:], atol=1e-3)


@pytest.mark.parametrize(
    ("anchor", "times"), [(0, [0.0, 0.04]), (30, [0.01]), (50, []), (-20, [0.02])]
)
def test_timed_outputs_count_from_the_motion(anchor: int, times: list[float]) -> None:
    outputs = (TimedOutput("horn", 0.0, 1.0), TimedOutput("horn", 0.04, 0.0))
    chunk = made(
        Reference(Motion.hold(np.zeros(2)), 0),
        (1000 + anchor) * MS,
        outputs=outputs,
        outputs_origin_ns=1000 * MS,
    )
    assert [item.time for item in chunk.auxiliary] == pytest.approx(times)


def test_headers_lose_nothing_on_the_way() -> None:
    """They are written out field by field: a new field must be carried, too."""
    match = dataclasses.replace(
        Decision(**{field.name: field.name for field in dataclasses.fields(Decision)}),  # type: ignore[arg-type]
        stage_ns=(1, 2, 3, 4, 5),
    )
    caused = answering(match, 9, 8, 7)
    assert caused == dataclasses.replace(match, sequence=9, epoch=8, stage_ns=(1, 2, 3, 7, 5))
    assert continuing(match, 6, 5, 9, 8, 7) == dataclasses.replace(
        match,
        trace_id=0,
        trigger_monotonic_ns=6,
        stage_ns=(0, 0, 0, 7, 0),
        sequence=9,
        epoch=8,
        decision_id=5,
    )
