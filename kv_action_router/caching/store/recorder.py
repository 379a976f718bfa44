"""Finds out what changed in the tables, and hands it to the store. Never waits for the disk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType

import numpy as np
import numpy.typing as npt

from kv_action_router.caching.domains import Domains
from kv_action_router.caching.entries import EntryTable
from kv_action_router.caching.layers.execution import ExecutionLayer
from kv_action_router.caching.layers.task import NO_BEHAVIOR
from kv_action_router.caching.store.record import EntryRecord
from kv_action_router.caching.store.state import (
    EXECUTION,
    GRANTS,
    StoredExecution,
    execution_content,
    value_content,
    version_name,
)
from kv_action_router.caching.store.store import CacheStore
from kv_action_router.caching.store.writer import Changes
from kv_action_router.contracts import (
    KEY_SIZE,
    ROBOT_SLICE,
    SUMMED_SLICE,
    ExecutionValue,
    Float32Array,
)

USE_PERIOD_NS = 10_000_000_000  # how often last_used, which the data plane writes, is looked at


class ControlLock:
    """The control plane's lock; reentrant. Its outermost release calls ``on_release`` first.

    So whatever the control plane changes is recorded before anybody else can change more.
    """

    def __init__(self, on_release: Callable[[], None]) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._on_release = on_release

    def __enter__(self) -> ControlLock:
        self._lock.acquire()
        self._depth += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._depth == 1:
                self._on_release()
        finally:
            self._depth -= 1
            self._lock.release()


class Recorder:
    """Snapshots of what changed, taken under the control plane's lock.

    Entries that changed stand in ``EntryTable.changed``; grants and execution values are immutable,
    so that another object is another value. ``origins`` are the execution values from the file of
    execution values, by domain (CRC-32).
    """

    def __init__(
        self,
        entries: EntryTable,
        domains: Domains,
        execution: ExecutionLayer,
        origins: dict[str, int],
        clock: Callable[[], int],
    ) -> None:
        self._entries = entries
        self._domains = domains
        self._execution = execution
        self._origins = origins
        self._clock = clock
        self._store: CacheStore | None = None
        self._grants: object = domains.grants
        self._values: dict[str, tuple[int, ExecutionValue | None]] = {}
        self._versions: set[tuple[str, int]] = set()  # of execution values that are stored
        self._used: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._use_due_ns = 0

    def attach(self, store: CacheStore) -> None:
        """Hand changes to this store from now on; what the tables hold came from there."""
        self._entries.changed.clear()
        self._grants = self._domains.grants
        self._used = self._entries.tasks.last_used.copy()
        self._use_due_ns = self._clock() + USE_PERIOD_NS
        self._versions = set(store.state.versions)
        self._store = store

    def detach(self) -> None:
        """Hand changes to nobody."""
        self._store = None

    def collect(self) -> None:
        """Hand over what changed since the last call."""
        if self._store is None:
            self._entries.changed.clear()
            return
        if self._clock() >= self._use_due_ns:
            self.note_use()
        changes = Changes()
        if self._entries.changed:
            for entry_id in self._entries.changed:
                changes.entries[entry_id] = record_of(self._entries, entry_id)
            self._entries.changed.clear()
        if self._grants is not self._domains.grants:
            self._grants = self._domains.grants
            changes.state[GRANTS] = sorted(self._domains.grants)
        self._collect_execution(changes)
        if changes:
            changes.last_id = self._entries.last_id
            changes.decisions = self._entries.decisions
            self._store.give(changes)

    def note_use(self) -> None:
        """Mark the entries that decisions have used since the last call."""
        self._use_due_ns = self._clock() + USE_PERIOD_NS
        tasks = self._entries.tasks
        now = tasks.last_used.copy()
        for slot in np.flatnonzero(now != self._used).tolist():
            entry_id = int(tasks.entry_id[slot])
            if tasks.slots.get(entry_id) == slot:
                self._entries.changed.add(entry_id)
        self._used = now

    def _collect_execution(self, changes: Changes) -> None:
        for domain in self._execution.versions():
            now = self._execution.last_version(domain), self._execution.value(domain)
            known = self._values.get(domain, (0, None))
            if now[0] == known[0] and now[1] is known[1]:
                continue
            self._values[domain] = now
            changes.state[EXECUTION + domain] = execution_content(
                StoredExecution(
                    now[0], self._origins.get(domain, 0), self._execution.durable(domain)
                )
            )
            self._collect_versions(domain, changes)

    def _collect_versions(self, domain: str, changes: Changes) -> None:
        kept = {(domain, value.version): value for value in self._execution.kept(domain)}
        stored = {name for name in self._versions if name[0] == domain}
        for name in stored - kept.keys():
            changes.state[version_name(*name)] = None
        for name in kept.keys() - stored:
            changes.state[version_name(*name)] = value_content(kept[name])
        self._versions = self._versions - stored | kept.keys()


def record_of(entries: EntryTable, entry_id: int) -> EntryRecord | None:
    """Return an entry as it is stored, for the writing thread of the tables; None = it is gone."""
    slot = entries.tasks.slots.get(entry_id)
    if slot is None:
        return None
    entry = entries.tasks.read(slot)
    partition = entries.partitions[entry.partition]
    key: Float32Array = np.empty(KEY_SIZE, dtype=np.float32)
    key[SUMMED_SLICE] = entries.tasks.key(slot)
    key[ROBOT_SLICE] = entries.partitions.robot_slice(partition.robot)
    has_behavior = entry.behavior != NO_BEHAVIOR
    return EntryRecord(
        entry_id=entry.entry_id,
        version=entry.version,
        domain=partition.domain,
        encoder_id=partition.encoder_id,
        intent_id=partition.intent_id,
        subtask=partition.subtask,
        key=key,
        behavior=entries.behaviors.read(entry.behavior) if has_behavior else None,
        successes=entry.successes,
        failures=entry.failures,
        failures_in_row=entry.failures_in_row,
        confident=entry.confident,
        last_used=entry.last_used,
    )
