"""CacheMatch <-> its message."""

from __future__ import annotations

from kv_action_router import contracts
from kv_action_router.contracts import MissReason, Trigger
from kv_action_router.msg import CacheMatch
from kv_action_router.ros.conversions.behavior import behavior_from_msg, behavior_to_msg
from kv_action_router.ros.conversions.decision import decision_from_msg, decision_to_msg
from kv_action_router.ros.conversions.fields import copy_vector, enum_from_field
from kv_action_router.ros.conversions.geometry import target_from_msg, target_to_msg
from kv_action_router.ros.conversions.key import (
    carried_joints_from_msg,
    carried_joints_to_msg,
)


def match_to_msg(match: contracts.CacheMatch, msg: CacheMatch | None = None) -> CacheMatch:
    """Write a match into ``msg`` (a new one when None) and return it."""
    msg = CacheMatch() if msg is None else msg
    decision_to_msg(match.decision, msg.decision)
    msg.trigger = int(match.trigger)
    msg.hit = bool(match.hit)
    msg.is_decision = bool(match.is_decision)
    msg.miss_reason = int(match.miss_reason)
    msg.reason = str(match.reason)
    msg.similarity = float(match.similarity)
    msg.threshold = float(match.threshold)
    msg.margin = float(match.margin)
    msg.target_similarity = float(match.target_similarity)
    msg.target_minimum = float(match.target_minimum)
    msg.worst_slice = str(match.worst_slice)
    msg.worst_slice_similarity = float(match.worst_slice_similarity)
    msg.guard = str(match.guard)
    msg.entry_id = int(match.entry_id)
    msg.entry_version = int(match.entry_version)
    msg.subtask = str(match.subtask)
    behavior_to_msg(match.behavior, msg.behavior)
    msg.target_valid = match.target is not None
    target_to_msg(match.target, msg.target)
    msg.target_age = float(match.target_age)
    copy_vector(match.vector, msg.key, "key")
    carried_joints_to_msg(match.joints, msg)
    return msg


def match_from_msg(msg: CacheMatch) -> contracts.CacheMatch:
    """Return the match that a message carries.

    The joints' receipt time is the trigger's; their efforts are not sent and come back as NaN.

    Raises:
        InputError: unknown trigger or miss reason, or arrays of unequal size.
    """
    decision = decision_from_msg(msg.decision)
    trigger = enum_from_field(Trigger, msg.trigger, "trigger")
    return contracts.CacheMatch(
        decision=decision,
        trigger=trigger,
        hit=msg.hit,
        is_decision=msg.is_decision,
        miss_reason=enum_from_field(MissReason, msg.miss_reason, "miss_reason"),
        reason=msg.reason,
        similarity=msg.similarity,
        threshold=msg.threshold,
        margin=msg.margin,
        target_similarity=msg.target_similarity,
        target_minimum=msg.target_minimum,
        worst_slice=msg.worst_slice,
        worst_slice_similarity=msg.worst_slice_similarity,
        guard=msg.guard,
        entry_id=msg.entry_id,
        entry_version=msg.entry_version,
        subtask=msg.subtask,
        behavior=behavior_from_msg(msg.behavior),
        target=target_from_msg(msg.target) if msg.target_valid else None,
        target_age=msg.target_age,
        vector=msg.key.copy(),
        joints=carried_joints_from_msg(msg, decision.trigger_monotonic_ns, decision, trigger),
    )
