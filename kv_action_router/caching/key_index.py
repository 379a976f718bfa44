"""Keys: what one must be, and how two compare, slice by slice."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from kv_action_router.contracts import (
    KEY_SIZE,
    ROBOT_SLICE,
    SLICES,
    SUMMED_SLICE,
    Float32Array,
)
from kv_action_router.errors import KeyInvalidError

SUMMED_SIZE = SUMMED_SLICE.stop - SUMMED_SLICE.start
SMALLEST_NORM = 1e-6
_LEAST_SQUARES = 1e-24  # product of two slices' squared norms below which they hold nothing
MEMBERS: Float32Array = np.zeros((SUMMED_SIZE, len(SLICES)), dtype=np.float32)  # sums up each slice
for _column, _part in enumerate(SLICES.values()):
    MEMBERS[_part, _column] = 1.0
_EMPTY = math.inf  # stands for the cosine of a slice that holds nothing: never the least
_multiply, _sqrt = np.multiply, math.sqrt
_NAMES = tuple(SLICES)
_TARGET = _NAMES.index("target")
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


class SliceSimilarities(NamedTuple):
    """Cosines of slices of two keys; NaN = a slice holds nothing in one of them.

    Attributes:
        target: of the target slice.
        worst_slice: the one that disagrees most.
        worst: its cosine; NaN when no slice holds anything in both keys.
    """

    target: float
    worst_slice: str
    worst: float


class SliceComparer:
    """Compares two keys slice by slice, in buffers of its own. Belongs to one thread."""

    def __init__(self) -> None:
        self._products: Float32Array = np.empty((3, SUMMED_SIZE), dtype=np.float32)
        self._both, self._one, self._other = self._products  # of both keys, squares of either
        self._sums: Float32Array = np.empty((3, len(SLICES)), dtype=np.float32)
        self._sum_up = self._products.dot  # all slices at once: half of the time of one for each

    def compare(self, first: Float32Array, second: Float32Array) -> SliceSimilarities:
        """Return what the slices of two summed parts (56,) say."""
        _multiply(first, second, self._both)
        _multiply(first, first, self._one)
        _multiply(second, second, self._other)
        self._sum_up(MEMBERS, self._sums)
        both, one, other = self._sums.tolist()
        cosines = [
            product / _sqrt(squares) if (squares := own * its) > _LEAST_SQUARES else _EMPTY
            for product, own, its in zip(both, one, other, strict=True)
        ]
        worst, target = min(cosines), cosines[_TARGET]
        name = _NAMES[cosines.index(worst)]
        if worst >= -1.0 and target <= 1.0:  # as nearly always
            return SliceSimilarities(target, name, worst)
        return SliceSimilarities(_cosine(target), name, _cosine(worst))


def _cosine(value: float) -> float:
    """Return a computed cosine without its rounding error, NaN where there is none."""
    if -1.0 <= value <= 1.0:
        return value
    return math.nan if value == _EMPTY else math.copysign(1.0, value)
