"""The body slice: constant norm, near poses are near, what is not measured is masked."""

import numpy as np
import pytest
from encoding_builders import POSE, SECOND, imu
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kv_action_router.contracts import SLICE_NORMS
from kv_action_router.encoding.body_slice import BodyEncoder, MaskedInput

ALL = MaskedInput(63)
LIMIT = np.full(6, np.pi)
BODY = BodyEncoder(LIMIT)
poses = hnp.arrays(float, 6, elements=st.floats(-6.3, 6.3))
anything = hnp.arrays(float, 6, elements=st.floats(allow_nan=True, allow_infinity=True))


@pytest.fixture
def body():
    return BODY


def cosine(first, second):
    return float(first @ second) / SLICE_NORMS["body"] ** 2


@given(poses, anything, anything, anything)
def test_norm_is_constant_and_finite_whatever_comes(pose, velocity, duty, others):
    sample = imu(
        SECOND,
        orientation=others[:4],
        angular_velocity=others[:3],
        linear_acceleration=others[3:],
    )
    values, _ = BODY.encode(
        pose, velocity, duty=duty, displacement=others[:3], odometry_confidence=0.5, imu=sample
    )
    assert values.dtype == np.float32
    assert np.isfinite(values).all()
    assert np.linalg.norm(values) == pytest.approx(SLICE_NORMS["body"], abs=1e-6)


def test_same_pose_is_one_and_a_fifth_of_a_radian_shows(body):
    here, _ = body.encode(POSE, np.zeros(6))
    again, _ = body.encode(POSE.copy(), np.zeros(6))
    assert np.array_equal(here, again)
    for joint in range(6):
        moved = POSE.copy()
        moved[joint] += 0.2
        similar = cosine(here, body.encode(moved, np.zeros(6))[0])
        assert 0.9 < similar < 0.999
        moved[joint] += 0.6
        assert cosine(here, body.encode(moved, np.zeros(6))[0]) < similar


def test_a_turn_more_is_the_same_pose(body):
    turned = POSE + 2.0 * np.pi
    here, there = body.encode(POSE, np.zeros(6))[0], body.encode(turned, np.zeros(6))[0]
    assert cosine(here, there) == pytest.approx(1.0, abs=1e-6)


def test_noise_of_the_sensors_does_not_show(body):
    generator = np.random.default_rng(1)
    here, _ = body.encode(POSE, np.zeros(6), imu=imu(SECOND))
    noisy, _ = body.encode(
        POSE + 1e-4 * generator.standard_normal(6),
        1e-3 * generator.standard_normal(6),
        imu=imu(SECOND, linear_acceleration=np.array([0.05, -0.05, 9.86])),
    )
    assert cosine(here, noisy) > 0.9999


def test_masks_name_what_is_missing(body):
    _, masked = body.encode(POSE, np.full(6, np.nan))
    assert masked == ALL
    _, masked = body.encode(
        POSE,
        np.zeros(6),
        duty=np.zeros(6),
        displacement=np.zeros(3),
        odometry_confidence=1.0,
        imu=imu(SECOND),
    )
    assert masked == MaskedInput.NONE
    _, masked = body.encode(POSE, np.zeros(6), imu=imu(SECOND, orientation=np.full(4, np.nan)))
    assert masked == MaskedInput.DUTY | MaskedInput.ODOMETRY | MaskedInput.IMU_ORIENTATION
    _, masked = body.encode(POSE, np.zeros(6), imu=imu(SECOND, orientation=np.zeros(4)))
    assert MaskedInput.IMU_ORIENTATION in masked  # a zero quaternion is no orientation


def test_masked_input_has_no_weight(body):
    without, _ = body.encode(POSE, np.full(6, np.nan))
    at_rest, _ = body.encode(POSE, np.zeros(6))
    assert np.array_equal(without, at_rest)


def test_odometry_counts_with_its_confidence(body):
    far = np.array([1.0, 0.5, 0.3])
    still, _ = body.encode(POSE, np.zeros(6), displacement=np.zeros(3), odometry_confidence=1.0)
    cosines = [
        cosine(
            still,
            body.encode(POSE, np.zeros(6), displacement=far, odometry_confidence=confidence)[0],
        )
        for confidence in (0.0, 0.5, 1.0)
    ]
    assert cosines[0] == pytest.approx(1.0, abs=1e-6)
    assert cosines[0] > cosines[1] > cosines[2]


def test_tilt_of_the_imu_shows(body):
    upright, _ = body.encode(POSE, np.zeros(6), imu=imu(SECOND))
    tilted = np.array([np.sin(0.4), 0.0, 0.0, np.cos(0.4)])
    other, _ = body.encode(POSE, np.zeros(6), imu=imu(SECOND, orientation=tilted))
    assert cosine(upright, other) < 0.9999
    turned = np.array([0.0, 0.0, np.sin(0.4), np.cos(0.4)])
    same, _ = body.encode(POSE, np.zeros(6), imu=imu(SECOND, orientation=turned))
    assert cosine(upright, same) == pytest.approx(1.0, abs=1e-6)  # heading is not gravity


def test_bits_are_those_of_the_message():
    message = pytest.importorskip(
        "kv_action_router.msg", reason="no messages here: run `make setup`"
    ).TaskKey
    for bit in MaskedInput:
        assert getattr(message, f"MASK_{bit.name}") == bit.value
