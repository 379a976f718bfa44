"""Fills a cache's tables from its store: what passes an insertion's checks, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kv_action_router.caching.domains import Domains
from kv_action_router.caching.entries import EntryTable
from kv_action_router.caching.layers.execution import ExecutionLayer
from kv_action_router.caching.layers.task import NO_BEHAVIOR
from kv_action_router.caching.partitions import Partition
from kv_action_router.caching.store.block import Block, check_layout, read_block, sift
from kv_action_router.caching.store.record import Layout, Row
from kv_action_router.caching.store.store import CacheStore
from kv_action_router.errors import RouterError


class Loader:
    """Reads the entries of one store into empty tables."""

    def __init__(self, entries: EntryTable, domains: Domains) -> None:
        self._entries = entries
        self._domains = domains
        self._layouts: dict[bytes, Layout | str] = {}  # a text: why it is refused

    def load(self, store: CacheStore) -> int:
        """Load what is good, quarantine what is not, share what was shared; return the entries.

        Raises:
            StoreError: what is bad cannot be kept aside.
        """
        capacity = self._entries.tasks.capacity
        store.quarantine(
            [(row, f"beyond the capacity of {capacity}") for row in store.beyond(capacity)]
        )
        loaded = 0
        refused: list[tuple[Row, str]] = []
        for rows in store.rows():
            by_layout: dict[bytes, list[Row]] = {}
            for row in rows:
                by_layout.setdefault(row[7], []).append(row)
            for text, same in by_layout.items():
                loaded += self._load(self._layout(text), same, refused)
        store.quarantine(refused)
        self._entries.go_on(store.state.last_id, store.state.decisions)
        for owner, reader in sorted(store.state.grants):
            self._domains.register(owner)
            self._domains.share(owner, reader)
        return loaded

    def _load(
        self, layout: Layout | str, rows: Sequence[Row], refused: list[tuple[Row, str]]
    ) -> int:
        if isinstance(layout, str):
            refused += [(row, layout) for row in rows]
            return 0
        size = layout.size
        fitting = [row for row in rows if len(row[8]) == size]
        if len(fitting) < len(rows):
            reason = f"numbers must be {size} bytes"
            refused += [(row, reason) for row in rows if len(row[8]) != size]
        if not fitting:
            return 0
        block, bad = sift(read_block(layout, fitting), fitting, self._entries.behaviors.size)
        refused += [(row, bad[row[0]]) for row in fitting if row[0] in bad]
        if len(block):
            self._domains.register(layout.domain)
            where = Partition(
                layout.domain, layout.encoder_id, layout.intent_id, layout.subtask, -1
            )
            self._entries.restore(where, block.counters, block.keys, self._behaviors(block))
        return len(block)

    def _behaviors(self, block: Block) -> npt.NDArray[np.int32]:
        layout = block.layout
        if not layout.dimensions:
            return np.full(len(block), NO_BEHAVIOR, dtype=np.int32)
        return self._entries.behaviors.restore(
            layout.example(),
            block.part("knots"),
            block.part("coefficients"),
            block.part("phase")[:, 0],
            block.part("decay"),
            block.part("target") if layout.has_target else None,
        )

    def _layout(self, text: bytes) -> Layout | str:
        found = self._layouts.get(text)
        if found is None:
            try:
                found = Layout.read(text)
                check_layout(found, self._entries.behaviors.size)
            except RouterError as error:
                found = str(error)
            self._layouts[text] = found
        return found


def load_execution(
    store: CacheStore, execution: ExecutionLayer, origins: dict[str, int]
) -> list[str]:
    """Take the stored execution values; return what people should know.

    A value that began with another file of execution values than the present one is not taken: who
    edits the file means it. Its version goes on, so that nobody takes the file's value for stale.
    """
    notes = []
    for domain, stored in store.state.execution.items():
        same = origins.get(domain, stored.origin) == stored.origin
        versions = [value for (owner, _), value in store.state.versions.items() if owner == domain]
        execution.restore(
            domain, stored.value if same else None, stored.last_version, versions if same else ()
        )
        if not same and stored.value is not None:
            notes.append(f"execution values of {domain!r} are the file's, which was changed")
    return notes
