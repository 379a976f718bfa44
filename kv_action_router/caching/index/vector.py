"""The vector index: a graph (HNSW) for each partition finds near rows, their keys are compared.

One graph for all, searched with a filter, would lose entries of small partitions
(``docs/decisions/0021-a-graph-for-each-partition.md``).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from usearch.index import Index

from kv_action_router.caching.index.base import FREE, KeyIndex
from kv_action_router.caching.key_index import SUMMED_SIZE, SliceComparer
from kv_action_router.contracts import SUMMED_SLICE, Float32Array

CONNECTIVITY = 16  # neighbors of a node; twice as many on the lowest level
EXPANSION_ADD = 100  # nodes looked at for an insertion
EXPANSION_SEARCH = 32  # nodes looked at in a search, at least
ANSWERS = 16  # rows that a search of one partition brings back, at least
_NOTHING: npt.NDArray[np.intp] = np.empty(0, dtype=np.intp)


class Graph:
    """Rows of one partition.

    The library frees Python's lock, and must not be searched while it is written: each call has
    the graph to itself. So a search waits for one insertion into its own partition at most.
    """

    def __init__(self, answers: int) -> None:
        self._lock = threading.Lock()
        self._answers = answers
        self._index = Index(
            ndim=SUMMED_SIZE,
            metric="ip",
            dtype="f32",
            connectivity=CONNECTIVITY,
            expansion_add=EXPANSION_ADD,
            expansion_search=max(EXPANSION_SEARCH, answers),
        )

    def add(self, row: int, key: Float32Array) -> None:
        """Insert a row with its summed part (56,)."""
        with self._lock:
            self._index.add(row, key, threads=1)

    def add_all(self, rows: npt.NDArray[np.intp], keys: Float32Array) -> None:
        """Insert many rows (n,) with their summed parts (n, 56), on all cores."""
        with self._lock:
            self._index.add(rows.astype(np.uint64), keys, threads=0)

    def remove(self, row: int) -> None:
        """Take a row out."""
        with self._lock:
            self._index.remove(row, threads=1)

    def nearest(self, key: Float32Array) -> npt.NDArray[np.intp]:
        """Return rows near a summed part (56,), best first."""
        with self._lock:
            if not len(self._index):
                return _NOTHING
            found = self._index.search(key, self._answers, threads=1).keys
        return found.astype(np.intp)


class VectorIndex(KeyIndex):
    """Compares a key with those that a graph finds near it.

    The arrays of keys and partitions say what is true, as in every index; a graph only proposes. A
    row that it still proposes after its withdrawal is left out.
    """

    def __init__(self, size: int, answers: int = ANSWERS) -> None:
        """Make an empty index whose searches of one partition bring back so many rows."""
        super().__init__(size)
        self._answers = answers
        self._graphs: dict[int, Graph] = {}

    def searcher(self) -> VectorSearcher:
        """Return the searches of one thread."""
        return VectorSearcher(self)

    def graph(self, partition: int) -> Graph | None:
        """Return the graph of a partition that ever held a row, or None."""
        return self._graphs.get(partition)

    def publish(self, row: int, partition: int) -> None:
        """Let searches in a partition find the row."""
        super().publish(row, partition)
        self._made(partition).add(row, self.keys[row])

    def publish_all(self, rows: npt.NDArray[np.intp], partitions: npt.NDArray[np.int32]) -> None:
        """Let searches find many rows (n,), each in its partition (n,)."""
        super().publish_all(rows, partitions)
        for partition in np.unique(partitions).tolist():
            members = rows[partitions == partition]
            self._made(partition).add_all(members, self.keys[members])

    def withdraw(self, row: int) -> None:
        """Let no search find the row any more."""
        partition = int(self.partitions[row])
        super().withdraw(row)
        if partition != FREE:
            self._graphs[partition].remove(row)

    def _made(self, partition: int) -> Graph:
        graph = self._graphs.get(partition)
        if graph is None:
            graph = self._graphs[partition] = Graph(self._answers)
        return graph


class VectorSearcher:
    """Searches of one thread, and the rows of the last one."""

    def __init__(self, index: VectorIndex) -> None:
        self.slices = SliceComparer()
        self._index = index
        self._rows: npt.NDArray[np.intp] = _NOTHING
        self._scores: Float32Array = np.empty(0, dtype=np.float32)

    def search(self, key: Float32Array, partitions: Sequence[int]) -> tuple[int, float]:
        """Return the row most like a prepared key, and its cosine; (-1, NaN) when there is none."""
        index, summed = self._index, key[SUMMED_SLICE]
        found = [
            graph.nearest(summed)
            for partition in partitions
            if (graph := index.graph(partition)) is not None
        ]
        rows = found[0] if len(found) == 1 else np.concatenate([_NOTHING, *found])
        # Which rows count is settled before their keys are read, as in the exact index.
        counts = np.isin(index.partitions[rows], partitions)
        self._rows = rows
        self._scores = index.keys[rows].dot(summed)
        self._scores[~counts] = -np.inf
        return self._best()

    def next_best(self, row: int, groups: npt.NDArray[np.int32]) -> tuple[int, float]:
        """Return the best row of the last search that is not in the same group as ``row``."""
        group, held = groups[row], groups[self._rows]
        self._scores[(self._rows == row) | ((held == group) & (held >= 0))] = -np.inf
        return self._best()

    def renew(self) -> None:
        """Keep nothing for the next search: as always here."""

    def _best(self) -> tuple[int, float]:
        if not self._scores.size:
            return -1, math.nan
        place = int(self._scores.argmax())
        similarity = self._scores.item(place)
        if similarity == -math.inf:
            return -1, math.nan
        return int(self._rows[place]), min(1.0, max(-1.0, similarity))
