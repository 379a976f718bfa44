"""Slip shows in accelerations that disagree; gravity and small noise do not."""

import numpy as np
import pytest
from encoding_builders import MS, imu

from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.slip import GRAVITY, SlipDetector

CONFIG = EncoderConfig()
PERIOD = 10 * MS


def drive(detector, seconds, wheel, felt, *, rate=0.0, gyro=0.0, pitch=0.0, oriented=True, start=1):
    """Drive with constant accelerations of wheels and body [m/s^2]; return the last confidence."""
    half = pitch / 2.0
    orientation = np.array([0.0, np.sin(half), 0.0, np.cos(half)])
    up = np.array([-np.sin(pitch), 0.0, np.cos(pitch)]) * GRAVITY
    confidence = detector.confidence
    for step in range(round(seconds * 1e9 / PERIOD)):
        now = start * 1_000_000_000 + step * PERIOD
        sample = imu(
            now,
            orientation=orientation if oriented else np.full(4, np.nan),
            linear_acceleration=up + np.array([felt, 0.0, 0.0]),
            angular_velocity=np.array([0.0, 0.0, gyro]),
        )
        confidence = detector.update(sample, wheel * step * PERIOD * 1e-9, rate)
    return confidence


def test_agreeing_accelerations_keep_the_confidence():
    assert drive(SlipDetector(CONFIG), 1.0, 1.0, 1.0) == 1.0
    assert drive(SlipDetector(CONFIG), 1.0, 1.0, 1.5) == 1.0  # below the ratio of 1.8
    assert drive(SlipDetector(CONFIG), 1.0, -1.2, -1.0) == 1.0


@pytest.mark.parametrize(
    ("wheel", "felt"), [(2.0, 0.2), (0.2, 2.0), (1.0, -1.0), (3.0, 1.0), (1.0, 3.0)]
)
def test_spinning_or_sliding_wheels_lose_it(wheel, felt):
    assert drive(SlipDetector(CONFIG), 1.0, wheel, felt) < 0.05


def test_inside_the_dead_band_there_is_no_evidence():
    assert drive(SlipDetector(CONFIG), 1.0, 0.3, 0.0) == 1.0
    assert drive(SlipDetector(CONFIG), 1.0, 0.0, -0.3) == 1.0


def test_gravity_on_a_ramp_is_no_acceleration():
    assert drive(SlipDetector(CONFIG), 1.0, 0.0, 0.0, pitch=0.3) == 1.0
    # without an orientation the estimate starts at the first force felt
    assert drive(SlipDetector(CONFIG), 1.0, 0.0, 0.0, pitch=0.3, oriented=False) == 1.0


def test_without_orientation_slip_is_still_seen():
    detector = SlipDetector(CONFIG)
    drive(detector, 0.5, 0.0, 0.0, oriented=False)
    assert drive(detector, 0.4, 3.0, 0.0, oriented=False, start=1.51) < 0.2


def test_turning_in_place_is_caught_by_the_gyro():
    assert drive(SlipDetector(CONFIG), 1.0, 0.0, 0.0, rate=1.0, gyro=0.2) < 0.05
    assert drive(SlipDetector(CONFIG), 1.0, 0.0, 0.0, rate=1.0, gyro=0.9) == 1.0


def test_confidence_returns_slowly():
    detector = SlipDetector(CONFIG)
    assert drive(detector, 0.5, 3.0, 0.0) < 0.05
    soon = drive(detector, 0.3, 0.0, 0.0, start=2)
    later = drive(detector, 3.0, 0.0, 0.0, start=2.5)
    assert soon < 0.6
    assert later > 0.95


def test_bad_samples_change_nothing():
    detector = SlipDetector(CONFIG)
    drive(detector, 0.3, 1.0, 1.0)
    now = 5_000_000_000
    bad = imu(now, linear_acceleration=np.full(3, np.nan), angular_velocity=np.full(3, np.nan))
    for speed in (np.nan, np.inf, 1.0):
        confidence = detector.update(bad, speed, np.nan)
        assert np.isfinite(confidence)
    assert detector.update(imu(now - 1), 1.0, 0.0) == confidence  # time does not go back
    assert drive(detector, 1.0, 1.0, 1.0, start=6) > 0.9
