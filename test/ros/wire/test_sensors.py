"""Sensors' streams from their bytes: the same as from their messages."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from geometry_msgs.msg import WrenchStamped
from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Imu, JointState

from kv_action_router.errors import InputError
from kv_action_router.msg import DriveState, Heartbeat
from kv_action_router.ros.conversions import drives_from_msg, imu_from_msg, joints_from_msg
from kv_action_router.ros.wire import (
    DriveReader,
    HeartbeatReader,
    ImuReader,
    JointReader,
    WrenchReader,
)

number = st.floats(width=64)


@st.composite
def joint_states(draw: st.DrawFn) -> JointState:
    message = JointState(
        name=draw(st.lists(st.text("abcdefgh_123äß", max_size=12), max_size=8)),
        position=draw(st.lists(number, max_size=8)),
        velocity=draw(st.lists(number, max_size=8)),
        effort=draw(st.lists(number, max_size=8)),
    )
    message.header.frame_id = draw(st.text("abc/_", max_size=9))
    message.header.stamp.sec = draw(st.integers(-(2**31), 2**31 - 1))
    message.header.stamp.nanosec = draw(st.integers(0, 2**32 - 1))
    return message


@settings(max_examples=40)
@given(st.lists(joint_states(), min_size=1, max_size=6))
def test_any_sequence_of_joint_states(sequence: list[JointState]) -> None:
    reader = JointReader()
    for message in sequence:
        data = bytes(serialize_message(message))
        truth = deserialize_message(data, JointState)
        for _ in range(2):
            reading = reader.read(data, 5)
            assert reading.names == tuple(truth.name)
            for field in ("position", "velocity", "effort"):  # repr: NaN equals NaN
                assert repr(list(getattr(reading, field))) == repr(list(getattr(truth, field)))
            stamp = truth.header.stamp
            assert reading.stamp_ns == stamp.sec * 1_000_000_000 + stamp.nanosec
            assert reading.receipt_ns == 5


def test_a_joint_sample_is_that_of_the_message() -> None:
    message = JointState(name=["a", "b"], position=[1.0, 2.0], velocity=[3.0, math.nan])
    data = bytes(serialize_message(message))
    sample, truth = JointReader().sample(data, 7), joints_from_msg(message, 7)
    assert (sample.names, sample.receipt_ns) == (truth.names, 7)
    for field in ("position", "velocity", "effort"):
        np.testing.assert_array_equal(getattr(sample, field), getattr(truth, field))
    message.velocity = [1.0]
    with pytest.raises(InputError, match="velocity must be of size 2, got 1"):
        JointReader().sample(bytes(serialize_message(message)), 7)
    with pytest.raises(InputError, match="name"):
        JointReader().sample(bytes(serialize_message(JointState(position=[1.0]))), 7)


finite = st.floats(-1e6, 1e6)


DRIVE_ARRAYS = ("temperature", "current", "rated_current", "duty", "wheel_speed", "voltage")


@st.composite
def drive_states(draw: st.DrawFn) -> DriveState:
    joints = draw(st.lists(st.text("abc_1", max_size=9), max_size=7))
    size = len(joints)
    arrays = [
        draw(st.one_of(st.just([]), st.lists(finite, min_size=size, max_size=size)))
        for _ in DRIVE_ARRAYS
    ]
    braked = draw(st.one_of(st.just([]), st.lists(st.booleans(), min_size=size, max_size=size)))
    message = DriveState(name=joints, braked=braked)
    message.header.frame_id = draw(st.text("ab", max_size=5))
    for field, values in zip(DRIVE_ARRAYS, arrays, strict=True):
        setattr(message, field, values)
    return message


@settings(max_examples=40)
@given(st.lists(drive_states(), min_size=1, max_size=4))
def test_any_sequence_of_drive_states(sequence: list[DriveState]) -> None:
    reader = DriveReader()
    for message in sequence:
        data = bytes(serialize_message(message))
        truth = drives_from_msg(deserialize_message(data, DriveState), 7)
        for _ in range(2):
            sample = reader.read(data, 7)
            assert (sample.names, sample.receipt_ns) == (truth.names, 7)
            for field in DRIVE_ARRAYS:
                assert getattr(sample, field).tolist() == getattr(truth, field).tolist()
            assert sample.braked.tolist() == truth.braked.tolist()


@pytest.mark.parametrize("bad", [{"temperature": [1.0]}, {"braked": [True]}, {"voltage": [1.0]}])
def test_drive_feedback_of_wrong_sizes_is_refused(bad: dict[str, list[float]]) -> None:
    data = bytes(serialize_message(DriveState(name=["a", "b"], **bad)))
    with pytest.raises(InputError, match="drive_state must be of 2 values an array, got 1"):
        DriveReader().read(data, 0)


@pytest.mark.parametrize("masked", ["orientation", "angular_velocity", "linear_acceleration", ""])
@pytest.mark.parametrize("w", [0.0, 0.8])
def test_imu(masked: str, w: float) -> None:
    message = Imu()
    message.header.frame_id = "tool0"
    message.orientation.w, message.angular_velocity.y = w, 0.5
    message.linear_acceleration.z = 9.8
    if masked:
        getattr(message, f"{masked}_covariance")[0] = -1.0
    sample = ImuReader().read(bytes(serialize_message(message)), 3)
    truth = imu_from_msg(message, 3)
    for field in ("orientation", "angular_velocity", "linear_acceleration"):
        np.testing.assert_array_equal(getattr(sample, field), getattr(truth, field))


FRAMES = ["", "a", "ab", "abc", "abcd", "tool0", "robot_1/tool0_controller"]


@pytest.mark.parametrize("frame", FRAMES)
def test_wrench(frame: str) -> None:
    message = WrenchStamped()
    message.header.frame_id = frame
    force, torque = message.wrench.force, message.wrench.torque
    force.x, force.y, force.z = 1.5, -2.25, math.nan
    torque.x, torque.y, torque.z = math.inf, 0.0, -1e-300
    read = WrenchReader().read(bytes(serialize_message(message)))
    np.testing.assert_array_equal(read, [1.5, -2.25, math.nan, math.inf, 0.0, -1e-300])


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("node", ["a", "cache_manager"])
@pytest.mark.parametrize("state", [1, 3, 255])
def test_heartbeat(frame: str, node: str, state: int) -> None:
    message = Heartbeat(node=node, monotonic_ns=2**63, lifecycle_state=state, epoch=2**32 - 1)
    message.header.frame_id = frame
    assert HeartbeatReader().read(bytes(serialize_message(message))) == (state, 2**32 - 1)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x01\x00\x00", bytes(11)])
def test_what_is_too_short_is_refused_by_the_topics_name(data: bytes) -> None:
    for read, topic in (
        (lambda: WrenchReader().read(data), "wrench"),
        (lambda: HeartbeatReader().read(data), "heartbeat"),
        (lambda: JointReader().read(data, 0), "joint_states"),
        (lambda: DriveReader().read(data, 0), "drive_state"),
        (lambda: ImuReader().read(data, 0), "imu"),
    ):
        with pytest.raises(InputError, match=f"{topic} must be a complete message"):
            read()
