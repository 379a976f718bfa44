"""The top face of a thing that lies flat: its level, whether it is level, and its edge."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray

_THINNEST, _THICKEST = 0.0012, 0.004  # [m] half thickness of the level


def top_level(heights: FloatArray) -> tuple[float, float]:
    """Return height [m] and half thickness [m] of the uppermost level that the points gather at."""
    heights = np.sort(heights)
    level = float(heights[int(0.85 * (len(heights) - 1))])
    thickness = _THICKEST
    for _ in range(5):
        first, last = np.searchsorted(heights, (level - thickness, level + thickness))
        if last <= first:
            break
        # sorted, so order statistics are places: the median, half of the interquartile range
        quarter = (last - first) // 4
        level = float(heights[(first + last) // 2])
        noise = 0.7413 * float(heights[last - 1 - quarter] - heights[first + quarter])
        thickness = min(_THICKEST, max(_THINNEST, 3.5 * noise))
    return level, thickness


def slope(points: FloatArray, heights: FloatArray) -> float:
    """Return how steeply the heights rise along the view: 0 on a level face, not on a wall.

    Args:
        points: where the rays cut the face's plane, seen from below the camera (n, 2) [m].
        heights: measured along the same rays (n,) [m].
    """
    center = points.mean(axis=0)
    along = (points - center) @ (center / max(math.hypot(center[0], center[1]), 1e-9))
    return float(along @ heights) / max(float(along @ along), 1e-12)


def edge_points(
    inside: npt.NDArray[np.bool_], outside: npt.NDArray[np.bool_], plane: FloatArray
) -> FloatArray:
    """Return the points (n, 2) [m] midway between inside pixels and their outside neighbors."""
    pieces = []
    for a, b in (
        (np.s_[:, :-1], np.s_[:, 1:]),
        (np.s_[:-1, :], np.s_[1:, :]),
    ):
        crossing = (inside[a] & outside[b]) | (outside[a] & inside[b])
        pieces.append(0.5 * (plane[a][crossing] + plane[b][crossing]))
    return np.concatenate(pieces)
