"""Looking into the cache: single entries, lists of them, domains. Changes nothing."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from kv_action_router.caching.domains import Domains
from kv_action_router.caching.entries import EntryTable
from kv_action_router.caching.layers.task import NO_BEHAVIOR, TaskEntry
from kv_action_router.caching.occupancy import NOTHING
from kv_action_router.caching.readable import readable_entry, readable_ids
from kv_action_router.contracts import (
    KEY_SIZE,
    ROBOT_SLICE,
    SUMMED_SLICE,
    BehaviorValue,
    Float32Array,
)
from kv_action_router.errors import InputError

LIST_DEFAULT = 100
LIST_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class EntryInfo:
    """Where an entry is a candidate, and how it did (``EntryInfo``).

    Attributes:
        unused_for: decisions since it was last used.
        (others as in ``TaskEntry`` and ``Partition``)
    """

    entry_id: int
    version: int
    domain: str
    encoder_id: str
    intent_id: str
    subtask: str
    successes: int
    failures: int
    failures_in_row: int
    confident: bool
    has_behavior: bool
    unused_for: int


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry with its key (64,) and its behavior; None = thrown away."""

    info: EntryInfo
    vector: Float32Array
    behavior: BehaviorValue | None


@dataclass(frozen=True, slots=True)
class DomainInfo:
    """A domain, what it holds and which others may read it (``DomainInfo``)."""

    name: str
    is_own: bool
    entries: int
    entries_not_confident: int
    readers: tuple[str, ...]


class Inspector:
    """Answers what is stored; a domain sees its own entries and those that are shared with it."""

    def __init__(
        self, entries: EntryTable, domains: Domains, lock: AbstractContextManager[Any]
    ) -> None:
        """Look into these; ``lock`` keeps the writing thread out meanwhile."""
        self._entries = entries
        self._domains = domains
        self._lock = lock

    def entry(self, entry_id: int, domain: str = "") -> StoredEntry:
        """Return an entry.

        Args:
            entry_id: of the entry.
            domain: that asks; empty = the robot's own.

        Raises:
            DomainError: the domain is not known; lists near names.
            EntryNotFoundError: no such entry that it may read; lists near ids.
        """
        with self._lock:
            asker = self._asker(domain)
            entry, _ = readable_entry(self._entries, self._domains, asker, entry_id)
            vector = np.zeros(KEY_SIZE, dtype=np.float32)
            vector[SUMMED_SLICE] = self._entries.tasks.key(entry.slot)
            robot = self._entries.partitions[entry.partition].robot
            vector[ROBOT_SLICE] = self._entries.partitions.robot_slice(robot)
            behavior = None
            if entry.behavior != NO_BEHAVIOR:
                behavior = self._entries.behaviors.read(entry.behavior)
            return StoredEntry(self._info(entry), vector, behavior)

    def listed(
        self,
        domain: str = "",
        intent_id: str = "",
        subtask: str = "",
        after: int = 0,
        limit: int = 0,
    ) -> tuple[list[EntryInfo], int]:
        """Return the entries that a domain may read, lowest id first, and how many come after.

        Args:
            domain: that asks; empty = the robot's own.
            intent_id, subtask: empty = any.
            after: only ids above it.
            limit: of the list; 0 = ``LIST_DEFAULT``.

        Raises:
            DomainError: the domain is not known; lists near names.
            InputError: the limit is too large.
        """
        if not 0 <= limit <= LIST_LIMIT:
            raise InputError("limit", f"0 (= {LIST_DEFAULT}) to {LIST_LIMIT}", limit)
        with self._lock:
            asker = self._asker(domain)
            readable = readable_ids(
                self._entries, self._domains, asker, intent_id or None, subtask or None
            )
            behind = readable[np.searchsorted(readable, after, side="right") :]
            shown = behind[: limit or LIST_DEFAULT].tolist()
            tasks = self._entries.tasks
            infos = [self._info(tasks.read(tasks.slots[entry_id])) for entry_id in shown]
            return infos, len(behind) - len(shown)

    def domains(self) -> list[DomainInfo]:
        """Return every known domain, by name."""
        with self._lock:
            occupancy = self._entries.occupancy()
            grants = sorted(self._domains.grants)
            return [
                DomainInfo(
                    name=name,
                    is_own=name == self._domains.own,
                    entries=occupancy.get(name, NOTHING).tasks,
                    entries_not_confident=occupancy.get(name, NOTHING).not_confident,
                    readers=tuple(reader for owner, reader in grants if owner == name),
                )
                for name in sorted(self._domains.known)
            ]

    # --- inside ---

    def _asker(self, domain: str) -> str:
        return self._domains.require(domain) if domain else self._domains.own

    def _info(self, entry: TaskEntry) -> EntryInfo:
        partition = self._entries.partitions[entry.partition]
        return EntryInfo(
            entry_id=entry.entry_id,
            version=entry.version,
            domain=partition.domain,
            encoder_id=partition.encoder_id,
            intent_id=partition.intent_id,
            subtask=partition.subtask,
            successes=entry.successes,
            failures=entry.failures,
            failures_in_row=entry.failures_in_row,
            confident=entry.confident,
            has_behavior=entry.behavior != NO_BEHAVIOR,
            # A decision may have used the entry since the clock was read.
            unused_for=max(0, self._entries.decisions - entry.last_used),
        )
