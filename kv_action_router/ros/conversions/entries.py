"""Entries and domains of the cache <-> what its services carry."""

from __future__ import annotations

import math

from kv_action_router.caching.inspection import DomainInfo, EntryInfo, StoredEntry
from kv_action_router.contracts import Decision, EntryUpdate, UpdateOperation
from kv_action_router.msg import DomainInfo as DomainInfoMessage
from kv_action_router.msg import EntryInfo as EntryInfoMessage
from kv_action_router.ros.conversions.behavior import behavior_from_msg, behavior_to_msg
from kv_action_router.ros.conversions.fields import (
    copy_vector,
    doubles_from_field,
    fill_doubles,
)
from kv_action_router.srv import GetEntry, InsertEntry


def entry_info_to_msg(info: EntryInfo, msg: EntryInfoMessage | None = None) -> EntryInfoMessage:
    """Write what is told of an entry into ``msg`` (a new one when None) and return it."""
    msg = EntryInfoMessage() if msg is None else msg
    msg.entry_id = int(info.entry_id)
    msg.entry_version = int(info.version)
    msg.domain = str(info.domain)
    msg.encoder_id = str(info.encoder_id)
    msg.intent_id = str(info.intent_id)
    msg.subtask = str(info.subtask)
    msg.successes = int(info.successes)
    msg.failures = int(info.failures)
    msg.failures_in_row = int(info.failures_in_row)
    msg.confident = bool(info.confident)
    msg.has_behavior = bool(info.has_behavior)
    msg.unused_for = int(info.unused_for)
    return msg


def entry_info_from_msg(msg: EntryInfoMessage) -> EntryInfo:
    """Return what a message tells of an entry."""
    return EntryInfo(
        entry_id=msg.entry_id,
        version=msg.entry_version,
        domain=msg.domain,
        encoder_id=msg.encoder_id,
        intent_id=msg.intent_id,
        subtask=msg.subtask,
        successes=msg.successes,
        failures=msg.failures,
        failures_in_row=msg.failures_in_row,
        confident=msg.confident,
        has_behavior=msg.has_behavior,
        unused_for=msg.unused_for,
    )


def stored_entry_to_response(
    entry: StoredEntry, response: GetEntry.Response | None = None
) -> GetEntry.Response:
    """Write an entry into a response (a new one when None) and return it."""
    response = GetEntry.Response() if response is None else response
    entry_info_to_msg(entry.info, response.info)
    copy_vector(entry.vector, response.key, "key")
    behavior_to_msg(entry.behavior, response.behavior)
    return response


def stored_entry_from_response(response: GetEntry.Response) -> StoredEntry:
    """Return the entry that a response carries.

    Raises:
        InputError: arrays of unequal size.
    """
    return StoredEntry(
        info=entry_info_from_msg(response.info),
        vector=response.key.copy(),
        behavior=behavior_from_msg(response.behavior),
    )


def domain_info_to_msg(info: DomainInfo, msg: DomainInfoMessage | None = None) -> DomainInfoMessage:
    """Write what is told of a domain into ``msg`` (a new one when None) and return it."""
    msg = DomainInfoMessage() if msg is None else msg
    msg.name = str(info.name)
    msg.is_own = bool(info.is_own)
    msg.entries = int(info.entries)
    msg.entries_not_confident = int(info.entries_not_confident)
    msg.readers = [str(name) for name in info.readers]
    return msg


def domain_info_from_msg(msg: DomainInfoMessage) -> DomainInfo:
    """Return what a message tells of a domain."""
    return DomainInfo(
        name=msg.name,
        is_own=msg.is_own,
        entries=msg.entries,
        entries_not_confident=msg.entries_not_confident,
        readers=tuple(msg.readers),
    )


def insertion_to_request(
    update: EntryUpdate, request: InsertEntry.Request | None = None
) -> InsertEntry.Request:
    """Write an insertion into a request (a new one when None) and return it."""
    request = InsertEntry.Request() if request is None else request
    fill_doubles(request, "key", update.vector)
    request.domain = str(update.decision.domain)
    request.encoder_id = str(update.decision.encoder_id)
    request.intent_id = str(update.decision.intent_id)
    behavior_to_msg(update.behavior, request.behavior)
    return request


def insertion_from_request(request: InsertEntry.Request) -> EntryUpdate:
    """Return the insertion that a request asks for; its key has the size that was sent.

    Raises:
        InputError: arrays of the behavior of unequal size.
    """
    return EntryUpdate(
        decision=Decision(
            domain=request.domain,
            source_domain=request.domain,
            encoder_id=request.encoder_id,
            intent_id=request.intent_id,
        ),
        operation=UpdateOperation.INSERT,
        entry_id=0,
        entry_version=0,
        vector=doubles_from_field(request.key),
        behavior=behavior_from_msg(request.behavior),
        execution=None,
        error=math.nan,
        false_hit=False,
        reason="inserted by a service call",
    )
