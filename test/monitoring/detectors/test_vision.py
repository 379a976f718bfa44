"""Silence shows as age."""

from __future__ import annotations

import math

import pytest

from kv_action_router.monitoring.detectors.vision import VisionDetector
from kv_action_router.monitoring.samples import KeySample
from kv_action_router.monitoring.signals import SignalTable

MS = 1_000_000


def test_ages_go_on_growing_while_no_key_comes() -> None:
    table, detector = SignalTable(), VisionDetector()
    detector.measure(table, 0)
    assert math.isnan(table.value("image_age", 0))
    detector.on_key(KeySample(0.030, 100 * MS), table)
    detector.measure(table, 100 * MS)
    assert table.value("image_age", 100 * MS) == pytest.approx(0.030)
    detector.measure(table, 400 * MS)
    assert table.value("key_age", 400 * MS) == pytest.approx(0.300)
    assert table.value("image_age", 400 * MS) == pytest.approx(0.330)


def test_an_image_that_was_never_seen_has_no_age() -> None:
    table, detector = SignalTable(), VisionDetector()
    detector.on_key(KeySample(math.nan, 0), table)
    detector.measure(table, 0)
    assert math.isnan(table.value("image_age", 0))
    assert table.value("key_age", 0) == 0.0


def test_a_target_must_be_seen_while_a_stage_looks_for_it() -> None:
    table, detector = SignalTable(), VisionDetector()
    detector.on_key(KeySample(0.030, 0, 0.2), table)
    detector.measure(table, 0)
    assert math.isnan(table.value("target_age", 0))
    detector.on_task(looks=True)
    detector.measure(table, 500 * MS)
    assert table.value("target_age", 500 * MS) == pytest.approx(0.7)
    detector.on_task(looks=False)
    detector.measure(table, 510 * MS)
    assert math.isnan(table.value("target_age", 510 * MS))


def test_the_confidence_is_the_encoders_own() -> None:
    table, detector = SignalTable(), VisionDetector()
    detector.on_key(KeySample(0.03, 0), table)
    assert math.isnan(table.value("odometry_confidence", 0))  # there is no odometry
    detector.on_key(KeySample(0.03, 5, 0.2, 0.35), table)
    assert table.value("odometry_confidence", 5) == 0.35
