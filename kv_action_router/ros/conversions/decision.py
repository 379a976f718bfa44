"""Decision <-> DecisionHeader."""

from __future__ import annotations

from kv_action_router.contracts import Decision
from kv_action_router.msg import DecisionHeader
from kv_action_router.ros.conversions.fields import stamp_from_msg, stamp_to_msg


def decision_to_msg(decision: Decision, msg: DecisionHeader | None = None) -> DecisionHeader:
    """Write a decision into ``msg`` (a new one when None) and return it."""
    msg = DecisionHeader() if msg is None else msg
    header = msg.header
    stamp_to_msg(decision.stamp_ns, header.stamp)
    header.frame_id = str(decision.frame_id)
    msg.trace_id = int(decision.trace_id)
    msg.trigger_monotonic_ns = int(decision.trigger_monotonic_ns)
    msg.stage_monotonic_ns[:] = decision.stage_ns
    msg.sequence = int(decision.sequence)
    msg.epoch = int(decision.epoch)
    msg.decision_id = int(decision.decision_id)
    msg.domain = str(decision.domain)
    msg.source_domain = str(decision.source_domain)
    msg.robot_id = str(decision.robot_id)
    msg.encoder_id = str(decision.encoder_id)
    msg.scene = str(decision.scene)
    msg.intent_id = str(decision.intent_id)
    return msg


def decision_from_msg(msg: DecisionHeader) -> Decision:
    """Return the decision that a header carries."""
    return Decision(
        trace_id=msg.trace_id,
        trigger_monotonic_ns=msg.trigger_monotonic_ns,
        stage_ns=tuple(msg.stage_monotonic_ns.tolist()),
        sequence=msg.sequence,
        epoch=msg.epoch,
        decision_id=msg.decision_id,
        domain=msg.domain,
        source_domain=msg.source_domain,
        robot_id=msg.robot_id,
        encoder_id=msg.encoder_id,
        scene=msg.scene,
        intent_id=msg.intent_id,
        stamp_ns=stamp_from_msg(msg.header.stamp),
        frame_id=msg.header.frame_id,
    )
