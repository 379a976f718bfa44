"""The exact index: one matrix-vector product over all keys."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kv_action_router.caching.index.base import KeyIndex
from kv_action_router.contracts import SUMMED_SLICE, Float32Array

_OUT: Float32Array = np.array(-np.inf, dtype=np.float32)  # an array: NumPy takes it as it is


class ExactIndex(KeyIndex):
    """Compares a key with every row."""

    def searcher(self) -> ExactSearcher:
        """Return buffers for one thread, and the searches in them."""
        return ExactSearcher(self)


class ExactSearcher:
    """Allocates nothing that grows with the number of rows."""

    def __init__(self, index: KeyIndex) -> None:
        size = len(index.partitions)
        self._index = index
        self._scores: Float32Array = np.empty(size, dtype=np.float32)
        self._mask: npt.NDArray[np.bool_] = np.empty(size, dtype=np.bool_)
        self._other: npt.NDArray[np.bool_] = np.empty(size, dtype=np.bool_)
        self._wanted: npt.NDArray[np.int32] = np.empty((), dtype=np.int32)
        self._masked_for: tuple[int, tuple[int, ...]] = (-1, ())
        self._leaves_out = False
        self._view(0)

    def search(self, key: Float32Array, partitions: Sequence[int]) -> tuple[int, float]:
        """Return the row most like a prepared key, and its cosine; (-1, NaN) when there is none."""
        index = self._index
        # Which rows count is settled before their keys are read: a row that is being written now
        # stays out, however far its writer gets during the product. What was settled holds until
        # the next publication or withdrawal.
        masked_for = (index.changes, tuple(partitions))
        if masked_for != self._masked_for:
            self._mask_rows(index.end if partitions else 0, partitions)
            self._masked_for = masked_for
        if self._count == 0:
            return -1, math.nan
        self._keys.dot(key[SUMMED_SLICE], self._found)
        if self._leaves_out:
            np.copyto(self._found, _OUT, where=self._out)
        return self._best()

    def next_best(self, row: int, groups: npt.NDArray[np.int32]) -> tuple[int, float]:
        """Return the best row of the last search that is not in the same group as ``row``."""
        group = groups[row]
        self._found[row] = _OUT
        best, similarity = self._best()
        while group >= 0 and best >= 0 and groups[best] == group:
            self._found[best] = _OUT
            best, similarity = self._best()
        return best, similarity

    def _mask_rows(self, count: int, partitions: Sequence[int]) -> None:
        """Find out which of the first ``count`` rows are in none of the partitions."""
        if count != self._count:
            self._view(count)
        mask, wanted = self._out, self._wanted
        mask[:] = True
        for partition in partitions:
            wanted[()] = partition
            np.not_equal(self._held, wanted, self._also)
            np.logical_and(mask, self._also, mask)
        self._leaves_out = bool(mask.any())

    def _view(self, count: int) -> None:
        """Look at the first ``count`` rows: views are made when that changes, not in a search."""
        self._count = count
        self._keys, self._held = self._index.keys[:count], self._index.partitions[:count]
        self._found, self._out = self._scores[:count], self._mask[:count]
        self._also = self._other[:count]

    def _best(self) -> tuple[int, float]:
        best = int(self._found.argmax())
        similarity = self._found.item(best)
        if similarity >= -1.0:
            return best, similarity if similarity < 1.0 else 1.0
        return (-1, math.nan) if similarity == -math.inf else (best, -1.0)
