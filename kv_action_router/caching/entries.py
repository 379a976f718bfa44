"""The entries of the task and behavior layers together: insert, merge, replace, remove, read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kv_action_router.caching.eviction import EvictionPolicy
from kv_action_router.caching.index.base import FREE, KeyIndex
from kv_action_router.caching.index.exact import ExactIndex
from kv_action_router.caching.layers.behavior import BehaviorLayer, BehaviorSize, check_behavior
from kv_action_router.caching.layers.task import NO_BEHAVIOR, TaskEntry, TaskLayer
from kv_action_router.caching.occupancy import Occupancy, occupancy_of
from kv_action_router.caching.partitions import Partition, Partitions
from kv_action_router.contracts import ROBOT_SLICE, BehaviorValue, Float32Array
from kv_action_router.errors import EntryNotFoundError, StaleVersionError

VARIANTS = 3  # entries at most that are alike and differ in what a guard lets pass


@dataclass(frozen=True, slots=True)
class Insertion:
    """What an insertion did.

    Attributes:
        entry_id, version: of the entry that holds the value now.
        merged: it replaced the value of a near-duplicate.
        evicted: entry that had to go for it and its partition, or None.
    """

    entry_id: int
    version: int
    merged: bool
    evicted: tuple[int, Partition] | None = None


class EntryTable:
    """All entries. One thread writes; readers on other threads use :meth:`snapshot`.

    Invariant: a reader that finds both stamps of its snapshot respected has read whole values.
    """

    def __init__(
        self,
        capacity: int,
        size: BehaviorSize,
        eviction: EvictionPolicy,
        merge_threshold: float,
        index: Callable[[int], KeyIndex] = ExactIndex,
    ) -> None:
        self.tasks = TaskLayer(capacity, index)
        self.behaviors = BehaviorLayer(capacity, size)
        self.partitions = Partitions()
        self._eviction = eviction
        self._merge_threshold = merge_threshold
        self._searcher = self.tasks.index.searcher()
        self._last_id = 0
        self.decisions = 0  # clock of ``last_used``

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def largest_entry(self) -> int:
        """Memory of the largest entry in both layers, without the index's graph [bytes]."""
        return self.tasks.bytes_per_entry + self.behaviors.largest_value

    @property
    def changed(self) -> set[int]:
        """Entries that are not stored as they are now; whoever changes one adds it."""
        return self.tasks.changed

    @property
    def last_id(self) -> int:
        """Highest id that was ever given."""
        return self._last_id

    # --- reading: any thread ---

    def stamps(self) -> tuple[int, int]:
        """Return the state of both layers, to be taken before anything is read."""
        return self.tasks.pool.stamp, self.behaviors.pool.stamp

    def intact(self, entry: TaskEntry, since: tuple[int, int]) -> bool:
        """Return whether what was read of an entry since those stamps is whole."""
        if entry.partition == FREE or not self.tasks.pool.intact(entry.slot, since[0]):
            return False
        return entry.behavior == NO_BEHAVIOR or self.behaviors.pool.intact(entry.behavior, since[1])

    def alive(self, entry_id: int) -> bool:
        """Return whether the entry is there and has a behavior value."""
        slot = self.tasks.slots.get(entry_id)
        return slot is not None and self.tasks.behavior[slot] != NO_BEHAVIOR

    def touch(self, slot: int) -> None:
        """Note that a decision used the entry."""
        self.tasks.last_used[slot] = self.decisions

    # --- writing: one thread ---

    def get(self, entry_id: int, version: int | None = None) -> TaskEntry:
        """Return an entry, for the writing thread.

        Raises:
            EntryNotFoundError: there is no such entry.
            StaleVersionError: it has another version by now.
        """
        slot = self.tasks.slots.get(entry_id)
        if slot is None:
            raise EntryNotFoundError(f"entry_id must name an entry, got {entry_id}")
        entry = self.tasks.read(slot)
        if version is not None and entry.version != version:
            raise StaleVersionError(
                f"entry_version must be {entry.version}, the one of entry {entry_id}, got {version}"
            )
        return entry

    def insert(
        self,
        partition: Partition,
        key: Float32Array,
        value: BehaviorValue,
        keep: int = 0,
        spared: Collection[int] = (),
    ) -> Insertion:
        """Insert a value under a prepared key, or replace that of a near-duplicate.

        An entry that a guard refused for the decision that this value answers is another way to do
        the same, good where this one is not needed: both stand.

        Args:
            partition: where it is a candidate; ``robot`` is filled in from the key.
            key: as ``prepare_key`` returns it.
            value: behavior.
            keep: entry that must not be evicted (the one being executed).
            spared: entries that a guard refused; not replaced while they are few.

        Raises:
            EntryInvalidError: the value cannot be stored; nothing was changed.
        """
        check_behavior(value, self.behaviors.size)
        number = self.partitions.number(partition._replace(robot=self.partitions.add_robot(key)))
        twin = self._twin(key, number, spared)
        if twin is not None:
            entry = self._replace(twin, key, value)
            return Insertion(entry.entry_id, entry.version, merged=True)
        evicted = self._evict(keep) if len(self.tasks) >= self.tasks.capacity else None
        self._last_id += 1
        self.tasks.put(key, number, self.behaviors.put(value), self._last_id)
        self.touch(self.tasks.slots[self._last_id])
        return Insertion(self._last_id, 1, merged=False, evicted=evicted)

    def _twin(self, key: Float32Array, partition: int, spared: Collection[int]) -> TaskEntry | None:
        """Return the near-duplicate that an insertion replaces, or None."""
        slot, similarity = self._searcher.search(key, [partition])
        left = VARIANTS
        while slot >= 0 and similarity > self._merge_threshold:
            entry = self.tasks.read(slot)
            left -= 1
            if entry.entry_id not in spared or left <= 0:
                return entry
            slot, similarity = self._searcher.next_best(slot, self.tasks.behavior)
        return None

    def revise(self, entry_id: int, version: int, value: BehaviorValue) -> TaskEntry:
        """Replace an entry's value, compare and set on its version; return the new version.

        Raises:
            EntryInvalidError, EntryNotFoundError, StaleVersionError: nothing was changed.
        """
        check_behavior(value, self.behaviors.size)
        entry = self.get(entry_id, version)
        return self._replace(entry, self.tasks.key(entry.slot), value)

    def count_success(self, entry_id: int, version: int) -> None:
        """Count a success, compare and set on the version."""
        slot = self.get(entry_id, version).slot
        self.changed.add(entry_id)
        self.tasks.successes[slot] += 1
        self.tasks.failures_in_row[slot] = 0

    def count_failure(self, entry_id: int, version: int, limit: int) -> bool:
        """Count a failure; return whether it took the confidence bit."""
        slot = self.get(entry_id, version).slot
        self.changed.add(entry_id)
        self.tasks.failures[slot] += 1
        self.tasks.failures_in_row[slot] += 1
        if self.tasks.failures_in_row[slot] < limit or not self.tasks.confident[slot]:
            return False
        self.tasks.confident[slot] = False
        return True

    def restore(
        self,
        partition: Partition,
        counters: npt.NDArray[np.int64],
        keys: Float32Array,
        behaviors: npt.NDArray[np.int32],
    ) -> None:
        """Take entries of one partition as they were stored; arrays as in ``TaskLayer.restore``.

        They are not compared with each other: near-duplicates were merged when they were inserted.
        """
        partitions = np.full(len(keys), FREE, dtype=np.int32)
        while (left := np.flatnonzero(partitions == FREE)).size:  # robot by robot: they are few
            first = keys[left[0]]
            same = left[(keys[left, ROBOT_SLICE] == first[ROBOT_SLICE]).all(axis=1)]
            robot = self.partitions.add_robot(first)
            partitions[same] = self.partitions.number(partition._replace(robot=robot))
        self.tasks.restore(counters, keys, partitions, behaviors)
        self.go_on(int(counters[:, 0].max()), int(counters[:, 6].max()))

    def go_on(self, last_id: int, decisions: int) -> None:
        """Give ids above this one from now on, and count decisions on from there."""
        self._last_id = max(self._last_id, last_id)
        self.decisions = max(self.decisions, decisions)

    def remove(self, entry_ids: Iterable[int]) -> int:
        """Remove entries, task and behavior together; return how many there were."""
        count = 0
        for entry_id in list(entry_ids):
            slot = self.tasks.slots.get(entry_id)
            if slot is None:
                continue
            behavior = int(self.tasks.behavior[slot])
            self.tasks.remove(entry_id)
            self._release(behavior)
            count += 1
        return count

    def drop_behaviors(self, entry_ids: Iterable[int]) -> int:
        """Remove behavior values only; the task entries stay and say so. Return how many."""
        count = 0
        for entry_id in list(entry_ids):
            behavior = self.tasks.drop_behavior(self.tasks.slots[entry_id])
            count += behavior != NO_BEHAVIOR
            self._release(behavior)
        return count

    def ids(self, partitions: Iterable[int]) -> list[int]:
        """Return the entries of some partitions."""
        held = self.tasks.index.partitions[: self.tasks.index.end]
        slots = np.flatnonzero(np.isin(held, list(partitions)))
        return [int(entry_id) for entry_id in self.tasks.entry_id[slots]]

    def occupancy(self) -> dict[str, Occupancy]:
        """Return what each domain holds that ever held an entry."""
        return occupancy_of(self.tasks, self.partitions)

    # --- inside ---

    def _replace(self, entry: TaskEntry, key: Float32Array, value: BehaviorValue) -> TaskEntry:
        behavior = self.behaviors.put(value)
        slot = self.tasks.put(key, entry.partition, behavior, entry.entry_id, previous=entry)
        self._release(entry.behavior)
        return self.tasks.read(slot)

    def _release(self, behavior: int) -> None:
        if behavior != NO_BEHAVIOR:
            self.behaviors.release(behavior)

    def _evict(self, keep: int) -> tuple[int, Partition]:
        """Make room in the domain that holds most, so that no domain can push out another's few."""
        held = self.tasks.index.partitions[: self.tasks.index.end]
        slots = np.flatnonzero(held != FREE)
        if len(slots) > 1:
            slots = slots[self.tasks.entry_id[slots] != keep]
        domains = self.partitions.domain_numbers()[held[slots]]
        largest = int(np.bincount(domains).argmax())
        slot = self._eviction.choose(self.tasks, slots[domains == largest], self.decisions)
        victim = self.tasks.read(slot)
        self.remove([victim.entry_id])
        return victim.entry_id, self.partitions[victim.partition]
