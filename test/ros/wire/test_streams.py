"""What is read from and written to bytes is what the real (de)serialization makes of it."""

from __future__ import annotations

import contextlib
import dataclasses
import math

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from contract_examples import FEEDBACK, assert_same, chunks, keys, matches, obstacles
from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message

from kv_action_router import contracts as c
from kv_action_router.contracts import Stage
from kv_action_router.errors import InputError
from kv_action_router.msg import (
    CacheMatch,
    ExecutionFeedback,
    ObstacleSpheres,
    TaskKey,
    TrajectoryChunk,
)
from kv_action_router.ros import conversions as conv
from kv_action_router.ros import wire

KINDS = {
    "key": (keys(), TaskKey, conv.key_to_msg, conv.key_from_msg, Stage.KEY),
    "match": (matches(), CacheMatch, conv.match_to_msg, conv.match_from_msg, Stage.MATCH),
    "chunk": (chunks(), TrajectoryChunk, conv.chunk_to_msg, conv.chunk_from_msg, Stage.CHUNK),
}
READERS = {"key": wire.KeyReader, "match": wire.MatchReader, "chunk": wire.ChunkReader}
WRITERS = {"key": wire.KeyWriter, "match": wire.MatchWriter, "chunk": wire.ChunkWriter}


@pytest.mark.parametrize("name", KINDS)
def test_one_reader_reads_any_sequence_like_the_real_thing(name):
    values, kind, to_msg, from_msg, _ = KINDS[name]

    @settings(max_examples=25, deadline=None)
    @given(st.lists(values, min_size=1, max_size=4))
    def check(sequence):
        reader = READERS[name]()
        for value in sequence:
            data = bytes(serialize_message(to_msg(value)))
            truth = from_msg(deserialize_message(data, kind))
            for _ in range(2):  # once to learn the layout, once to use it
                assert_same(reader.read(data), truth)

    check()


@pytest.mark.parametrize("name", KINDS)
def test_one_writer_writes_any_sequence_like_the_real_thing(name):
    values, kind, to_msg, from_msg, stage = KINDS[name]

    @settings(max_examples=25, deadline=None)
    @given(st.lists(values, min_size=1, max_size=4))
    def check(sequence):
        writer = WRITERS[name]()
        for value in sequence:
            message = to_msg(value)
            message.decision.stage_monotonic_ns[stage] = 77
            truth = from_msg(deserialize_message(serialize_message(message), kind))
            for _ in range(2):
                written = deserialize_message(writer.write(value, 77), kind)
                assert_same(from_msg(written), truth)

    check()


@settings(max_examples=25, deadline=None)
@given(st.lists(FEEDBACK, min_size=1, max_size=4))
def test_feedback_is_read_like_the_real_thing(sequence):
    reader = wire.FeedbackReader()
    for value in sequence:
        data = bytes(serialize_message(conv.feedback_to_msg(value)))
        for _ in range(2):
            assert_same(reader.read(data), value)


@settings(max_examples=25, deadline=None)
@given(st.lists(matches(), min_size=1, max_size=4))
def test_a_glance_finds_what_the_match_says(sequence):
    reader = wire.GlanceReader()
    for value in sequence:
        glance = reader.read(bytes(serialize_message(conv.match_to_msg(value))))
        assert glance.decision_id == value.decision.decision_id
        assert glance.trigger_monotonic_ns == value.decision.trigger_monotonic_ns
        assert glance.published_ns == value.decision.stage_ns[Stage.MATCH]
        assert glance.trigger is value.trigger
        assert (glance.hit, glance.is_decision) == (value.hit, value.is_decision)


@settings(max_examples=10, deadline=None)
@given(matches())
def test_the_joints_of_a_match_alone(value):
    data = bytes(serialize_message(conv.match_to_msg(value)))
    joints = wire.MatchJointsReader().read(data, 5)
    assert (joints.names, joints.receipt_ns) == (value.joints.names, 5)
    np.testing.assert_array_equal(joints.position, value.joints.position)
    np.testing.assert_array_equal(joints.velocity, value.joints.velocity)


@pytest.mark.parametrize("name", READERS)
def test_truncated_messages_are_refused(name):
    values, _, to_msg, _, _ = KINDS[name]

    @settings(max_examples=15, deadline=None)
    @given(values, st.floats(0.0, 0.98))
    def check(value, share):
        data = bytes(serialize_message(to_msg(value)))
        with contextlib.suppress(InputError):  # nothing else may come out
            READERS[name]().read(data[: int(share * len(data))])

    check()


@pytest.mark.parametrize("data", [b"", b"\0\1\0\0", bytes(11), b"\0\1\0\0" + b"\xff" * 400])
def test_garbage_is_refused(data):
    for reader in (wire.KeyReader(), wire.MatchReader(), wire.ChunkReader(), wire.FeedbackReader()):
        with pytest.raises(InputError, match="complete"):
            reader.read(data)
    with pytest.raises(InputError, match="complete|trigger"):
        wire.GlanceReader().read(data)


def test_numbers_change_and_texts_stay():
    """The fast path: nothing is learned anew, and nothing of the message before is left over."""
    writer, reader = wire.KeyWriter(), wire.KeyReader()
    key = a_key()
    first = writer.write(key, 5)
    other = dataclasses.replace(
        key, vector=-key.vector, target=None, decision=dataclasses.replace(key.decision, epoch=9)
    )
    second = writer.write(other, 6)
    assert len(first) == len(second)
    assert reader.read(first).target is not None
    read = reader.read(second)
    assert read.target is None
    assert read.decision.epoch == 9
    assert read.decision.stage_ns[Stage.KEY] == 6
    np.testing.assert_array_equal(read.vector, -key.vector)
    np.testing.assert_array_equal(reader.read(first).vector, key.vector)


def test_what_was_read_is_aligned_writable_and_its_own():
    data = wire.KeyWriter().write(a_key(), 5)
    first, second = wire.KeyReader().read(data), wire.KeyReader().read(data)
    for array in (first.vector, first.joints.position, first.target.covariance):
        assert array.flags.aligned
        assert array.flags.writeable
    first.vector[:] = 0.0
    assert second.vector.any()


def test_unknown_numbers_are_refused_by_name():
    message = conv.key_to_msg(a_key())
    message.trigger = 9
    with pytest.raises(InputError, match="trigger"):
        wire.KeyReader().read(bytes(serialize_message(message)))
    message = conv.match_to_msg(a_match())
    message.miss_reason = 99
    with pytest.raises(InputError, match="miss_reason"):
        wire.MatchReader().read(bytes(serialize_message(message)))
    message = ExecutionFeedback(state=77)
    with pytest.raises(InputError, match="state"):
        wire.FeedbackReader().read(bytes(serialize_message(message)))


@pytest.mark.parametrize("field", ["joint_position", "joint_velocity"])
def test_joints_of_unequal_size_are_refused_by_name(field):
    message = conv.key_to_msg(a_key())
    setattr(message, field, [1.0])
    with pytest.raises(InputError, match=f"{field} must be of size 2, got 1"):
        wire.KeyReader().read(bytes(serialize_message(message)))


def test_a_chunk_of_another_period_or_size_is_refused():
    chunk = c.TrajectoryChunk(
        c.Decision(), c.ChunkKind.REFRESH, 1, ("a/position",), np.zeros((100, 1)), (), 0, 0, "t",
        "s", 0.5, False,
    )  # fmt: skip
    message = conv.chunk_to_msg(chunk)
    message.sample_period = 0.001
    with pytest.raises(InputError, match="sample_period"):
        wire.ChunkReader().read(bytes(serialize_message(message)))
    message = conv.chunk_to_msg(chunk)
    message.samples = [0.0] * 99
    with pytest.raises(InputError, match="samples must be of size 100, got 99"):
        wire.ChunkReader().read(bytes(serialize_message(message)))
    with pytest.raises(InputError, match="samples"):
        wire.ChunkWriter().write(dataclasses.replace(chunk, samples=np.zeros((99, 1))), 0)


def a_key() -> c.TaskKey:
    joints = c.JointSample(("a", "b"), np.ones(2), np.zeros(2), np.full(2, math.nan), 3)
    target = c.TargetEstimate(c.Pose(np.arange(3.0)), np.eye(6))
    decision = c.Decision(1, 2, (1, 2, 3, 4, 5), 6, 7, 8, "d", "d", "r", "e", "s", "i", 9, "base")
    return c.TaskKey(
        decision, c.Trigger.IMAGE, np.arange(64, dtype=np.float32), target, 0.1, 0.2, 0.3, 4, joints
    )


def a_match() -> c.CacheMatch:
    key = a_key()
    return c.CacheMatch(
        key.decision, key.trigger, False, False, c.MissReason.NONE, "", 0.9, 0.85, 0.1, 0.9, 0.75,
        "body", 0.8, "", 1, 1, "s_v1", None, None, 0.0, key.vector, key.joints,
    )  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(st.lists(obstacles(), min_size=1, max_size=4))
def test_obstacles_are_written_and_read_like_the_real_thing(sequence):
    writer, reader = wire.ObstacleWriter(), wire.ObstacleReader()
    for value in sequence:
        data = writer.write(value, 77)
        truth = conv.obstacles_from_msg(deserialize_message(data, ObstacleSpheres))
        np.testing.assert_array_equal(truth.center, value.center)
        np.testing.assert_array_equal(truth.radius, value.radius)
        assert truth.decision.stage_ns[Stage.KEY] == 77
        spheres, seen_ns = reader.read(data)
        assert seen_ns == value.decision.trigger_monotonic_ns
        np.testing.assert_array_equal(spheres[:, :3], value.center)
        np.testing.assert_array_equal(spheres[:, 3], value.radius)


def test_obstacles_of_unequal_size_or_too_many_are_refused():
    message = ObstacleSpheres(center=[0.0] * 4, radius=[0.1])
    with pytest.raises(InputError, match=r"center must be of size 3 \* 1, got 4"):
        wire.ObstacleReader().read(bytes(serialize_message(message)))
    many = c.ObstacleSpheres(c.Decision(), np.zeros((257, 3), "f"), np.zeros(257, "f"))
    with pytest.raises(InputError, match="at most 256 obstacles, got 257"):
        wire.ObstacleWriter().write(many, 0)
