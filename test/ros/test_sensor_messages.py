"""Messages that are filled in place say what they were filled with."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="no ROS 2 here")

from geometry_msgs.msg import WrenchStamped
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import Imu, JointState

from kv_action_router.ros.sensor_messages import (
    CameraInfoMessage,
    DriveStateMessage,
    ImageMessage,
    imu_message,
    joint_state_message,
    pose_message,
    truth_message,
    wrench_message,
)
from kv_action_router.ros.serialized import Marks, PatchedMessage

STAMP_NS = 1_700_000_000_123_456_789


def stamp_of(message: object) -> int:
    stamp = message.header.stamp
    return stamp.sec * 1_000_000_000 + stamp.nanosec


@pytest.mark.parametrize("names", [("a",), ("a", "bb"), ("ccc", "a", "bb"), tuple("abcdefg")])
def test_joint_states(names: tuple[str, ...]) -> None:
    patched = joint_state_message(names, "base")
    generator = np.random.default_rng(0)
    for _ in range(3):
        values = generator.normal(size=(3, len(names)))
        message = deserialize_message(patched.fill(STAMP_NS, *values), JointState)
        assert tuple(message.name) == names
        assert message.header.frame_id == "base"
        assert stamp_of(message) == STAMP_NS
        assert list(message.position) == values[0].tolist()
        assert list(message.velocity) == values[1].tolist()
        assert list(message.effort) == values[2].tolist()


def test_wrench() -> None:
    message = deserialize_message(
        wrench_message("tool").fill(STAMP_NS, np.arange(1.0, 7.0)), WrenchStamped
    )
    force, torque = message.wrench.force, message.wrench.torque
    assert [force.x, force.y, force.z, torque.x, torque.y, torque.z] == [1, 2, 3, 4, 5, 6]
    assert (message.header.frame_id, stamp_of(message)) == ("tool", STAMP_NS)


def test_imu() -> None:
    patched = imu_message("tool", 0.1, 0.02)
    raw = patched.fill(STAMP_NS, np.arange(1.0, 5.0), np.arange(5.0, 8.0), np.arange(8.0, 11.0))
    message = deserialize_message(raw, Imu)
    turn, rate = message.orientation, message.angular_velocity
    acceleration = message.linear_acceleration
    assert [turn.x, turn.y, turn.z, turn.w] == [1, 2, 3, 4]
    assert [rate.x, rate.y, rate.z] == [5, 6, 7]
    assert [acceleration.x, acceleration.y, acceleration.z] == [8, 9, 10]
    assert message.linear_acceleration_covariance[4] == pytest.approx(0.01)
    assert message.angular_velocity_covariance[8] == pytest.approx(0.0004)


def test_a_mark_that_is_missing_is_refused() -> None:
    marks = Marks()
    marks.take(1)
    with pytest.raises(ValueError, match="mark 0 must be in the message once"):
        PatchedMessage(JointState(), marks)


def test_values_of_another_number_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        wrench_message("tool").fill(STAMP_NS)
    with pytest.raises(ValueError, match="broadcast"):
        wrench_message("tool").fill(STAMP_NS, np.zeros(3))


def test_drive_state() -> None:
    message = DriveStateMessage(("a", "b")).fill(
        STAMP_NS, np.array([30.0, 40.0]), np.ones(2), np.full(2, 9.0), np.zeros(2), True
    )
    assert list(message.temperature) == [30.0, 40.0]
    assert list(message.rated_current) == [9.0, 9.0]
    assert list(message.braked) == [True, True]
    assert len(message.wheel_speed) == 0


@pytest.mark.parametrize(
    ("encoding", "shape", "kind"),
    [("rgb8", (4, 6, 3), np.uint8), ("16UC1", (4, 6), np.uint16), ("32FC1", (4, 6), np.float32)],
)
def test_images(encoding: str, shape: tuple[int, ...], kind: type) -> None:
    pixels = np.arange(np.prod(shape)).reshape(shape).astype(kind)
    message = ImageMessage(encoding, shape, kind, "camera").fill(STAMP_NS, pixels)
    assert (message.height, message.width, message.encoding) == (4, 6, encoding)
    assert message.step == pixels.strides[0]
    assert not message.is_bigendian
    np.testing.assert_array_equal(np.frombuffer(message.data, kind).reshape(shape), pixels)


def test_camera_info() -> None:
    matrix = np.array([[300.0, 0.0, 159.5], [0.0, 300.0, 119.5], [0.0, 0.0, 1.0]])
    message = CameraInfoMessage(320, 240, matrix, "camera").fill(STAMP_NS)
    np.testing.assert_array_equal(np.reshape(message.k, (3, 3)), matrix)
    np.testing.assert_array_equal(np.reshape(message.p, (3, 4))[:, :3], matrix)
    assert stamp_of(message) == STAMP_NS


def test_truth_is_not_measured_until_there_is_contact() -> None:
    message = truth_message("placed", STAMP_NS, np.array([1.0, 2.0, 3.0]), np.zeros(3), "base")
    assert (message.target.position.x, message.target.orientation.w) == (1.0, 1.0)
    assert np.isnan(message.error)
    assert np.isnan(message.force)
    assert pose_message(np.zeros(3), np.pi).orientation.z == pytest.approx(1.0)
