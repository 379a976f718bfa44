"""How like a key is to the key of the entry in force: what a refresh tells, and no more.

A decision prepares its key and searches for it. A refresh knows its entry: the cosines follow from
sums over the slices, whatever the key's norm.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from kv_action_router.caching.key_index import MEMBERS, SMALLEST_NORM, SUMMED_SIZE
from kv_action_router.contracts import KEY_SIZE, SLICES, SUMMED_SLICE, Float32Array, FloatArray

_SHAPE = (KEY_SIZE,)
_NAMES = tuple(SLICES)
_TARGET = _NAMES.index("target")
_SMALL = 2.0 * SMALLEST_NORM**2  # squares: what lies outside is left to prepare_key
_LARGE = 1e30
_LEAST_SQUARE = 1e-24  # product of two slices' squared norms below which they hold nothing
_MEMBERS: FloatArray = MEMBERS.astype(np.float64)


class Likeness(NamedTuple):
    """Similarities of a key and an entry's key, as in ``CacheMatch``; NaN = nothing to compare."""

    similarity: float
    target_similarity: float
    worst_slice: str
    worst_slice_similarity: float


UNLIKE_ANY = Likeness(math.nan, math.nan, "", math.nan)


def is_plain_key(vector: Any) -> bool:
    """Say whether a key is one without doubt: float32 (64,), finite, not zero, of moderate norm.

    Of any other, :func:`prepare_key` finds out what it is.
    """
    if type(vector) is not np.ndarray or vector.shape != _SHAPE or vector.dtype.char != "f":
        return False
    wide = vector.astype(np.float64)  # whose squares do not overflow
    summed = wide[SUMMED_SLICE]
    return bool(summed.dot(summed) > _SMALL and wide.dot(wide) < _LARGE)  # NaN compares false


class Gauge:
    """Compares key after key with one entry's, in buffers of its own. Belongs to one thread."""

    def __init__(self) -> None:
        self._entry_key: Float32Array | None = None
        self._entry_squares: tuple[float, ...] = ()
        self._factors: FloatArray = np.zeros((2, SUMMED_SIZE))  # entry's key, present key
        self._present: FloatArray = self._factors[1]
        self._products: FloatArray = np.empty((2, SUMMED_SIZE))
        self._sums: FloatArray = np.empty((2, len(_NAMES)))

    def compare(self, vector: Float32Array, entry_key: Float32Array) -> Likeness:
        """Return the likeness of a key (64,) and an entry's key (56,), which has unit norm."""
        if entry_key is not self._entry_key:
            self._hold(entry_key)
        np.copyto(self._present, vector[SUMMED_SLICE])
        np.multiply(self._factors, self._present, out=self._products)
        np.dot(self._products, _MEMBERS, out=self._sums)
        products, squares = self._sums.tolist()
        square = sum(squares)
        cosines = [math.nan] * len(_NAMES)
        worst, least = 0, math.inf
        for index, held in enumerate(self._entry_squares):
            both = squares[index] * held
            if both > _LEAST_SQUARE * square:
                cosine = min(1.0, max(-1.0, products[index] / math.sqrt(both)))
                cosines[index] = cosine
                if cosine < least:
                    worst, least = index, cosine
        similarity = min(1.0, max(-1.0, sum(products) / math.sqrt(square)))
        return Likeness(similarity, cosines[_TARGET], _NAMES[worst], cosines[worst])

    def _hold(self, entry_key: Float32Array) -> None:
        self._entry_key = entry_key
        self._factors[0] = entry_key
        self._entry_squares = tuple(np.dot(self._factors[0] ** 2, _MEMBERS).tolist())
