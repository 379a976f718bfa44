"""Which entries a domain may read: its own and those that are shared with it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kv_action_router.caching.domains import Domains
from kv_action_router.caching.entries import EntryTable
from kv_action_router.caching.layers.task import TaskEntry
from kv_action_router.errors import EntryNotFoundError

_NEAR = 3
_LARGEST = int(np.iinfo(np.int64).max)


def readable_ids(
    entries: EntryTable,
    domains: Domains,
    reader: str,
    intent_id: str | None = None,
    subtask: str | None = None,
) -> npt.NDArray[np.int64]:
    """Return the ids that a domain may read (n,), rising; None = any intent, any subtask."""
    numbers = [
        number
        for owner in domains.readable(reader)
        for number in entries.partitions.find(owner, intent_id=intent_id, subtask=subtask)
    ]
    return np.sort(np.array(entries.ids(numbers), dtype=np.int64))


def readable_entry(
    entries: EntryTable, domains: Domains, reader: str, entry_id: int
) -> tuple[TaskEntry, str]:
    """Return an entry and its domain, for the writing thread.

    Raises:
        EntryNotFoundError: there is none that the reader may read; lists near ids that it may.
    """
    slot = entries.tasks.slots.get(entry_id)
    if slot is not None:
        entry = entries.tasks.read(slot)
        owner = entries.partitions[entry.partition].domain
        if domains.may_read(reader, owner):
            return entry, owner
    near = _near(entry_id, readable_ids(entries, domains, reader))
    raise EntryNotFoundError(
        f"entry_id must name an entry that domain {reader!r} may read, got {entry_id} ({near})"
    )


def _near(entry_id: int, known: npt.NDArray[np.int64]) -> str:
    if not len(known):
        return "it may read none"
    asked = min(entry_id, _LARGEST)
    nearest = known[np.argsort(np.abs(known - asked), kind="stable")[:_NEAR]]
    return "near ids: " + ", ".join(str(number) for number in sorted(nearest.tolist()))
