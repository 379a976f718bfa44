"""Sharpness: it knows a blurred image from a sharp one, whatever the light; measured when asked."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest
from encoding_builders import CAMERA, CENTER, CONFIG, look
from hypothesis import given, settings
from hypothesis import strategies as st

from kv_action_router.contracts import Pose, TargetEstimate
from kv_action_router.encoding.sharpness import SharpnessMeter, sharpness

TARGET = TargetEstimate(Pose(CENTER), np.eye(6) * 1e-6)


def blurred(sigma: float) -> float:
    """Return what a meter says of a disc on a table behind a lens that blurs by [px]."""
    color, _ = look()
    meter = SharpnessMeter(CONFIG.target_radius)
    meter.camera = CAMERA
    meter.ask(wanted=True)
    meter.look(cv2.GaussianBlur(color, (0, 0), sigma) if sigma else color, TARGET)
    return meter.value


def test_it_falls_with_the_blur() -> None:
    values = [blurred(sigma) for sigma in (0.0, 0.5, 1.0, 1.5, 3.0)]
    assert values == sorted(values, reverse=True)
    assert values[0] > 5.0 * values[3]


@settings(max_examples=25)
@given(gain=st.floats(0.3, 1.0), offset=st.integers(0, 40))
def test_light_changes_it_by_rounding_only(gain: float, offset: int) -> None:
    generator = np.random.default_rng(3)
    gray = generator.integers(0, 200, (24, 30)).astype(np.uint8)
    dimmed = np.rint(gray * gain + offset).astype(np.uint8)
    assert sharpness(dimmed) == pytest.approx(sharpness(gray), rel=0.05)


@pytest.mark.parametrize("shape", [(3, 40), (40, 3)])
def test_a_window_that_is_too_small_is_not_measured(shape: tuple[int, int]) -> None:
    assert math.isnan(sharpness(np.arange(120, dtype=np.uint8).reshape(shape)))


def test_where_nothing_is_to_be_seen_nothing_is_measured() -> None:
    assert math.isnan(sharpness(np.full((20, 20), 90, np.uint8)))


def test_it_is_measured_only_while_somebody_asks_and_the_target_is_seen() -> None:
    color, _ = look()
    meter = SharpnessMeter(CONFIG.target_radius)
    meter.camera = CAMERA
    meter.look(color, TARGET)
    assert math.isnan(meter.value)
    meter.ask(wanted=True)
    meter.look(color, TARGET)
    assert meter.value > 0.0
    meter.look(color, None)
    assert math.isnan(meter.value)
    meter.look(color, TARGET)
    meter.ask(wanted=False)
    assert math.isnan(meter.value)
    behind = TargetEstimate(Pose(CAMERA.origin + np.array([0.0, 0.0, 1.0])), np.eye(6))
    meter.ask(wanted=True)
    meter.look(color, behind)
    assert math.isnan(meter.value)
