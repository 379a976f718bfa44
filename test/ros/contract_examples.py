"""Contracts as examples for property tests, and how two of them are compared."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as stn

from kv_action_router import contracts as c

JOINTS = ("shoulder", "elbow", "wrist")
NAN = math.nan


def assert_same(first, second, path="value"):
    """Compare contracts field by field; NaN equals NaN, arrays need the same type and shape."""
    assert type(first) is type(second), path
    if dataclasses.is_dataclass(first):
        for field in dataclasses.fields(first):
            name = field.name
            assert_same(getattr(first, name), getattr(second, name), f"{path}.{name}")
    elif isinstance(first, np.ndarray):
        assert first.dtype == second.dtype, path
        np.testing.assert_array_equal(first, second, err_msg=path, strict=True)
    elif isinstance(first, tuple):
        assert len(first) == len(second), path
        for index, (one, other) in enumerate(zip(first, second, strict=True)):
            assert_same(one, other, f"{path}[{index}]")
    elif isinstance(first, float) and math.isnan(first):
        assert math.isnan(second), path
    else:
        assert first == second, path


# --- examples --------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
SINGLE = st.floats(width=32)
DOUBLE = st.floats()


def doubles(*shape):
    return stn.arrays(np.float64, shape, elements=st.floats())


def singles(*shape):
    return stn.arrays(np.float32, shape, elements=st.floats(width=32))


DECISION = st.builds(
    c.Decision,
    trace_id=U64,
    trigger_monotonic_ns=st.integers(0, 2**62),
    stage_ns=st.tuples(*[U64] * 5),
    sequence=U64,
    epoch=U32,
    decision_id=U32,
    domain=TEXT,
    source_domain=TEXT,
    robot_id=TEXT,
    encoder_id=TEXT,
    scene=TEXT,
    intent_id=TEXT,
    stamp_ns=st.integers(-(10**9), 2 * 10**18),
    frame_id=TEXT,
)
POSE = st.builds(
    c.Pose,
    position=doubles(3),
    orientation=doubles(4).filter(lambda turn: turn.any()),
)
TARGET = st.builds(c.TargetEstimate, pose=POSE, covariance=doubles(6, 6))


def carried_joints(decision, trigger):
    """What a key or match carries: no effort; receipt and stamp are the trigger's."""
    return c.JointSample(
        names=JOINTS,
        position=np.array([1.0, -2.0, 3.5]),
        velocity=np.array([0.1, NAN, 0.0]),
        effort=np.full(3, NAN),
        receipt_ns=decision.trigger_monotonic_ns,
        stamp_ns=decision.stamp_ns if trigger is c.Trigger.JOINT_STATE else 0,
    )


BEHAVIOR = st.builds(
    c.BehaviorValue,
    subtask=TEXT,
    dimensions=st.just(("elbow/position", "wrist/position")),
    degree=st.just(5),
    knots=doubles(14),
    coefficients=doubles(8, 2),
    phase=DOUBLE,
    decay=doubles(2),
    target=st.none() | POSE,
)


@st.composite
def keys(draw):
    decision = draw(DECISION)
    return c.TaskKey(
        decision=decision,
        trigger=c.Trigger.JOINT_STATE,
        vector=draw(singles(64)),
        target=draw(st.none() | TARGET),
        target_age=draw(SINGLE),
        scene_age=draw(SINGLE),
        body_age=draw(SINGLE),
        masked_inputs=draw(U32),
        joints=carried_joints(decision, c.Trigger.JOINT_STATE),
        odometry_confidence=draw(SINGLE),
        target_sight=draw(st.sampled_from(c.Sight)),
    )


@st.composite
def matches(draw):
    decision, trigger = draw(DECISION), draw(st.sampled_from(c.Trigger))
    return c.CacheMatch(
        decision=decision,
        trigger=trigger,
        hit=draw(st.booleans()),
        is_decision=draw(st.booleans()),
        miss_reason=draw(st.sampled_from(c.MissReason)),
        reason=draw(TEXT),
        similarity=draw(SINGLE),
        threshold=draw(SINGLE),
        margin=draw(SINGLE),
        target_similarity=draw(SINGLE),
        target_minimum=draw(SINGLE),
        worst_slice=draw(TEXT),
        worst_slice_similarity=draw(SINGLE),
        guard=draw(TEXT),
        entry_id=draw(U64),
        entry_version=draw(U32),
        subtask=draw(TEXT),
        behavior=draw(st.none() | BEHAVIOR),
        target=draw(st.none() | TARGET),
        target_age=draw(SINGLE),
        vector=draw(singles(64)),
        joints=carried_joints(decision, trigger),
    )


AUXILIARY = st.builds(c.AuxiliaryOutput, name=TEXT, time=DOUBLE, value=DOUBLE)


@st.composite
def chunks(draw):
    columns = draw(st.sampled_from([("a/velocity",), ("a/position", "a/velocity", "b/position")]))
    return c.TrajectoryChunk(
        decision=draw(DECISION),
        kind=draw(st.sampled_from(c.ChunkKind)),
        anchor_ns=draw(U64),
        columns=columns,
        samples=draw(doubles(c.CHUNK_SAMPLES, len(columns))),
        auxiliary=tuple(draw(st.lists(AUXILIARY, max_size=3))),
        entry_id=draw(U64),
        entry_version=draw(U32),
        task=draw(TEXT),
        stage=draw(TEXT),
        phase=draw(DOUBLE),
        ends_at_rest=draw(st.booleans()),
    )


EXECUTION = st.builds(
    c.ExecutionValue,
    drives=st.just(JOINTS),
    slots=singles(3, c.EXECUTION_SLOTS),
    confident=stn.arrays(np.bool_, 3),
    version=U32,
    base_version=U32,
    provenance=TEXT,
    decision=DECISION,
)
UPDATE = st.builds(
    c.EntryUpdate,
    decision=DECISION,
    operation=st.sampled_from(c.UpdateOperation),
    entry_id=U64,
    entry_version=U32,
    vector=singles(64),
    behavior=st.none() | BEHAVIOR,
    execution=st.none() | EXECUTION,
    error=DOUBLE,
    false_hit=st.booleans(),
    reason=TEXT,
)
STATE = st.builds(
    c.TaskState,
    decision=DECISION,
    status=st.sampled_from(c.TaskStatus),
    task=TEXT,
    goal_id=TEXT,
    stage=TEXT,
    stage_index=U32,
    stage_count=U32,
    subtask=TEXT,
    phase=DOUBLE,
    intent=singles(c.INTENT_SIZE) | singles(0),
    decision_reason=st.sampled_from(c.DecisionReason),
    needs_target=st.booleans(),
    needs_image=st.booleans(),
    requested_monotonic_ns=U64,
    allowed_contact=TEXT,
)
CONDITION = st.builds(
    c.StageCondition,
    task=TEXT,
    goal_id=TEXT,
    stage=TEXT,
    decision_id=U32,
    condition=TEXT,
    is_failure=st.booleans(),
    signal=TEXT,
    value=DOUBLE,
    limit=DOUBLE,
    held=DOUBLE,
    monotonic_ns=U64,
)
FEEDBACK = st.builds(
    c.ExecutionFeedback,
    decision=DECISION,
    state=st.sampled_from(c.InjectorState),
    event=st.sampled_from(c.InjectorEvent),
    reason=TEXT,
    monotonic_ns=U64,
    epoch=U32,
    chunk_sequence=U64,
    phase=DOUBLE,
    joints=st.just(JOINTS),
    position=doubles(3),
    velocity=doubles(3),
    setpoint_position=doubles(3),
    setpoint_velocity=doubles(3),
    command=doubles(3),
    command_interface=TEXT,
    confident=stn.arrays(np.bool_, 3),
    execution_version=U32,
    joint_monotonic_ns=U64,
)


@st.composite
def obstacles(draw):
    count = draw(st.integers(0, 5))
    return c.ObstacleSpheres(draw(DECISION), draw(singles(count, 3)), draw(singles(count)))
