"""Every contract survives its message: through the C layer and back, bit for bit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from contract_examples import (
    AUXILIARY,
    BEHAVIOR,
    CONDITION,
    DECISION,
    EXECUTION,
    FEEDBACK,
    JOINTS,
    NAN,
    POSE,
    STATE,
    TARGET,
    UPDATE,
    assert_same,
    carried_joints,
    chunks,
    doubles,
    keys,
    matches,
    obstacles,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Imu, JointState

from kv_action_router import contracts as c
from kv_action_router.errors import InputError
from kv_action_router.msg import (
    CacheMatch,
    DriveState,
    ObstacleSpheres,
    TaskKey,
    TrajectoryChunk,
)
from kv_action_router.ros import conversions as conv


def through_the_wire(msg):
    """Serialize and deserialize: what rclpy's C layer refuses or bends shows here."""
    return deserialize_message(serialize_message(msg), type(msg))


# --- examples --------------------------------------------------------------------------------


PAIRS = {
    "decision": (DECISION, conv.decision_to_msg, conv.decision_from_msg),
    "pose": (st.none() | POSE, conv.pose_to_msg, conv.pose_from_msg),
    "target": (st.none() | TARGET, conv.target_to_msg, conv.target_from_msg),
    "key": (keys(), conv.key_to_msg, conv.key_from_msg),
    "behavior": (st.none() | BEHAVIOR, conv.behavior_to_msg, conv.behavior_from_msg),
    "match": (matches(), conv.match_to_msg, conv.match_from_msg),
    "auxiliary": (AUXILIARY, conv.auxiliary_to_msg, conv.auxiliary_from_msg),
    "chunk": (chunks(), conv.chunk_to_msg, conv.chunk_from_msg),
    "execution_value": (
        st.none() | EXECUTION,
        conv.execution_value_to_msg,
        conv.execution_value_from_msg,
    ),
    "entry_update": (UPDATE, conv.entry_update_to_msg, conv.entry_update_from_msg),
    "feedback": (FEEDBACK, conv.feedback_to_msg, conv.feedback_from_msg),
    "task_state": (STATE, conv.task_state_to_msg, conv.task_state_from_msg),
    "condition": (CONDITION, conv.condition_to_msg, conv.condition_from_msg),
    "obstacles": (obstacles(), conv.obstacles_to_msg, conv.obstacles_from_msg),
    "wrench": (doubles(6), conv.wrench_to_msg, conv.wrench_from_msg),
}
DRIVER_PAIRS = {"joints", "imu", "drives"}  # take a receipt time; below


@pytest.mark.parametrize("name", PAIRS)
def test_round_trip_in_new_and_reused_messages(name):
    """A reused message must forget all that it held: the second value comes back as if alone."""
    values, to_msg, from_msg = PAIRS[name]

    @settings(max_examples=12, deadline=None)
    @given(first=values, second=values)
    def check(first, second):
        msg = to_msg(first)
        assert_same(from_msg(through_the_wire(msg)), first)
        assert_same(from_msg(through_the_wire(to_msg(second, msg))), second)

    check()


def test_every_pair_is_tested():
    named = {name.rsplit("_to_msg")[0] for name in conv.__all__ if name.endswith("_to_msg")}
    assert named == set(PAIRS) | DRIVER_PAIRS
    for name in named:
        assert f"{name}_from_msg" in conv.__all__


def test_contracts_outlive_their_message():
    """Values are copied: the next fill of the message does not change what was read from it."""
    chunk = a_chunk(columns=12)
    msg = conv.chunk_to_msg(chunk)
    read = conv.chunk_from_msg(msg)
    conv.chunk_to_msg(dataclasses.replace(chunk, samples=chunk.samples + 1.0), msg)
    np.testing.assert_array_equal(read.samples, chunk.samples)


def test_reuse_keeps_the_arrays():
    chunk = a_chunk(columns=12)
    msg = conv.chunk_to_msg(chunk)
    samples, stages = msg.samples, msg.decision.stage_monotonic_ns
    conv.chunk_to_msg(chunk, msg)
    assert msg.samples is samples
    assert msg.decision.stage_monotonic_ns is stages


# --- what drivers send -------------------------------------------------------------------------


def test_joint_sample_round_trip():
    joints = c.JointSample(
        JOINTS, np.array([1.0, 2.0, 3.0]), np.array([0.1, NAN, 0.3]), np.full(3, NAN), 77, 123
    )
    msg = through_the_wire(conv.joints_to_msg(joints))
    assert_same(conv.joints_from_msg(msg, 77), joints)


def test_joint_state_without_velocity_and_effort_is_not_measured():
    msg = JointState(name=list(JOINTS), position=[1.0, 2.0, 3.0])
    joints = conv.joints_from_msg(msg, 5)
    assert np.isnan(joints.velocity).all()
    assert np.isnan(joints.effort).all()
    assert joints.velocity.shape == (3,)
    assert joints.receipt_ns == 5


@pytest.mark.parametrize("field", ["position", "velocity", "effort"])
def test_joint_state_of_unequal_size_is_refused(field):
    msg = JointState(name=list(JOINTS), position=[1.0, 2.0, 3.0])
    setattr(msg, field, [1.0, 2.0])
    with pytest.raises(InputError, match=f"{field} must be of size 3, got 2"):
        conv.joints_from_msg(msg, 0)


def test_joint_state_without_names_is_refused():
    with pytest.raises(InputError, match="name"):
        conv.joints_from_msg(JointState(position=[1.0]), 0)


def test_imu_round_trip_with_a_missing_part():
    imu = c.ImuSample(np.full(4, NAN), np.array([0.1, 0.2, 0.3]), np.array([0.0, 0.0, 9.8]), 9)
    whole = c.ImuSample(np.array([0.0, 0.0, 0.6, 0.8]), np.ones(3), np.full(3, NAN), 9)
    msg = conv.imu_to_msg(imu)
    assert_same(conv.imu_from_msg(through_the_wire(msg), 9), imu)
    assert msg.orientation_covariance[0] == -1.0
    assert_same(conv.imu_from_msg(through_the_wire(conv.imu_to_msg(whole, msg)), 9), whole)


def test_imu_with_zero_quaternion_keeps_gyro_and_accelerometer():
    msg = Imu()
    msg.orientation.w = 0.0
    msg.angular_velocity.x = 0.5
    msg.linear_acceleration.z = 9.8
    imu = conv.imu_from_msg(msg, 1)
    assert np.isnan(imu.orientation).all()
    np.testing.assert_array_equal(imu.angular_velocity, [0.5, 0.0, 0.0])
    np.testing.assert_array_equal(imu.linear_acceleration, [0.0, 0.0, 9.8])


@pytest.mark.parametrize("part", ["orientation", "angular_velocity", "linear_acceleration"])
def test_imu_covariance_of_minus_one_masks_its_part_only(part):
    msg = Imu()
    getattr(msg, f"{part}_covariance")[0] = -1.0
    imu = conv.imu_from_msg(msg, 1)
    for name in ("orientation", "angular_velocity", "linear_acceleration"):
        assert np.isnan(getattr(imu, name)).all() == (name == part)


def test_drive_sample_round_trip_and_partial():
    drives = c.DriveSample(
        names=JOINTS,
        temperature=np.array([20.0, 30.0, NAN]),
        current=np.array([1.0, 2.0, 3.0]),
        rated_current=np.zeros(0),
        duty=np.array([-1.0, 0.0, 1.0]),
        wheel_speed=np.zeros(0),
        braked=np.array([True, False, True]),
        receipt_ns=4,
        voltage=np.array([0.5, NAN, -2.0]),
    )
    msg = conv.drives_to_msg(drives)
    assert_same(conv.drives_from_msg(through_the_wire(msg), 4), drives)
    bare = dataclasses.replace(drives, temperature=np.zeros(0), braked=np.zeros(0, bool))
    assert_same(conv.drives_from_msg(through_the_wire(conv.drives_to_msg(bare, msg)), 4), bare)
    with pytest.raises(InputError, match="current must be of size 3"):
        conv.drives_from_msg(DriveState(name=list(JOINTS), current=[1.0]), 0)


def test_key_of_an_image_tells_when_its_joints_were_read():
    decision = c.Decision(trigger_monotonic_ns=1_000_000_000, stage_ns=(0, 1_004_000_000, 0, 0, 0))
    key = a_key(decision, c.Trigger.IMAGE, body_age=0.002)
    read = conv.key_from_msg(through_the_wire(conv.key_to_msg(key)))
    assert read.joints.receipt_ns == pytest.approx(1_002_000_000, abs=1_000)
    unknown = dataclasses.replace(key, body_age=NAN, decision=c.Decision())
    assert conv.key_from_msg(conv.key_to_msg(unknown)).joints.receipt_ns == 0


# --- what must not break the loop --------------------------------------------------------------


@pytest.mark.parametrize("number", [3, np.float32(3.0), np.float64(3.0), np.int64(3), np.array(3)])
def test_any_number_fits_a_float_field(number):
    """An integer, a NumPy scalar or an array's element is converted at the boundary."""
    output = c.AuxiliaryOutput("horn", number, number)
    assert conv.auxiliary_from_msg(through_the_wire(conv.auxiliary_to_msg(output))).time == 3.0
    wrench = conv.wrench_from_msg(through_the_wire(conv.wrench_to_msg([number] * 6)))
    np.testing.assert_array_equal(wrench, np.full(6, 3.0))


def test_integer_and_float32_arrays_fit_double_fields():
    for kind in (np.int64, np.float32):
        chunk = a_chunk(columns=2)
        chunk = dataclasses.replace(chunk, samples=np.ones((100, 2), dtype=kind))
        read = conv.chunk_from_msg(through_the_wire(conv.chunk_to_msg(chunk)))
        assert read.samples.dtype == np.float64
        np.testing.assert_array_equal(read.samples, np.ones((100, 2)))


def test_transposed_samples_keep_their_order():
    chunk = a_chunk(columns=3)
    samples = np.asfortranarray(np.arange(300.0).reshape(100, 3))
    chunk = dataclasses.replace(chunk, samples=samples)
    msg = conv.chunk_to_msg(chunk)
    np.testing.assert_array_equal(conv.chunk_from_msg(msg).samples, samples)
    np.testing.assert_array_equal(
        conv.chunk_from_msg(conv.chunk_to_msg(chunk, msg)).samples, samples
    )


def test_numpy_integers_and_flags_fit():
    decision = c.Decision(trace_id=np.uint64(2**63), sequence=np.int64(5), epoch=np.int32(2))
    key = a_key(decision, c.Trigger.JOINT_STATE, body_age=np.float32(0.5))
    read = conv.key_from_msg(through_the_wire(conv.key_to_msg(key)))
    assert (read.decision.trace_id, read.decision.sequence) == (2**63, 5)
    match = conv.match_to_msg(a_match(key, hit=np.True_))
    assert through_the_wire(match).hit is True


@pytest.mark.parametrize(
    ("make", "from_msg", "match"),
    [
        (lambda: TaskKey(trigger=9), conv.key_from_msg, "trigger must be one of 1 .IMAGE."),
        (lambda: CacheMatch(trigger=1, miss_reason=99), conv.match_from_msg, "miss_reason"),
        (lambda: wrong_chunk(samples=[0.0] * 99), conv.chunk_from_msg, "samples .* size 100"),
        (lambda: wrong_chunk(sample_period=0.001), conv.chunk_from_msg, "sample_period"),
        (lambda: wrong_chunk(kind=0), conv.chunk_from_msg, "kind must be one of"),
        (
            lambda: TaskKey(trigger=1, joint_name=["a"], joint_position=[]),
            conv.key_from_msg,
            "joint_position",
        ),
        (
            lambda: ObstacleSpheres(center=[0.0] * 5, radius=[0.1] * 2),
            conv.obstacles_from_msg,
            "center",
        ),
        (
            lambda: ObstacleSpheres(center=[0.0] * 771, radius=[0.1] * 257),
            conv.obstacles_from_msg,
            "at most 256",
        ),
    ],
)
def test_bad_message_is_refused_naming_the_field(make, from_msg, match):
    with pytest.raises(InputError, match=match):
        from_msg(make())


@pytest.mark.parametrize("changes", [{"knots": [0.0] * 3}, {"decay": []}, {"coefficients": [1.0]}])
def test_inconsistent_behavior_is_refused(changes):
    behavior = c.BehaviorValue(
        "s_v1", ("a/position",), 3, np.zeros(8), np.zeros((4, 1)), 0.0, np.ones(1), None
    )
    msg = conv.behavior_to_msg(behavior)
    for field, value in changes.items():
        setattr(msg, field, value)
    with pytest.raises(InputError, match=next(iter(changes))):
        conv.behavior_from_msg(msg)


@pytest.mark.parametrize("shape", [(99, 2), (100, 3), (200,)])
def test_chunk_of_wrong_shape_is_refused_before_it_is_sent(shape):
    chunk = dataclasses.replace(a_chunk(columns=2), samples=np.zeros(shape))
    with pytest.raises(InputError, match="samples must be of shape"):
        conv.chunk_to_msg(chunk)


def test_key_of_wrong_size_is_refused_before_it_is_sent():
    key = a_key(c.Decision(), c.Trigger.IMAGE)
    with pytest.raises(InputError, match="key must be of size 64, got 63"):
        conv.key_to_msg(dataclasses.replace(key, vector=np.zeros(63, np.float32)))


def a_chunk(columns: int) -> c.TrajectoryChunk:
    names = tuple(f"joint_{index}/position" for index in range(columns))
    samples = np.random.default_rng(0).normal(size=(c.CHUNK_SAMPLES, columns))
    return c.TrajectoryChunk(
        c.Decision(), c.ChunkKind.REFRESH, 1, names, samples, (), 0, 0, "t", "s", 0.5, False
    )


def wrong_chunk(**changes) -> TrajectoryChunk:
    msg = conv.chunk_to_msg(a_chunk(columns=1))
    for field, value in changes.items():
        setattr(msg, field, value)
    return msg


def a_key(decision, trigger, body_age=0.0) -> c.TaskKey:
    return c.TaskKey(
        decision, trigger, np.ones(64, np.float32), None, 0.0, 0.0, body_age, 0,
        carried_joints(decision, trigger),
    )  # fmt: skip


def a_match(key: c.TaskKey, hit: bool) -> c.CacheMatch:
    return c.CacheMatch(
        key.decision, key.trigger, hit, False, c.MissReason.NONE, "", 0.9, 0.85, NAN, 0.9, 0.75,
        "body", 0.8, "", 1, 1, "s_v1", None, None, 0.0, key.vector, key.joints,
    )  # fmt: skip
