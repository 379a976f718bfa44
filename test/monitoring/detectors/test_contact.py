"""Contact force is what is there beyond the tare, in every direction, and never invented."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.monitoring.detectors.contact import ContactDetector
from kv_action_router.monitoring.samples import WrenchSample
from kv_action_router.monitoring.signals import SignalTable

MS = 1_000_000


def feed(detector: ContactDetector, table: SignalTable, ms: float, force: list[float]) -> float:
    sample = WrenchSample((*force, 0.0, 0.0, 0.0), int(ms * MS))
    detector.on_wrench(sample, table)
    return table.value("wrench_force", int(ms * MS))


def tared(bias: list[float]) -> tuple[ContactDetector, SignalTable]:
    detector, table = ContactDetector(), SignalTable()
    for index in range(16):
        feed(detector, table, index * 4, bias)
    assert detector.tare(60 * MS)
    return detector, table


def test_nothing_is_measured_before_the_first_tare() -> None:
    detector, table = ContactDetector(), SignalTable()
    assert math.isnan(feed(detector, table, 0, [50.0, 0.0, 0.0]))
    assert not detector.tare(0)


def test_bias_and_weight_are_taken_off() -> None:
    detector, table = tared([1.0, -2.0, -12.0])
    assert feed(detector, table, 64, [1.0, -2.0, -12.0]) == pytest.approx(0.0)
    assert feed(detector, table, 68, [1.0, -2.0, -6.0]) == pytest.approx(6.0)


def test_a_push_against_the_bias_is_seen() -> None:
    """The norm alone would fall from 12 to 6 N here."""
    detector, table = tared([0.0, 0.0, -12.0])
    assert feed(detector, table, 64, [0.0, 0.0, -6.0]) == pytest.approx(6.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_not_measured_and_no_tare(bad: float) -> None:
    detector, table = tared([0.0, 0.0, 0.0])
    assert math.isnan(feed(detector, table, 64, [0.0, bad, 0.0]))
    for index in range(16):
        feed(detector, table, 68 + index, [0.0, 0.0, 1.0])
    assert detector.tare(84 * MS)
    assert feed(detector, table, 85, [0.0, 0.0, 1.0]) == pytest.approx(0.0)


def test_old_samples_make_no_tare() -> None:
    detector, table = ContactDetector(), SignalTable()
    for index in range(16):
        feed(detector, table, index * 4, [0.0, 0.0, 1.0])
    assert not detector.tare(500 * MS)
    assert not detector.has_tare


vectors = st.lists(st.floats(-200.0, 200.0), min_size=3, max_size=3)


@given(vectors, vectors)
def test_force_is_the_distance_from_the_tare(bias: list[float], force: list[float]) -> None:
    detector, table = tared(bias)
    expected = float(np.linalg.norm(np.array(force) - np.array(bias)))
    assert feed(detector, table, 64, force) == pytest.approx(expected, abs=1e-9)
