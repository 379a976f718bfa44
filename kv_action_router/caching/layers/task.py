"""The task layer: which situation and intent ask for which behavior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kv_action_router.caching.index.base import KeyIndex
from kv_action_router.caching.index.exact import ExactIndex
from kv_action_router.caching.layers.slots import SlotPool
from kv_action_router.contracts import SUMMED_SLICE, Float32Array

NO_BEHAVIOR = -1


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """One entry as it was read.

    Attributes:
        slot: where it stands.
        entry_id: from 1, never given twice.
        version: of the value, from 1; rises whenever the key or the behavior is replaced.
        partition: number of its partition.
        behavior: slot in the behavior layer, or ``NO_BEHAVIOR``.
        successes, failures: since the entry was made.
        failures_in_row: since the last success or replacement.
        confident: False after too many failures in a row.
        last_used: decision count at its last use.
    """

    slot: int
    entry_id: int
    version: int
    partition: int
    behavior: int
    successes: int
    failures: int
    failures_in_row: int
    confident: bool
    last_used: int


class TaskLayer:
    """Fixed-capacity arrays of task entries beside the index of their keys.

    Invariants: of a published slot only the counters, the confidence bit and ``last_used`` change,
    each by one store, and the behavior pointer from a value to ``NO_BEHAVIOR``; every entry id in
    ``slots`` names the published slot that holds its newest version. One thread writes.
    """

    def __init__(self, capacity: int, index: Callable[[int], KeyIndex] = ExactIndex) -> None:
        """Make an empty layer; ``index(size)`` makes the index of its keys."""
        self.pool = SlotPool(capacity)
        size = self.pool.size
        self.index = index(size)
        self.slots: dict[int, int] = {}
        self.behavior: npt.NDArray[np.int32] = np.full(size, NO_BEHAVIOR, dtype=np.int32)
        self.last_used: npt.NDArray[np.int64] = np.zeros(size, dtype=np.int64)
        self.successes: npt.NDArray[np.int32] = np.zeros(size, dtype=np.int32)
        self.failures: npt.NDArray[np.int32] = np.zeros(size, dtype=np.int32)
        self.failures_in_row: npt.NDArray[np.int32] = np.zeros(size, dtype=np.int32)
        self.confident: npt.NDArray[np.bool_] = np.zeros(size, dtype=np.bool_)
        self.entry_id: npt.NDArray[np.int64] = np.zeros(size, dtype=np.int64)
        self._version: npt.NDArray[np.int32] = np.zeros(size, dtype=np.int32)
        self.changed: set[int] = set()  # entries that are not stored as they are now

    @property
    def capacity(self) -> int:
        """Number of entries that it takes."""
        return self.pool.capacity

    @property
    def bytes_per_entry(self) -> int:
        """Memory of one entry in the arrays [bytes]."""
        columns = (
            *(self.index.keys, self.index.partitions, self.behavior, self.last_used),
            *(self.successes, self.failures, self.failures_in_row, self.confident),
            *(self.entry_id, self._version),
        )
        return sum(column.nbytes for column in columns) // self.pool.size

    def __len__(self) -> int:
        return len(self.slots)

    def put(
        self,
        key: Float32Array,
        partition: int,
        behavior: int,
        entry_id: int,
        previous: TaskEntry | None = None,
    ) -> int:
        """Publish an entry, in the place of its previous version if it has one; return its slot."""
        slot = self.pool.claim()
        self.index.write(slot, key)
        self.behavior[slot] = behavior
        self.last_used[slot] = previous.last_used if previous else 0
        self.successes[slot] = previous.successes if previous else 0
        self.failures[slot] = previous.failures if previous else 0
        self.failures_in_row[slot] = 0
        self.confident[slot] = True
        self.entry_id[slot] = entry_id
        self._version[slot] = previous.version + 1 if previous else 1
        self.index.publish(slot, partition)
        self.slots[entry_id] = slot
        self.changed.add(entry_id)
        if previous is not None:
            self._retire(previous.slot)
        return slot

    def restore(
        self,
        counters: npt.NDArray[np.int64],
        keys: Float32Array,
        partitions: npt.NDArray[np.int32],
        behaviors: npt.NDArray[np.int32],
    ) -> None:
        """Publish entries as they were stored, in slots of their own.

        Args:
            counters: (r, 7) entry id, version, successes, failures, failures in a row, confident,
                last used.
            keys: as ``prepare_key`` returned them (r, 64).
            partitions: (r,).
            behaviors: slots in the behavior layer, or ``NO_BEHAVIOR`` (r,).
        """
        slots = self.pool.claim_all(len(counters))
        self.index.write_all(slots, keys)
        self.behavior[slots] = behaviors
        self.entry_id[slots], self._version[slots] = counters[:, 0], counters[:, 1]
        self.successes[slots], self.failures[slots] = counters[:, 2], counters[:, 3]
        self.failures_in_row[slots], self.confident[slots] = counters[:, 4], counters[:, 5]
        self.last_used[slots] = counters[:, 6]
        self.index.publish_all(slots, partitions)
        self.slots.update(zip(counters[:, 0].tolist(), slots.tolist(), strict=True))

    def remove(self, entry_id: int) -> None:
        """Let nobody find the entry any more."""
        self._retire(self.slots.pop(entry_id))
        self.changed.add(entry_id)

    def drop_behavior(self, slot: int) -> int:
        """Take an entry's pointer away; return the behavior's slot (or ``NO_BEHAVIOR``)."""
        behavior = int(self.behavior[slot])
        self.behavior[slot] = NO_BEHAVIOR
        self.changed.add(int(self.entry_id[slot]))
        return behavior

    def read(self, slot: int) -> TaskEntry:
        """Return an entry; ask afterwards whether it is still intact."""
        # Withdrawal clears the partition first and the pointer then; read the other way round, a
        # partition that is still there proves that the pointer was.
        behavior = int(self.behavior[slot])
        partition = int(self.index.partitions[slot])
        return TaskEntry(
            slot=slot,
            entry_id=int(self.entry_id[slot]),
            version=int(self._version[slot]),
            partition=partition,
            behavior=behavior,
            successes=int(self.successes[slot]),
            failures=int(self.failures[slot]),
            failures_in_row=int(self.failures_in_row[slot]),
            confident=bool(self.confident[slot]),
            last_used=int(self.last_used[slot]),
        )

    def key(self, slot: int) -> Float32Array:
        """Return a copy of an entry's key, the summed part (56,)."""
        return self.index.keys[slot, SUMMED_SLICE].copy()

    def _retire(self, slot: int) -> None:
        self.index.withdraw(slot)
        self.behavior[slot] = NO_BEHAVIOR
        self.pool.release(slot)
