"""Chosen fields of any message, read and written like the real (de)serialization does."""

from __future__ import annotations

import copy
import struct

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseWithCovarianceStamped
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

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


LABELS = ("data", "layout.dim.label", "layout.data_offset")


def array_of(labels, data=(1.0,), size=1):
    message = Float64MultiArray(data=list(data))
    message.layout.dim = [MultiArrayDimension(label=name, size=size) for name in labels]
    return message


def test_labels_of_a_sequence_of_messages_are_read():
    reader = FieldReader(Float64MultiArray, LABELS)
    for labels in (("shoulder", "äß", ""), ("shoulder", "ab", "c"), (), ("x",)):
        data = bytes(serialize_message(array_of(labels)))
        for _ in range(2):
            assert reader.read(data) == ((1.0,), labels, 0)


def test_truncated_labels_are_refused():
    data = bytes(serialize_message(array_of(("abc", "de"))))
    for size in range(len(data) - 1):
        with pytest.raises(InputError, match="complete"):
            FieldReader(Float64MultiArray, LABELS).read(data[:size])


@pytest.mark.parametrize("name", ["layout.dim.size", "layout.dim.no_such", "layout.dim[0].label"])
def test_only_texts_of_elements_can_be_asked_for(name):
    with pytest.raises(InputError, match="names"):
        FieldReader(Float64MultiArray, (name,))


def test_unnamed_fields_keep_the_prototype_and_it_is_copied():
    prototype = array_of(("shoulder", "b", "elbow"), (0.0, 0.0), 7)
    writer = FieldWriter(Float64MultiArray, ("data",), prototype)
    prototype.layout.dim[0].label = "changed"
    for data in ([1.0, 2.0], np.array([3.0, 4.0]), (5.0,), [6.0, 7.0]):
        message = deserialize_message(writer.write((data,)), Float64MultiArray)
        assert message == array_of(("shoulder", "b", "elbow"), data, 7)


def test_padding_is_zero_whatever_the_serializer_left_in_it():
    labels = ("a", "bb", "ccc", "dddd", "eeeee")
    data = FieldWriter(Float64MultiArray, ("data",), array_of(labels, (0.0,))).write(((2.0,),))
    expected = b"\0\1\0\0" + struct.pack("<I", len(labels))
    for label in labels:
        text = label.encode() + b"\0"
        expected += struct.pack("<I", len(text)) + text + b"\0" * (-len(text) % 4)
        expected += struct.pack("<II", 1, 0)
    expected += struct.pack("<II", 0, 1)  # data_offset, number of data
    expected += b"\0" * (-(len(expected) - 4) % 8) + struct.pack("<d", 2.0)
    assert data == expected


def test_fields_inside_the_prototype_are_written():
    prototype = JointTrajectory(joint_names=["a", "b"])
    prototype.points = [JointTrajectoryPoint(positions=[0.0]) for _ in range(3)]
    names = ("points[1].positions", "points[2].time_from_start.nanosec")
    writer = FieldWriter(JointTrajectory, names, prototype)
    for positions, nanosec in (((1.5,), 4), ((2.5, 3.5), 5), ((4.5, 5.5), 6)):
        message = deserialize_message(writer.write((positions, nanosec)), JointTrajectory)
        assert [tuple(point.positions) for point in message.points] == [(0.0,), positions, (0.0,)]
        assert message.points[2].time_from_start.nanosec == nanosec
        assert message.joint_names == ["a", "b"]


@pytest.mark.parametrize("name", ["layout.dim", "layout.dim.label", "layout.dim[2].label"])
def test_fields_that_the_prototype_does_not_hold_are_refused(name):
    with pytest.raises(InputError, match="names must be fields of Float64MultiArray"):
        FieldWriter(Float64MultiArray, (name,), array_of(("a", "b")))


def test_a_prototype_of_another_type_is_refused():
    with pytest.raises(InputError, match="prototype must be Heartbeat, got 'JointState'"):
        FieldWriter(Heartbeat, HEARTBEAT, JointState())


def test_texts_stay_the_same_objects_while_only_numbers_change():
    reader = FieldReader(JointState, ("name", "header.frame_id", "position"))
    read = []
    for position in ([1.0, 2.0], [3.0, 4.0]):
        message = JointState(name=["a", "b"], position=position)
        message.header.frame_id = "base"
        read.append(reader.read(bytes(serialize_message(message))))
    assert read[0][0] is read[1][0]
    assert read[0][1] is read[1][1]
    assert read[1][2] == (3.0, 4.0)


def test_what_stands_behind_the_last_field_is_not_looked_at():
    data = bytes(serialize_message(JointState(name=["a"], position=[1.0], velocity=[2.0])))
    assert FieldReader(JointState, ("name", "position")).read(data[:-8]) == (("a",), (1.0,))


def test_arrays_of_another_size_than_their_field_are_refused_by_name():
    writer = FieldWriter(PoseWithCovarianceStamped, ("pose.covariance",))
    with pytest.raises(InputError, match=r"pose\.covariance must be of size 36, got 35"):
        writer.write((np.zeros(35),))


def test_constants_stand_right_behind_texts_of_any_length():
    prototype = Imu(orientation_covariance=np.arange(9.0))
    prototype.linear_acceleration.y = 3.0
    names = ("header.frame_id", "orientation.w", "angular_velocity_covariance")
    writer = FieldWriter(Imu, names, prototype)
    for frame in ("", "a", "abc", "abcd", "abcdefgh", "abc", ""):
        for w in (1.0, 2.0):
            message = deserialize_message(writer.write((frame, w, np.full(9, w))), Imu)
            expected = copy.deepcopy(prototype)
            expected.header.frame_id, expected.orientation.w = frame, w
            expected.angular_velocity_covariance[:] = w
            assert message == expected


def test_labels_stand_right_behind_texts_of_any_length():
    reader = FieldReader(DiagnosticArray, ("header.frame_id", "status.name", "status.message"))
    for frame in ("", "a", "abc", "abcd", "abcdefgh", "abc", ""):
        for message in ("same", "same", "other"):
            array = DiagnosticArray()
            array.header.frame_id = frame
            array.status = [DiagnosticStatus(name=name, message=message) for name in ("a", "bcdef")]
            data = bytes(serialize_message(array))
            assert reader.read(data) == (frame, ("a", "bcdef"), (message, message))
