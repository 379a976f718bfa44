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
        self._view(0)

    def search(self, key: Float32Array, partitions: Sequence[int]) -> tuple[int, float]:
        """Return the row most like a prepared key, and its cosine; (-1, NaN) when there is none."""
        count = self._index.end if partitions else 0
        if count != self._count:
            self._view(count)
        if count == 0:
            return -1, math.nan
        # Which rows count is settled before their keys are read: a row that is being written now
        # stays out, however far its writer gets during the product.
        held, mask, wanted = self._held, self._out, self._wanted
        wanted[()] = partitions[0]
        np.not_equal(held, wanted, mask)
        for partition in partitions[1:]:
            wanted[()] = partition
            np.not_equal(held, wanted, self._also)
            np.logical_and(mask, self._also, mask)
        self._keys.dot(key[SUMMED_SLICE], self._found)
        np.copyto(self._found, _OUT, where=mask)
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
