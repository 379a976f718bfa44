"""Entries and domains of the cache survive what its services carry them in."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from contract_examples import BEHAVIOR, DECISION, TEXT, U32, U64, assert_same, doubles, singles
from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message

from kv_action_router.caching.inspection import DomainInfo, EntryInfo, StoredEntry
from kv_action_router.contracts import Decision, EntryUpdate, UpdateOperation
from kv_action_router.ros.conversions import entries as conv

INFO = st.builds(
    EntryInfo,
    entry_id=U64,
    version=U32,
    domain=TEXT,
    encoder_id=TEXT,
    intent_id=TEXT,
    subtask=TEXT,
    successes=U32,
    failures=U32,
    failures_in_row=U32,
    confident=st.booleans(),
    has_behavior=st.booleans(),
    unused_for=U64,
)
DOMAIN = st.builds(
    DomainInfo,
    name=TEXT,
    is_own=st.booleans(),
    entries=U32,
    entries_not_confident=U32,
    readers=st.lists(TEXT, max_size=3).map(tuple),
)
STORED = st.builds(StoredEntry, info=INFO, vector=singles(64), behavior=st.none() | BEHAVIOR)
PAIRS = {
    "info": (INFO, conv.entry_info_to_msg, conv.entry_info_from_msg),
    "domain": (DOMAIN, conv.domain_info_to_msg, conv.domain_info_from_msg),
    "stored": (STORED, conv.stored_entry_to_response, conv.stored_entry_from_response),
}


@pytest.mark.parametrize("name", PAIRS)
def test_round_trip_in_new_and_reused_messages(name):
    values, to_msg, from_msg = PAIRS[name]

    @settings(max_examples=12)
    @given(first=values, second=values)
    def check(first, second):
        msg = to_msg(first)
        assert_same(from_msg(deserialize_message(serialize_message(msg), type(msg))), first)
        assert_same(from_msg(to_msg(second, msg)), second)

    check()


@settings(max_examples=12)
@given(
    decision=DECISION,
    vector=st.sampled_from([0, 63, 64]).flatmap(lambda size: doubles(size)),
    behavior=st.none() | BEHAVIOR,
)
def test_an_insertion_keeps_what_was_asked_whatever_its_size(decision, vector, behavior):
    update = EntryUpdate(
        decision=decision,
        operation=UpdateOperation.INSERT,
        entry_id=0,
        entry_version=0,
        vector=vector,
        behavior=behavior,
        execution=None,
        error=np.nan,
        false_hit=False,
        reason="",
    )
    request = conv.insertion_to_request(update)
    read = conv.insertion_from_request(
        deserialize_message(serialize_message(request), type(request))
    )
    asked = Decision(
        domain=decision.domain,
        source_domain=decision.domain,
        encoder_id=decision.encoder_id,
        intent_id=decision.intent_id,
    )
    assert_same(
        dataclasses.replace(read, reason="", error=0.0),
        dataclasses.replace(update, decision=asked, error=0.0),
    )
