"""Keys: what one must be, and how two compare, slice by slice."""

from __future__ import annotations

import math
from typing import Any

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
MEMBERS: Float32Array = np.zeros((SUMMED_SIZE, len(SLICES)), dtype=np.float32)  # sums up each slice
for _column, _part in enumerate(SLICES.values()):
    MEMBERS[_part, _column] = 1.0
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
    """Return the cosine of each named slice of two summed parts (56,); NaN where one is empty."""
    products: Float32Array = np.empty((3, SUMMED_SIZE), dtype=np.float32)
    np.multiply(first, second, products[0])
    np.multiply(first, first, products[1])
    np.multiply(second, second, products[2])
    # One product sums up all slices: half of the time of one for each.
    both, one, other = products.dot(MEMBERS).tolist()
    result = {}
    for index, name in enumerate(SLICES):
        norm = math.sqrt(one[index] * other[index])
        cosine = both[index] / norm if norm > 1e-12 else math.nan
        result[name] = 1.0 if cosine > 1.0 else max(cosine, -1.0)  # NaN stays
    return result


def worst_slice(similarities: dict[str, float]) -> tuple[str, float]:
    """Return the slice that disagrees most, and its similarity; those that are NaN come last."""
    name = min(
        similarities, key=lambda n: math.inf if math.isnan(similarities[n]) else similarities[n]
    )
    return name, similarities[name]
