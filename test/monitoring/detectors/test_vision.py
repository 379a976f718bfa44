"""Silence shows as age."""

from __future__ import annotations

import math

import pytest

from kv_action_router.monitoring.detectors.vision import ImageAgeDetector
from kv_action_router.monitoring.samples import KeySample
from kv_action_router.monitoring.signals import SignalTable

MS = 1_000_000


def test_ages_go_on_growing_while_no_key_comes() -> None:
    table, detector = SignalTable(), ImageAgeDetector()
    detector.measure(table, 0)
    assert math.isnan(table.value("image_age", 0))
    detector.on_key(KeySample(0.030, 100 * MS))
    detector.measure(table, 100 * MS)
    assert table.value("image_age", 100 * MS) == pytest.approx(0.030)
    detector.measure(table, 400 * MS)
    assert table.value("key_age", 400 * MS) == pytest.approx(0.300)
    assert table.value("image_age", 400 * MS) == pytest.approx(0.330)


def test_an_image_that_was_never_seen_has_no_age() -> None:
    table, detector = SignalTable(), ImageAgeDetector()
    detector.on_key(KeySample(math.nan, 0))
    detector.measure(table, 0)
    assert math.isnan(table.value("image_age", 0))
    assert table.value("key_age", 0) == 0.0
