"""Written bytes of a driver's streams say what was written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="no ROS 2 here")

from geometry_msgs.msg import WrenchStamped
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import CameraInfo, Image, Imu, JointState

from kv_action_router.errors import InputError
from kv_action_router.msg import DriveState
from kv_action_router.ros.sensor_messages import (
    camera_info_writer,
    drive_state_writer,
    image_writer,
    imu_writer,
    joint_state_writer,
    pose_message,
    stamp_of,
    truth_message,
    wrench_writer,
)
from kv_action_router.ros.wire import FieldWriter

STAMP_NS = 1_700_000_000_123_456_789


def written(writer: FieldWriter, kind: type, *values: Any) -> Any:
    """Return the message of the bytes, once its stamp has been looked at."""
    message = deserialize_message(writer.write((*stamp_of(STAMP_NS), *values)), kind)
    stamp = message.header.stamp
    assert stamp.sec * 1_000_000_000 + stamp.nanosec == STAMP_NS
    return message


@pytest.mark.parametrize("names", [("a",), ("a", "bb"), ("ccc", "a", "bb"), tuple("abcdefg")])
def test_joint_states(names: tuple[str, ...]) -> None:
    writer = joint_state_writer(names, "base")
    generator = np.random.default_rng(0)
    for _ in range(3):
        values = generator.normal(size=(3, len(names)))
        message = written(writer, JointState, *values)
        assert tuple(message.name) == names
        assert message.header.frame_id == "base"
        assert list(message.position) == values[0].tolist()
        assert list(message.velocity) == values[1].tolist()
        assert list(message.effort) == values[2].tolist()


def test_wrench() -> None:
    message = written(wrench_writer("tool"), WrenchStamped, *range(1, 7))
    force, torque = message.wrench.force, message.wrench.torque
    assert [force.x, force.y, force.z, torque.x, torque.y, torque.z] == [1, 2, 3, 4, 5, 6]
    assert message.header.frame_id == "tool"


def test_imu() -> None:
    message = written(imu_writer("tool", 0.1, 0.02), Imu, *range(1, 11))
    turn, rate = message.orientation, message.angular_velocity
    acceleration = message.linear_acceleration
    assert [turn.x, turn.y, turn.z, turn.w] == [1, 2, 3, 4]
    assert [rate.x, rate.y, rate.z] == [5, 6, 7]
    assert [acceleration.x, acceleration.y, acceleration.z] == [8, 9, 10]
    assert message.linear_acceleration_covariance[4] == pytest.approx(0.01)
    assert message.angular_velocity_covariance[8] == pytest.approx(0.0004)


def test_values_of_another_number_are_refused() -> None:
    with pytest.raises(InputError, match="values must be 8, one for each name, got 2"):
        wrench_writer("tool").write(stamp_of(STAMP_NS))
    with pytest.raises(InputError, match="values must be 5, one for each name, got 3"):
        joint_state_writer(("a",), "base").write((*stamp_of(STAMP_NS), np.zeros(2)))


def test_drive_state() -> None:
    writer = drive_state_writer(("a", "b"))
    for braked in (True, False):
        message = written(
            writer,
            DriveState,
            np.array([30.0, 40.0]),
            np.ones(2),
            np.full(2, 9.0),
            np.array([0.5, -0.5]),
            (braked,) * 2,
            np.array([1.5, -2.5]),
        )
        assert list(message.name) == ["a", "b"]
        assert list(message.temperature) == [30.0, 40.0]
        assert list(message.current) == [1.0, 1.0]
        assert list(message.rated_current) == [9.0, 9.0]
        assert list(message.duty) == [0.5, -0.5]
        assert list(message.braked) == [braked, braked]
        assert list(message.voltage) == [1.5, -2.5]
        assert len(message.wheel_speed) == 0


@pytest.mark.parametrize(
    ("encoding", "shape", "kind"),
    [("rgb8", (4, 6, 3), np.uint8), ("16UC1", (4, 6), np.uint16), ("32FC1", (4, 6), np.float32)],
)
def test_images(encoding: str, shape: tuple[int, ...], kind: type) -> None:
    writer = image_writer(encoding, shape, kind, "camera")
    for offset in (0, 7):
        pixels = (np.arange(np.prod(shape)) + offset).reshape(shape).astype(kind)
        message = written(writer, Image, pixels.view(np.uint8))
        assert (message.height, message.width, message.encoding) == (4, 6, encoding)
        assert message.header.frame_id == "camera"
        assert message.step == pixels.strides[0]
        assert not message.is_bigendian
        np.testing.assert_array_equal(np.frombuffer(message.data, kind).reshape(shape), pixels)


def test_camera_info() -> None:
    matrix = np.array([[300.0, 0.0, 159.5], [0.0, 300.0, 119.5], [0.0, 0.0, 1.0]])
    message = written(camera_info_writer(320, 240, matrix, "camera"), CameraInfo)
    assert (message.width, message.height, message.distortion_model) == (320, 240, "plumb_bob")
    np.testing.assert_array_equal(np.reshape(message.k, (3, 3)), matrix)
    np.testing.assert_array_equal(np.reshape(message.p, (3, 4))[:, :3], matrix)


def test_truth_is_not_measured_until_there_is_contact() -> None:
    message = truth_message("placed", STAMP_NS, np.array([1.0, 2.0, 3.0]), np.zeros(3), "base")
    assert (message.target.position.x, message.target.orientation.w) == (1.0, 1.0)
    assert np.isnan(message.error)
    assert np.isnan(message.force)
    assert pose_message(np.zeros(3), np.pi).orientation.z == pytest.approx(1.0)
