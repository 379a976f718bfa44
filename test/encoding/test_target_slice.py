"""The target slice decodes to what was encoded, has one norm, and falls with distance."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.contracts import SLICE_NORMS, Pose
from kv_action_router.encoding import target_slice
from kv_action_router.errors import InputError

coordinate = st.floats(-1.9, 1.9)
angle = st.floats(-10.0, 10.0)


@given(coordinate, coordinate, coordinate, angle)
def test_decode_is_the_inverse(x, y, z, yaw):
    position, turn = target_slice.decode(target_slice.encode(np.array([x, y, z]), yaw))
    assert np.abs(position - [x, y, z]).max() < 1e-4
    assert abs(math.remainder(turn - yaw, 2.0 * math.pi)) < 1e-4


@given(coordinate, coordinate, coordinate, angle)
def test_norm_is_constant(x, y, z, yaw):
    values = target_slice.encode(np.array([x, y, z]), yaw)
    assert values.dtype == np.float32
    assert np.linalg.norm(values) == pytest.approx(SLICE_NORMS["target"], abs=1e-6)


@given(coordinate, coordinate, coordinate, st.floats(0.0, 0.24), st.floats(0.001, 0.2))
def test_similarity_falls_with_distance_and_is_the_cosine(x, y, z, near, more):
    here = target_slice.encode(np.array([x, y, z]), 0.3)
    direction = np.array([-np.sign(x) or 1.0, -np.sign(y) or 1.0, 0.0]) / math.sqrt(2.0)
    norm = SLICE_NORMS["target"] ** 2
    cosines = []
    for distance in (near, near + more):
        there = target_slice.encode(np.array([x, y, z]) + distance * direction, 0.3)
        cosines.append(float(here @ there) / norm)
        expected = target_slice.similarity(distance * direction)
        assert cosines[-1] == pytest.approx(expected, abs=1e-5)
    assert cosines[1] < cosines[0] + 1e-6


def test_table_falls_from_one():
    table = np.array(target_slice.similarity_table())
    assert table[0].tolist() == [0.0, 1.0, 1.0]
    assert (np.diff(table[:, 1]) < 0.0).all()
    assert (np.diff(table[:, 2]) < 0.0).all()
    twenty = table[table[:, 0] == 0.02][0]
    assert 1.0 - twenty[1] > 1e-3  # two centimeters are visible in a float32 key


def test_noise_of_a_float32_key_stays_below_the_guarantee():
    values = target_slice.encode(np.array([1.3, -0.7, 0.2]), 1.0)
    noisy = values + np.float32(1e-5) * np.resize([1, -1], 16).astype(np.float32)
    position, yaw = target_slice.decode(noisy)
    assert np.abs(position - [1.3, -0.7, 0.2]).max() < 1e-4
    assert yaw == pytest.approx(1.0, abs=1e-4)


def test_pose_survives():
    pose = Pose(np.array([0.4, -0.2, 0.01]), np.array([0.0, 0.0, math.sin(0.6), math.cos(0.6)]))
    back = target_slice.decode_pose(target_slice.encode_pose(pose))
    assert np.allclose(back.position, pose.position, atol=1e-5)
    assert np.allclose(back.orientation, pose.orientation, atol=1e-5)


@pytest.mark.parametrize("position", [[2.0, 0.0, 0.0], [0.0, math.nan, 0.0], [0.0, 0.0, -math.inf]])
def test_what_cannot_be_decoded_is_not_encoded(position):
    with pytest.raises(InputError, match="within"):
        target_slice.encode(np.array(position), 0.0)


def test_yaw_must_be_finite():
    with pytest.raises(InputError, match="yaw"):
        target_slice.encode(np.zeros(3), math.nan)


@pytest.mark.parametrize("values", [np.zeros(16), np.full(16, np.nan), np.ones(15)])
def test_slice_without_a_target_is_refused(values):
    with pytest.raises(InputError, match="target slice"):
        target_slice.decode(values.astype(np.float32))
