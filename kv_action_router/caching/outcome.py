"""What a decision came to, and the match that tells it to the sender of a key."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kv_action_router.caching.likeness import Likeness
from kv_action_router.caching.match import Answer
from kv_action_router.contracts import CacheMatch, Decision, MissReason, TaskKey

_EMPTY = MissReason.EMPTY  # looked up once, not at every key


@dataclass(frozen=True, slots=True)
class Outcome:
    """A decision that was answered, and what it was asked for."""

    goal_id: str
    decision_id: int
    domain: str
    intent_id: str
    subtask: str
    answer: Answer


def match_of(
    outcome: Outcome,
    key: TaskKey,
    likeness: Likeness,
    sequence: int,
    scene: str,
    is_decision: bool,
    lost: str,
) -> CacheMatch:
    """Return the match that tells a key's sender the outcome in force.

    Written out field by field: it is made for every key.

    Args:
        outcome: in force.
        key: that is answered.
        likeness: of the key and the outcome's entry.
        sequence: of the match.
        scene: of the key.
        is_decision: the key made the outcome.
        lost: why the outcome's entry may no longer be used; empty = it may.
    """
    answer, header = outcome.answer, key.decision
    decision = Decision(
        trace_id=header.trace_id,
        trigger_monotonic_ns=header.trigger_monotonic_ns,
        stage_ns=header.stage_ns,
        sequence=sequence,
        epoch=header.epoch,
        decision_id=outcome.decision_id,
        domain=outcome.domain,
        source_domain=answer.source_domain or outcome.domain,
        robot_id=header.robot_id,
        encoder_id=header.encoder_id,
        scene=scene,
        intent_id=outcome.intent_id,
        stamp_ns=header.stamp_ns,
        frame_id=header.frame_id,
    )
    return CacheMatch(
        decision=decision,
        trigger=key.trigger,
        hit=answer.hit and not lost,
        is_decision=is_decision,
        miss_reason=_EMPTY if lost else answer.miss_reason,
        reason=lost or answer.reason,
        similarity=likeness.similarity,
        threshold=answer.threshold,
        margin=answer.margin,
        target_similarity=likeness.target_similarity,
        target_minimum=answer.target_minimum,
        worst_slice=likeness.worst_slice,
        worst_slice_similarity=likeness.worst_slice_similarity,
        guard=answer.guard,
        entry_id=answer.entry_id,
        entry_version=answer.entry_version,
        subtask=outcome.subtask,
        behavior=None if lost else answer.behavior,
        target=key.target,
        target_age=key.target_age,
        vector=key.vector,
        joints=key.joints,
    )


def describe(match: CacheMatch) -> str:
    """Return one line that tells a decision with its why."""
    verdict = "hit" if match.hit else f"miss ({match.miss_reason.name.lower()})"
    text = f"decision {match.decision.decision_id} {match.subtask}: {verdict}, {match.reason}"
    if not math.isnan(match.margin):
        text += f", margin {match.margin:.3f}"
    if match.worst_slice:
        text += f", worst slice {match.worst_slice} {match.worst_slice_similarity:.3f}"
    return text
