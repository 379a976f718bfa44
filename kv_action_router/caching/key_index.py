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
        norm = math.sqrt(float(a.dot(a)) * float(b.dot(b)))  # @ takes three times as long
        result[name] = min(1.0, max(-1.0, float(a.dot(b)) / norm)) if norm > 1e-12 else math.nan
    return result


def worst_slice(similarities: dict[str, float]) -> tuple[str, float]:
    """Return the slice that disagrees most, and its similarity; those that are NaN come last."""
    name = min(
        similarities, key=lambda n: math.inf if math.isnan(similarities[n]) else similarities[n]
    )
    return name, similarities[name]
