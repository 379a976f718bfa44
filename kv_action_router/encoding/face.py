"""The top face of a thing that lies flat: its level, whether it is level, and its edge.

A point of a level plane is a complex number x + iy: one array operation instead of two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray
from kv_action_router.encoding.face_axis import Slopes, fit_slopes

ComplexArray = npt.NDArray[np.complex128]

# what a pixel is; two neighbors combine by "or", which no other pair of them gives
OTHER, TOP, WALL, OUTSIDE = 0, 1, 2, 4

_THINNEST, _THICKEST = 0.0012, 0.004  # [m] half thickness of the level


def top_level(heights: FloatArray) -> tuple[float, float]:
    """Return height [m] and half thickness [m] of the uppermost level that the points gather at."""
    heights = np.sort(heights)
    level = float(heights[int(0.85 * (len(heights) - 1))])
    thickness = _THICKEST
    span = (-1, -1)
    for _ in range(5):
        first = int(heights.searchsorted(level - thickness))
        last = int(heights.searchsorted(level + thickness))
        if last <= first or span == (first, last):
            break  # nothing there, or nothing new
        span = first, last
        # sorted, so order statistics are places: the median, half of the interquartile range
        quarter = (last - first) // 4
        level = float(heights[(first + last) // 2])
        noise = 0.7413 * float(heights[last - 1 - quarter] - heights[first + quarter])
        thickness = min(_THICKEST, max(_THINNEST, 3.5 * noise))
    return level, thickness


@dataclass(frozen=True, slots=True)
class FaceShape:
    """What the points of a face say together.

    Attributes:
        center: x, y, each point weighted with the area that it stands for [m].
        slope: how steeply the heights rise along the view: 0 on a level face, not on a wall.
        variance: of the heights [m^2].
        slopes: how the face rises along x and y.
    """

    center: tuple[float, float]
    slope: float
    variance: float
    slopes: Slopes


def face_shape(
    points: ComplexArray, heights: FloatArray, looks: FloatArray, level: float
) -> FaceShape:
    """Return center, slopes and roughness of a face, from one matrix of products.

    Args:
        points: where the rays cut the face's plane, seen from below the camera (n,) [m].
        heights: measured along the same rays, relative to the plane (n,) [m].
        looks: vertical part of the rays (n,).
        level: height of the plane, seen from the camera [m].
    """
    count = len(points)
    rows = np.empty((5, count))
    rows[0], rows[1], rows[2], rows[3] = points.real, points.imag, heights, 1.0
    rows[4] = 1.0 / (looks * looks * looks)  # equal areas of the face, not of the image
    (xx, xy, xh, x, xw), (_, yy, yh, y, yw), (_, _, hh, h, _), (*_, w), _ = rows.dot(
        rows.T
    ).tolist()
    x, y, h = x / count, y / count, h / count
    far = max(math.hypot(x, y), 1e-9)
    ux, uy = x / far, y / far  # along the view
    rise = ux * xh + uy * yh - count * far * h
    run = ux * ux * xx + 2.0 * ux * uy * xy + uy * uy * yy - count * far * far
    variance = max(0.0, hh / count - h * h)
    slopes = fit_slopes(
        (xx - count * x * x, xy - count * x * y, yy - count * y * y),
        (xh - count * x * h, yh - count * y * h),
        variance,
        count,
        (x / level, y / level),
    )
    return FaceShape((xw / w, yw / w), rise / max(run, 1e-12), variance, slopes)


def edge_points(
    kinds: npt.NDArray[np.uint8], slopes: ComplexArray, top: float, bottom: float
) -> ComplexArray:
    """Return the points midway between a pixel of the face or wall and an outside neighbor.

    Args:
        kinds: of the pixels (height, width): OTHER, TOP, WALL or OUTSIDE.
        slopes: way along the plane by height that each pixel's ray gains (height, width).
        top: height of the plane that cuts the rays at the face's edge [m], seen from the camera.
        bottom: the same at the wall's edge [m].

    Returns:
        Points (n,) [m], seen from below the camera.
    """
    width = kinds.shape[1]
    flat, slopes = kinds.ravel(), slopes.ravel()
    half = np.zeros(8)
    half[TOP | OUTSIDE], half[WALL | OUTSIDE] = 0.5 * top, 0.5 * bottom
    pieces = []
    for step in (1, width):
        pairs = flat[:-step] | flat[step:]
        if step == 1:
            pairs[width - 1 :: width] = OTHER  # the end of a row and the start of the next
        crossing = np.flatnonzero(pairs > OUTSIDE)
        sums = slopes.take(crossing)
        sums += slopes.take(crossing + step)
        sums *= half.take(pairs.take(crossing))
        pieces.append(sums)
    return np.concatenate(pieces)
