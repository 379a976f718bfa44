"""What is read from a joint state's bytes is what the real deserialization finds."""

from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

from kv_action_router.errors import InputError
from kv_action_router.msg import DriveState
from kv_action_router.ros.conversions import drives_from_msg
from kv_action_router.ros.joint_state_bytes import DriveStateBytes, JointStateBytes

names = st.lists(st.text("abcdefgh_123äß", min_size=0, max_size=12), max_size=8)
number = st.floats(width=64, allow_nan=True)
messages = st.builds(
    lambda frame, joints, p, v, e, sec, nanosec: _message(frame, joints, p, v, e, sec, nanosec),
    st.text("abc/_", max_size=9),
    names,
    st.lists(number, max_size=8),
    st.lists(number, max_size=8),
    st.lists(number, max_size=8),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(0, 2**32 - 1),
)


def _message(frame, joints, p, v, e, sec, nanosec):
    message = JointState(name=joints, position=p, velocity=v, effort=e)
    message.header.frame_id = frame
    message.header.stamp.sec, message.header.stamp.nanosec = sec, nanosec
    return message


def same(left: object, right: object) -> bool:
    return repr(list(left)) == repr(list(right))  # NaN equals NaN


def check(reader: JointStateBytes, message: JointState) -> None:
    data = bytes(serialize_message(message))
    truth = deserialize_message(data, JointState)
    reading = reader.read(data, 5)
    assert reading.names == tuple(truth.name)
    assert same(reading.position, truth.position)
    assert same(reading.velocity, truth.velocity)
    assert same(reading.effort, truth.effort)
    stamp = truth.header.stamp
    assert reading.stamp_ns == stamp.sec * 1_000_000_000 + stamp.nanosec
    assert reading.receipt_ns == 5


@settings(max_examples=40)
@given(st.lists(messages, min_size=1, max_size=6))
def test_any_sequence_of_messages_is_read_like_the_real_thing(sequence: list[JointState]) -> None:
    reader = JointStateBytes()
    for message in sequence:
        check(reader, message)
        check(reader, message)


def test_same_size_but_other_contents_is_noticed() -> None:
    reader = JointStateBytes()
    check(reader, _message("base", ["a", "b"], [1.0, 2.0], [3.0, 4.0], [], 1, 2))
    check(reader, _message("base", ["a", "b"], [1.0, 2.0], [], [3.0, 4.0], 1, 2))
    check(reader, _message("base", ["b", "a"], [1.0, 2.0], [], [3.0, math.nan], 1, 2))
    check(reader, _message("basf", ["b", "a"], [1.0, 2.0], [], [3.0, 4.0], 1, 2))


@settings(max_examples=60)
@given(st.integers(0, 140), messages)
def test_truncated_messages_are_refused_if_anything_is_missing(
    length: int, message: JointState
) -> None:
    data = bytes(serialize_message(message))
    if length >= len(data):
        return
    with contextlib.suppress(InputError):  # nothing else may come out
        JointStateBytes().read(data[:length], 0)


@pytest.mark.parametrize("data", [b"", b"\0\1\0\0", bytes(11), b"\0\1\0\0" + b"\xff" * 40])
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="joint_states"):
        JointStateBytes().read(data, 0)


finite = st.floats(-1e6, 1e6)


@st.composite
def drive_states(draw: st.DrawFn) -> DriveState:
    joints = draw(st.lists(st.text("abc_1", max_size=9), max_size=7))
    size = len(joints)
    arrays = [
        draw(st.one_of(st.just([]), st.lists(finite, min_size=size, max_size=size)))
        for _ in range(5)
    ]
    braked = draw(st.one_of(st.just([]), st.lists(st.booleans(), min_size=size, max_size=size)))
    message = DriveState(name=joints, braked=braked)
    message.header.frame_id = draw(st.text("ab", max_size=5))
    fields = ("temperature", "current", "rated_current", "duty", "wheel_speed")
    for field, values in zip(fields, arrays, strict=True):
        setattr(message, field, values)
    return message


@settings(max_examples=60)
@given(st.lists(drive_states(), min_size=1, max_size=4))
def test_drive_feedback_is_read_like_the_real_thing(sequence: list[DriveState]) -> None:
    reader = DriveStateBytes()
    for message in sequence:
        data = bytes(serialize_message(message))
        truth = drives_from_msg(deserialize_message(data, DriveState), 7)
        for _ in range(2):
            sample = reader.read(data, 7)
            assert (sample.names, sample.receipt_ns) == (truth.names, 7)
            for field in ("temperature", "current", "rated_current", "duty", "wheel_speed"):
                assert getattr(sample, field).tolist() == getattr(truth, field).tolist()
            assert sample.braked.tolist() == truth.braked.tolist()


def test_drive_feedback_of_wrong_sizes_is_refused() -> None:
    data = bytes(serialize_message(DriveState(name=["a", "b"], temperature=[1.0])))
    with pytest.raises(InputError, match="2 numbers an array"):
        DriveStateBytes().read(data, 0)
    data = bytes(serialize_message(DriveState(name=["a", "b"], braked=[True])))
    with pytest.raises(InputError, match="2 brakes or none"):
        DriveStateBytes().read(data, 0)
    with pytest.raises(InputError, match="drive_state"):
        DriveStateBytes().read(data[:20], 0)
