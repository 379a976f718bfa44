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
        self._count = 0

    def search(self, key: Float32Array, partitions: Sequence[int]) -> tuple[int, float]:
        """Return the row most like a prepared key, and its cosine; (-1, NaN) when there is none."""
        index, wanted = self._index, self._wanted
        self._count = count = index.end
        if not partitions or count == 0:
            self._count = 0
            return -1, math.nan
        # Which rows count is settled before their keys are read: a row that is being written now
        # stays out, however far its writer gets during the product.
        held, mask = index.partitions[:count], self._mask[:count]
        wanted[()] = partitions[0]
        np.not_equal(held, wanted, mask)
        for partition in partitions[1:]:
            other = self._other[:count]
            wanted[()] = partition
            np.not_equal(held, wanted, other)
            np.logical_and(mask, other, mask)
        scores = self._scores[:count]
        index.keys[:count].dot(key[SUMMED_SLICE], scores)
        np.copyto(scores, _OUT, where=mask)
        return _best(scores)

    def next_best(self, row: int, groups: npt.NDArray[np.int32]) -> tuple[int, float]:
        """Return the best row of the last search that is not in the same group as ``row``."""
        scores = self._scores[: self._count]
        group = groups[row]
        scores[row] = _OUT
        best, similarity = _best(scores)
        while best >= 0 and groups[best] == group and group >= 0:
            scores[best] = _OUT
            best, similarity = _best(scores)
        return best, similarity


def _best(scores: Float32Array) -> tuple[int, float]:
    best = int(scores.argmax())
    similarity = float(scores[best])
    if similarity == -math.inf:
        return -1, math.nan
    return best, min(1.0, max(-1.0, similarity))
