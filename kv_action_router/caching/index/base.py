"""What every index of keys is: fixed arrays of keys and partitions, and a way to search them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

from kv_action_router.caching.key_index import SUMMED_SIZE, SliceComparer
from kv_action_router.contracts import SUMMED_SLICE, Float32Array

FREE = -1  # partition of a row that no search finds


class Searcher(Protocol):
    """Searches of one thread, in buffers of its own: none waits for those of another thread.

    Attributes:
        slices: what compares the slices of what was found.
    """

    slices: SliceComparer

    def search(self, key: Float32Array, partitions: Sequence[int]) -> tuple[int, float]:
        """Return the row most like a prepared key, and its cosine; (-1, NaN) when there is none.

        Args:
            key: as ``prepare_key`` returns it.
            partitions: whose rows are candidates.
        """

    def next_best(self, row: int, groups: npt.NDArray[np.int32]) -> tuple[int, float]:
        """Return the best row of the last search that is not in the same group as ``row``.

        Args:
            row: to leave out, together with all that share its group.
            groups: (size,) group of each row; negative = shares with nobody.
                The rows left out stay out of the next call as well.
        """

    def renew(self) -> None:
        """Keep nothing for the next search: what was found is not there any more."""


class KeyIndex(ABC):
    """Keys of all entries and the partition of each.

    Invariant: a row is complete before its partition is stored, and is not written again before
    its partition is ``FREE``. One thread writes; searches run on any thread, each by a searcher of
    its own. What a search finds was in its partition when the search looked; whether the row has
    been given away since, the reader asks the slot pool.

    Attributes:
        ORDER: how the keys lie in memory: ``C`` = one key after the other, ``F`` = one component of
            all keys after the other.
    """

    ORDER: ClassVar[Literal["C", "F"]] = "C"

    def __init__(self, size: int) -> None:
        self.keys: Float32Array = np.zeros((size, SUMMED_SIZE), dtype=np.float32, order=self.ORDER)
        self.partitions: npt.NDArray[np.int32] = np.full(size, FREE, dtype=np.int32)
        self.end = 0  # rows from here on have never been used
        self.changes = 0  # publications and withdrawals so far

    @abstractmethod
    def searcher(self) -> Searcher:
        """Return what one thread searches by."""

    def write(self, row: int, key: Float32Array) -> None:
        """Write a prepared key into a row that no search finds yet."""
        self.keys[row] = key[SUMMED_SLICE]
        if row >= self.end:
            self.end = row + 1

    def write_all(self, rows: npt.NDArray[np.intp], keys: Float32Array) -> None:
        """Write prepared keys (n, 64) into rows (n,) that no search finds yet."""
        self.keys[rows] = keys[:, SUMMED_SLICE]
        self.end = max(self.end, int(rows.max()) + 1)

    def publish(self, row: int, partition: int) -> None:
        """Let searches in a partition find the row."""
        self.partitions[row] = partition
        self.changes += 1

    def publish_all(self, rows: npt.NDArray[np.intp], partitions: npt.NDArray[np.int32]) -> None:
        """Let searches find many rows (n,), each in its partition (n,)."""
        self.partitions[rows] = partitions
        self.changes += 1

    def withdraw(self, row: int) -> None:
        """Let no search find the row any more."""
        self.partitions[row] = FREE
        self.changes += 1
