"""Which stored keys are most like this one: one matrix-vector product over a fixed array."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import (
    KEY_SIZE,
    ROBOT_SLICE,
    SLICES,
    SUMMED_SLICE,
    Float32Array,
)
from kv_action_router.errors import KeyInvalidError

SUMMED_SIZE = SUMMED_SLICE.stop - SUMMED_SLICE.start
FREE = -1  # partition of a slot that no search finds
SMALLEST_NORM = 1e-6
_OUT = np.float32(-np.inf)
_LARGEST = float(np.finfo(np.float32).max)


def prepare_key(vector: Any, field: str = "key") -> Float32Array:
    """Return a key as contiguous float32 (64,) whose summed part has unit norm.

    Any real dtype and memory layout is taken. The slices keep their share of the norm, so a key
    whose target is not seen (slice zero) is compared over what it does hold.

    Raises:
        KeyInvalidError: wrong size, not numeric, not finite, or zero; nothing was changed.
    """
    try:
        raw = np.asarray(vector)
    except ValueError as error:
        raise KeyInvalidError(f"{field} must be {KEY_SIZE} numbers, got {error}") from error
    if raw.shape != (KEY_SIZE,):
        got = raw.size if raw.ndim == 1 else f"shape {raw.shape}"
        raise KeyInvalidError(f"{field} must be {KEY_SIZE} values, got {got}")
    if raw.dtype.kind not in "fiu":
        raise KeyInvalidError(f"{field} must be real numbers, got dtype {raw.dtype}")
    wide = raw.astype(np.float64)
    if not float(np.abs(wide).max()) <= _LARGEST:  # NaN compares false
        index = int(np.argmin(np.abs(wide) <= _LARGEST))
        raise KeyInvalidError(f"{field} must be finite, got {raw[index]} at index {index}")
    summed = wide[SUMMED_SLICE]
    norm = math.sqrt(float(summed @ summed))
    if norm < SMALLEST_NORM:
        raise KeyInvalidError(
            f"{field} must not be zero in [0:{SUMMED_SIZE}] (norm at least {SMALLEST_NORM}), "
            f"got norm {norm:g}"
        )
    summed /= norm
    key = wide.astype(np.float32)
    key[ROBOT_SLICE] += 0.0  # -0.0 and 0.0 are one identity
    return key


def slice_similarities(first: Float32Array, second: Float32Array) -> dict[str, float]:
    """Return the cosine of each named slice, -1 to 1; NaN where one side does not hold it."""
    result = {}
    for name, part in SLICES.items():
        a, b = first[part], second[part]
        norm = math.sqrt(float(a @ a) * float(b @ b))
        result[name] = min(1.0, max(-1.0, float(a @ b) / norm)) if norm > 1e-12 else math.nan
    return result


def worst_slice(similarities: dict[str, float]) -> tuple[str, float]:
    """Return the slice that disagrees most, and its similarity; those that are NaN come last."""
    name = min(
        similarities, key=lambda n: math.inf if math.isnan(similarities[n]) else similarities[n]
    )
    return name, similarities[name]


class SearchBuffers:
    """Outputs of a search, one set a thread, so that no search allocates or waits for another."""

    def __init__(self, size: int) -> None:
        self.scores: Float32Array = np.empty(size, dtype=np.float32)
        self.mask: npt.NDArray[np.bool_] = np.empty(size, dtype=np.bool_)
        self.other: npt.NDArray[np.bool_] = np.empty(size, dtype=np.bool_)
        self.count = 0


class KeyIndex:
    """Keys of all entries and the partition of each.

    Invariant: a row is complete before its partition is stored, and is not written again before
    its partition is ``FREE``. Searches may run on any thread, each with its own buffers.
    """

    def __init__(self, size: int) -> None:
        self.keys: Float32Array = np.zeros((size, SUMMED_SIZE), dtype=np.float32)
        self.partitions: npt.NDArray[np.int32] = np.full(size, FREE, dtype=np.int32)
        self._end = 0  # rows from here on have never been used

    @property
    def end(self) -> int:
        """Number of rows that a search has to look at."""
        return self._end

    def buffers(self) -> SearchBuffers:
        """Return buffers for one thread."""
        return SearchBuffers(len(self.partitions))

    def write(self, slot: int, key: Float32Array) -> None:
        """Write a prepared key into a row that no search finds yet."""
        self.keys[slot] = key[SUMMED_SLICE]
        if slot >= self._end:
            self._end = slot + 1

    def publish(self, slot: int, partition: int) -> None:
        """Let searches in a partition find the row."""
        self.partitions[slot] = partition

    def withdraw(self, slot: int) -> None:
        """Let no search find the row any more."""
        self.partitions[slot] = FREE

    def search(
        self, key: Float32Array, partitions: Sequence[int], buffers: SearchBuffers
    ) -> tuple[int, float]:
        """Return the row most like a prepared key, and its cosine; (-1, NaN) when there is none.

        Args:
            key: as :func:`prepare_key` returns it.
            partitions: whose rows are candidates.
            buffers: of this thread; they hold all similarities afterwards, see :meth:`next_best`.
        """
        count = self._end
        buffers.count = count
        if not partitions or count == 0:
            return -1, math.nan
        # Which rows count is settled before their keys are read: a row that is being written now
        # stays out, however far its writer gets during the product.
        mask = buffers.mask[:count]
        np.not_equal(self.partitions[:count], partitions[0], out=mask)
        for partition in partitions[1:]:
            other = buffers.other[:count]
            np.not_equal(self.partitions[:count], partition, out=other)
            np.logical_and(mask, other, out=mask)
        scores = buffers.scores[:count]
        np.dot(self.keys[:count], key[SUMMED_SLICE], out=scores)
        np.copyto(scores, _OUT, where=mask)
        return self._best(scores)

    def next_best(
        self, slot: int, groups: npt.NDArray[np.int32], buffers: SearchBuffers
    ) -> tuple[int, float]:
        """Return the best row of the last search that is not in the same group as ``slot``.

        Args:
            slot: row to leave out, together with all that share its group.
            groups: (size,) group of each row; negative = shares with nobody.
            buffers: of the last search; the rows left out stay out of the next call as well.
        """
        scores = buffers.scores[: buffers.count]
        group = groups[slot]
        if group >= 0:
            other = buffers.other[: buffers.count]
            np.equal(groups[: buffers.count], group, out=other)
            np.copyto(scores, _OUT, where=other)
        scores[slot] = _OUT
        return self._best(scores)

    @staticmethod
    def _best(scores: Float32Array) -> tuple[int, float]:
        best = int(scores.argmax())
        similarity = float(scores[best])
        if similarity == -math.inf:
            return -1, math.nan
        return best, min(1.0, max(-1.0, similarity))
