"""Chosen fields of any message, read and written like the real (de)serialization does."""

from __future__ import annotations

import struct

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from geometry_msgs.msg import PoseWithCovarianceStamped
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from kv_action_router.errors import InputError
from kv_action_router.msg import Heartbeat
from kv_action_router.ros.wire import FieldReader, FieldWriter

HEARTBEAT = ("node", "monotonic_ns", "sequence", "lifecycle_state", "epoch")


def test_values_come_in_the_order_asked_for():
    message = Heartbeat(node="abc", monotonic_ns=7, sequence=8, lifecycle_state=3, epoch=9)
    message.header.stamp.sec = -5
    data = bytes(serialize_message(message))
    assert FieldReader(Heartbeat, ("epoch", "node", "sequence")).read(data) == (9, "abc", 8)
    assert FieldReader(Heartbeat, ("lifecycle_state",)).read(data) == (3,)
    assert FieldReader(Heartbeat, ("header.stamp.sec",)).read(data) == (-5,)
    assert FieldReader(Heartbeat, ("header.frame_id",)).read(data) == ("",)


def test_same_size_but_other_texts_is_noticed():
    reader = FieldReader(Heartbeat, ("node", "epoch"))
    for node in ("abc", "abd", "abc", ""):
        data = bytes(serialize_message(Heartbeat(node=node, epoch=5)))
        assert reader.read(data) == (node, 5)


def test_same_size_but_other_arrays_is_noticed():
    reader = FieldReader(JointState, ("position", "velocity"))
    for position, velocity in (([1.0], []), ([], [1.0]), ([2.0], [])):
        data = bytes(serialize_message(JointState(position=position, velocity=velocity)))
        assert reader.read(data) == (tuple(position), tuple(velocity))


def test_fixed_arrays_and_nested_messages():
    message = PoseWithCovarianceStamped()
    message.header.frame_id = "abcde"
    message.pose.pose.position.y = 2.5
    message.pose.covariance = np.arange(36.0)
    names = ("pose.covariance", "pose.pose.position.y", "header.frame_id")
    data = bytes(serialize_message(message))
    covariance, y, frame = FieldReader(type(message), names, names[:1]).read(data)
    assert (y, frame) == (2.5, "abcde")
    np.testing.assert_array_equal(covariance, np.arange(36.0))
    assert FieldReader(type(message), names[:1]).read(data)[0] == tuple(np.arange(36.0))


def test_big_endian_messages_are_read():
    payload = struct.pack(">iI", -3, 4) + struct.pack(">I", 1) + b"\0" + b"\0" * 3
    payload += struct.pack(">I", 2) + b"n\0" + b"\0" * 2 + struct.pack(">QQB3xI", 5, 6, 7, 8)
    values = FieldReader(Heartbeat, (*HEARTBEAT, "header.stamp.sec")).read(b"\0\0\0\0" + payload)
    assert values == ("n", 5, 6, 7, 8, -3)


def test_a_sequence_of_messages_is_left_to_others():
    message = Float64MultiArray(data=[1.0, 2.0])
    reader = FieldReader(Float64MultiArray, ("data",))
    assert reader.read(bytes(serialize_message(message))) == ((1.0, 2.0),)
    message.layout.dim.append(MultiArrayDimension(label="x"))
    assert reader.read(bytes(serialize_message(message))) is None
    with pytest.raises(InputError, match=r"layout\.dim"):
        FieldReader(Float64MultiArray, ("layout.dim",))


@pytest.mark.parametrize("make", [FieldReader, FieldWriter])
def test_unknown_fields_are_refused_by_name(make):
    with pytest.raises(InputError, match="no_such_field"):
        make(Heartbeat, ("node", "no_such_field"))


def test_written_bytes_are_those_of_the_real_serialization():
    writer = FieldWriter(Heartbeat, HEARTBEAT)
    for values in (("abc", 1, 2, 3, 4), ("abc", 2**63, 0, 255, 2**32 - 1), ("a", 5, 6, 7, 8)):
        message = deserialize_message(writer.write(values), Heartbeat)
        assert tuple(getattr(message, name) for name in HEARTBEAT) == values


def test_arrays_of_any_kind_are_written():
    writer = FieldWriter(JointState, ("name", "position", "velocity", "effort"))
    for position in ([1.0, 2.0], (3.0, 4.0), np.array([5.0, 6.0]), np.array([[7.0], [8.0]])):
        data = writer.write((("a", "b"), position, (), np.empty(0)))
        message = deserialize_message(data, JointState)
        assert message.name == ["a", "b"]
        assert list(message.position) == list(np.ravel(position))
        assert len(message.velocity) == 0


def test_numbers_that_do_not_fit_are_refused_and_the_writer_lives():
    writer = FieldWriter(Heartbeat, HEARTBEAT)
    writer.write(("abc", 1, 2, 3, 4))
    with pytest.raises(struct.error):
        writer.write(("abc", -1, 2, 3, 4))
    assert deserialize_message(writer.write(("abc", 1, 2, 3, 5)), Heartbeat).epoch == 5
