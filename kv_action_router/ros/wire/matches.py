"""CacheMatch: stage 2 to stage 3."""

from __future__ import annotations

from typing import Any

import numpy as np

from kv_action_router import contracts
from kv_action_router.contracts import (
    BehaviorValue,
    JointSample,
    MatchGlance,
    MissReason,
    Pose,
    Stage,
    Trigger,
)
from kv_action_router.errors import InputError
from kv_action_router.msg import CacheMatch
from kv_action_router.ros.conversions.fields import enum_from_field
from kv_action_router.ros.wire import decisions
from kv_action_router.ros.wire.keys import (
    ARRAYS,
    JOINTS,
    TARGET,
    joints_of,
    target_of,
    target_values,
    trigger_of,
)
from kv_action_router.ros.wire.reader import FieldReader
from kv_action_router.ros.wire.writer import FieldWriter

_OWN = (
    "trigger",
    "hit",
    "is_decision",
    "miss_reason",
    "reason",
    "similarity",
    "threshold",
    "margin",
    "target_similarity",
    "target_minimum",
    "worst_slice",
    "worst_slice_similarity",
    "guard",
    "entry_id",
    "entry_version",
    "subtask",
    "target_age",
    "key",
)
_BEHAVIOR = (
    "behavior.subtask",
    "behavior.dimension",
    "behavior.degree",
    "behavior.knots",
    "behavior.coefficients",
    "behavior.phase",
    "behavior.decay",
    "behavior.target.position.x",
    "behavior.target.position.y",
    "behavior.target.position.z",
    "behavior.target.orientation.x",
    "behavior.target.orientation.y",
    "behavior.target.orientation.z",
    "behavior.target.orientation.w",
)
_NAMES = (*decisions.NAMES, *_OWN, *_BEHAVIOR, *TARGET, *JOINTS)
_OWN_AT = decisions.SIZE
_BEHAVIOR_AT = _OWN_AT + len(_OWN)
_TARGET_AT = _BEHAVIOR_AT + len(_BEHAVIOR)
_JOINTS_AT = _TARGET_AT + len(TARGET)
_ARRAYS = (*ARRAYS, "behavior.knots", "behavior.coefficients", "behavior.decay")
_GLANCE = (
    "decision.decision_id",
    "decision.trigger_monotonic_ns",
    "decision.stage_monotonic_ns",
    "trigger",
    "hit",
    "is_decision",
)
_NOTHING: tuple[float, ...] = ()
_NO_POSE = (0.0,) * 7
_MISSES = {int(reason): reason for reason in MissReason}


class MatchWriter:
    """Serializes matches. One thread may use it."""

    def __init__(self) -> None:
        self._writer = FieldWriter(CacheMatch, _NAMES)

    def write(self, match: contracts.CacheMatch, published_ns: int) -> bytes:
        """Return the message of a match that is published now [ns]."""
        m = match
        return self._writer.write(
            (
                *decisions.values(m.decision, Stage.MATCH, published_ns),
                m.trigger,
                m.hit,
                m.is_decision,
                m.miss_reason,
                m.reason,
                m.similarity,
                m.threshold,
                m.margin,
                m.target_similarity,
                m.target_minimum,
                m.worst_slice,
                m.worst_slice_similarity,
                m.guard,
                m.entry_id,
                m.entry_version,
                m.subtask,
                m.target_age,
                m.vector,
                *_behavior_values(m.behavior),
                *target_values(m.target),
                m.joints.names,
                m.joints.position,
                m.joints.velocity,
            )
        )


class MatchReader:
    """Reads matches. One thread may use it."""

    def __init__(self) -> None:
        self._reader = FieldReader(CacheMatch, _NAMES, _ARRAYS)

    def read(self, data: bytes) -> contracts.CacheMatch:
        """Return the match of a serialized message; see ``conversions.match_from_msg``.

        Raises:
            InputError: not complete, unknown trigger or reason, or arrays of unequal size.
        """
        v = self._reader.read(data)
        assert v is not None  # a match holds no sequence of messages
        decision = decisions.decision(v)
        trigger_id, hit, is_decision, miss, *own = v[_OWN_AT:_BEHAVIOR_AT]
        trigger = trigger_of(trigger_id)
        reason = _MISSES.get(miss)
        if reason is None:
            reason = enum_from_field(MissReason, miss, "miss_reason")
        stamp = decision.stamp_ns if trigger is Trigger.JOINT_STATE else 0
        return contracts.CacheMatch(
            decision,
            trigger,
            hit,
            is_decision,
            reason,
            *own[:12],
            behavior=_behavior_of(v[_BEHAVIOR_AT:_TARGET_AT]),
            target=target_of(v[_TARGET_AT:_JOINTS_AT]),
            target_age=own[12],
            vector=own[13],
            joints=joints_of(v[_JOINTS_AT:], decision.trigger_monotonic_ns, stamp),
        )


class GlanceReader:
    """Reads the few fields of a match that say whether the rest of it is needed."""

    def __init__(self) -> None:
        self._reader = FieldReader(CacheMatch, _GLANCE)

    def read(self, data: bytes) -> MatchGlance:
        """Return the glance at a serialized match.

        Raises:
            InputError: it is not complete, or its trigger is unknown.
        """
        v = self._reader.read(data)
        assert v is not None  # the message holds no sequence of messages
        return MatchGlance(v[0], v[1], v[2][Stage.MATCH], trigger_of(v[3]), v[4], v[5])


class MatchJointsReader:
    """Reads the joints that a match carries."""

    def __init__(self) -> None:
        self._reader = FieldReader(CacheMatch, JOINTS, JOINTS[1:])

    def read(self, data: bytes, receipt_ns: int) -> JointSample:
        """Return the joints of a serialized match whose joint state was received then [ns].

        Raises:
            InputError: not complete, or arrays of unequal size.
        """
        v = self._reader.read(data)
        assert v is not None  # the message holds no sequence of messages
        return joints_of(v, receipt_ns, 0)


def _behavior_values(behavior: BehaviorValue | None) -> tuple[Any, ...]:
    if behavior is None:
        return ("", _NOTHING, 0, _NOTHING, _NOTHING, 0.0, _NOTHING, *_NO_POSE)
    b, pose = behavior, behavior.target
    place = _NO_POSE if pose is None else (*pose.position.tolist(), *pose.orientation.tolist())
    return (
        b.subtask,
        b.dimensions,
        b.degree,
        b.knots,
        b.coefficients,
        b.phase,
        b.decay,
        *place,
    )


def _behavior_of(v: tuple[Any, ...]) -> BehaviorValue | None:
    subtask, dimensions, degree, knots, coefficients, phase, decay, *place = v
    if not knots.size:
        return None
    columns = len(dimensions)
    if columns == 0:
        raise InputError("dimension", "at least one column", 0)
    rows = knots.size - degree - 1
    if rows <= 0:
        raise InputError("knots", f"more than degree + 1 = {degree + 1}", knots.size)
    if coefficients.size != rows * columns:
        raise InputError("coefficients", f"of size {rows * columns}", coefficients.size)
    if decay.size != columns:
        raise InputError("decay", f"of size {columns}", decay.size)
    pose = Pose(np.array(place[:3]), np.array(place[3:])) if any(place[3:]) else None
    return BehaviorValue(
        subtask, dimensions, degree, knots, coefficients.reshape(rows, columns), phase, decay, pose
    )
