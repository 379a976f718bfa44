"""A glance at a serialized match finds what the real deserialization finds."""

from __future__ import annotations

import pytest
from rclpy.serialization import serialize_message

from kv_action_router.contracts import Trigger
from kv_action_router.errors import InputError
from kv_action_router.msg import CacheMatch
from kv_action_router.ros.match_glance import match_glance_from_bytes


def message(text: str) -> CacheMatch:
    """Return a match whose strings are cut from a text in different lengths."""
    match = CacheMatch(hit=True, is_decision=True)
    decision = match.decision
    decision.header.frame_id = text
    decision.trace_id, decision.trigger_monotonic_ns = 2**63 + 1, 1234567890123
    decision.stage_monotonic_ns = [1, 2, 3, 4, 5]
    decision.sequence, decision.epoch, decision.decision_id = 7, 8, 2**32 - 9
    decision.domain, decision.source_domain = text[1:], text[2:]
    decision.robot_id, decision.encoder_id = text + "x", text + "yz"
    decision.scene, decision.intent_id = "", text * 2
    match.trigger = int(Trigger.IMAGE)
    match.reason = "because " + text
    match.joint_name = ["a", "b"]
    return match


@pytest.mark.parametrize("text", ["", "a", "ab", "abc", "abcd", "abcde", "base_link", "ä" * 5])
@pytest.mark.parametrize("hit", [False, True])
def test_fields_are_those_of_the_message(text: str, hit: bool) -> None:
    match = message(text)
    match.hit = hit
    glance = match_glance_from_bytes(serialize_message(match))
    assert glance.decision_id == match.decision.decision_id
    assert glance.trigger_monotonic_ns == match.decision.trigger_monotonic_ns
    assert glance.published_ns == 3
    assert glance.trigger == Trigger.IMAGE
    assert glance.hit == hit
    assert glance.is_decision


@pytest.mark.parametrize("size", [0, 1, 4, 20, 90])
def test_truncated_bytes_are_refused(size: int) -> None:
    with pytest.raises(InputError, match="complete CacheMatch"):
        match_glance_from_bytes(serialize_message(message("base_link"))[:size])


def test_unknown_trigger_is_refused() -> None:
    match = message("base_link")
    match.trigger = 9
    with pytest.raises(InputError, match="trigger"):
        match_glance_from_bytes(serialize_message(match))
