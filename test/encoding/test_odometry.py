"""The odometry window: displacement in the base's own frame, jumps and bad samples kept out."""

import math

import numpy as np
import pytest
from encoding_builders import MS, SECOND

from kv_action_router.encoding.odometry import OdometryEvent, OdometrySample, OdometryWindow


def sample(x, y=0.0, yaw=0.0, at=0):
    return OdometrySample(x, y, yaw, 0.0, 0.0, SECOND + at * MS)


def window():
    return OdometryWindow(1.0, 0.5)


def test_displacement_is_seen_from_where_the_base_was():
    made = window()
    made.update(sample(3.0, 4.0, math.pi / 2))
    made.update(sample(3.0, 4.4, math.pi / 2 + 0.1, at=100))
    moved = made.displacement(SECOND + 100 * MS, 0.2)
    assert np.allclose(moved, [0.4, 0.0, 0.1], atol=1e-12)


def test_only_the_last_second_counts():
    made = window()
    for step in range(300):
        made.update(sample(0.01 * step, at=10 * step))
    assert made.displacement(SECOND + 2990 * MS, 0.2)[0] == pytest.approx(1.0, abs=0.02)


def test_yaw_wraps():
    made = window()
    made.update(sample(0.0, yaw=math.pi - 0.1))
    made.update(sample(0.0, yaw=-math.pi + 0.1, at=10))
    assert made.displacement(SECOND + 10 * MS, 0.2)[2] == pytest.approx(0.2)


def test_jump_empties_the_window_and_it_recovers():
    made = window()
    made.update(sample(0.0))
    made.update(sample(0.1, at=10))
    assert made.update(sample(5.1, at=20)) is OdometryEvent.JUMP
    assert made.jump_length == pytest.approx(5.0)
    assert made.displacement(SECOND + 20 * MS, 0.2) is None
    assert made.update(sample(5.15, at=30)) is OdometryEvent.TAKEN
    assert made.displacement(SECOND + 30 * MS, 0.2)[0] == pytest.approx(0.05)


@pytest.mark.parametrize("bad", [(math.nan, 0.0, 0.0), (0.0, math.inf, 0.0), (0.0, 0.0, math.nan)])
def test_one_bad_sample_is_left_out(bad):
    made = window()
    made.update(sample(0.0))
    assert made.update(sample(*bad, at=10)) is OdometryEvent.INVALID
    made.update(sample(0.2, at=20))
    assert made.displacement(SECOND + 20 * MS, 0.2)[0] == pytest.approx(0.2)


def test_old_samples_and_silence():
    made = window()
    made.update(sample(0.0, at=10))
    assert made.displacement(SECOND + 10 * MS, 0.2) is None  # one sample is no displacement
    assert made.update(sample(1.0, at=5)) is OdometryEvent.OLD
    made.update(sample(0.1, at=20))
    assert made.displacement(SECOND + 220 * MS, 0.2) is not None
    assert made.displacement(SECOND + 221 * MS, 0.2) is None
