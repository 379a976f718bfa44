"""The exact index: one matrix-vector product over all keys."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from kv_action_router.caching.index.base import KeyIndex
from kv_action_router.caching.key_index import SliceComparer
from kv_action_router.contracts import SUMMED_SLICE, Float32Array

_OUT: Float32Array = np.array(-np.inf, dtype=np.float32)  # an array: NumPy takes it as it is
_add = np.add


class ExactIndex(KeyIndex):
    """Compares a key with every row.

    Keys lie component by component: the product adds 56 long columns, which takes half of the time
    of as many short scalar products as there are rows.
    """

    ORDER = "F"

    def searcher(self) -> ExactSearcher:
        """Return buffers for one thread, and the searches in them."""
        return ExactSearcher(self)


class ExactSearcher:
    """Allocates nothing that grows with the number of rows."""

    def __init__(self, index: KeyIndex) -> None:
        size = len(index.partitions)
        self.slices = SliceComparer()
        self._index = index
        self._scores: Float32Array = np.empty(size, dtype=np.float32)
        self._masks: Float32Array = np.empty(size, dtype=np.float32)  # 0, or -inf: left out
        self._one: npt.NDArray[np.bool_] = np.empty(size, dtype=np.bool_)
        self._other: npt.NDArray[np.bool_] = np.empty(size, dtype=np.bool_)
        self._wanted: npt.NDArray[np.int32] = np.empty((), dtype=np.int32)
        self._changes, self._partitions = -1, tuple[int, ...]()  # what the mask was made for
        self._view(0)

    def search(self, key: Float32Array, partitions: Sequence[int]) -> tuple[int, float]:
        """Return the row most like a prepared key, and its cosine; (-1, NaN) when there is none."""
        index = self._index
        # Which rows count is settled before their keys are read: a row that is being written now
        # stays out, however far its writer gets during the product. What was settled holds until
        # the next publication or withdrawal.
        changes, partitions = index.changes, tuple(partitions)
        if changes != self._changes or partitions != self._partitions:
            self._mask_rows(index.end if partitions else 0, partitions)
            self._changes, self._partitions = changes, partitions
        if self._count == 0:
            return -1, math.nan
        found = self._found
        self._product(key[SUMMED_SLICE], found)
        _add(found, self._mask, found)
        best = int(self._place_of_most())
        similarity = found.item(best)
        return (best, similarity) if -1.0 <= similarity <= 1.0 else self._best()

    def next_best(self, row: int, groups: npt.NDArray[np.int32]) -> tuple[int, float]:
        """Return the best row of the last search that is not in the same group as ``row``."""
        group = groups.item(row)
        self._found[row] = _OUT
        best, similarity = self._best()
        while group >= 0 and best >= 0 and groups.item(best) == group:
            self._found[best] = _OUT
            best, similarity = self._best()
        return best, similarity

    def renew(self) -> None:
        """Keep nothing for the next search: what was found is not there any more."""
        self._changes = -1  # a writer may have been stopped before it counted its change

    def _mask_rows(self, count: int, partitions: Sequence[int]) -> None:
        """Find out which of the first ``count`` rows are in none of the partitions."""
        size = len(self._scores)
        if 2 * count >= size:
            count = size  # one whole array is multiplied faster than most of it
        if count != self._count:
            self._view(count)
        out, wanted = self._out, self._wanted
        out[:] = True
        for partition in partitions:
            wanted[()] = partition
            np.not_equal(self._held, wanted, self._also)
            np.logical_and(out, self._also, out)
        self._mask[:] = 0.0
        np.copyto(self._mask, _OUT, where=out)

    def _view(self, count: int) -> None:
        """Look at the first ``count`` rows: views are made when that changes, not in a search."""
        self._count = count
        keys, self._held = self._index.keys[:count], self._index.partitions[:count]
        # ``dot`` is called in half of the time, but copies what is not contiguous.
        self._product: Callable[..., Any] = (
            keys.dot if keys.flags.f_contiguous else partial(np.matmul, keys)
        )
        self._found, self._mask = self._scores[:count], self._masks[:count]
        self._place_of_most = self._found.argmax
        self._out, self._also = self._one[:count], self._other[:count]

    def _best(self) -> tuple[int, float]:
        best = int(self._place_of_most())
        similarity = self._found.item(best)
        if -1.0 <= similarity <= 1.0:
            return best, similarity
        if similarity > 1.0:
            return best, 1.0
        return (-1, math.nan) if similarity == -math.inf else (best, -1.0)
