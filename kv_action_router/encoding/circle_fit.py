"""Robust fit of a circle of known radius to points of its edge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kv_action_router.contracts import FloatArray

_ITERATIONS = 12
_CONVERGED = 0.03  # step, as a share of the noise of a point: what follows is far smaller still
_PRIOR = 1e-9  # of the center: keeps the equations solvable


@dataclass(frozen=True, slots=True)
class CircleFit:
    """A fitted circle.

    Attributes:
        center: [m] (2,).
        covariance: of the center (2, 2) [m^2]; grows where only a short arc is seen.
        inliers: points that lie on the circle.
        deviation: RMS distance of the inliers from the circle [m].
    """

    center: FloatArray
    covariance: FloatArray
    inliers: int
    deviation: float


def fit_circle(
    points: FloatArray, start: Sequence[float] | FloatArray, radius: float, noise: float
) -> CircleFit | None:
    """Fit a circle of known radius; None when the points do not determine one.

    Gauss-Newton on ``|p - c| - radius - e`` with Tukey weights, where e is a common shift of the
    edge (a color threshold that sits a little inside or outside) with the prior N(0, noise).

    Args:
        points: edge points (n, 2) [m].
        start: first guess of the center (2,) [m].
        radius: of the circle [m].
        noise: standard deviation of an edge point, about 0.3 pixels [m].
    """
    if len(points) < 6:
        return None
    x, y = float(start[0]), float(start[1])
    shift, bound = 0.0, 3.0 * noise  # more than a pixel is another circle
    scale = radius  # wide at first: the start may be far off when the target is partly hidden
    floor = 4.0 * noise
    rows = np.empty((4, len(points)))  # derivatives by x, y and shift; residual
    rows[2] = -1.0
    spread = 0.0, 0.0, 0.0
    for _ in range(_ITERATIONS):
        _distances(points, x, y, radius + shift, rows)
        weight = rows[3] * (1.0 / scale)
        weight *= weight
        np.subtract(1.0, weight, out=weight)
        np.maximum(weight, 0.0, out=weight)
        weight *= weight
        solution = _solve((rows[:3] * weight).dot(rows.T).tolist(), shift)
        if solution is None:
            return None
        (dx, dy, change), spread = solution
        length = math.hypot(dx, dy)
        if length > radius:
            shrink = radius / length
            dx, dy, change = dx * shrink, dy * shrink, change * shrink
        x, y = x + dx, y + dy
        shift = min(max(shift + change, -bound), bound)
        if length < _CONVERGED * noise and scale <= floor:
            break
        # the center that a wide view already agrees with needs no narrowing by steps
        scale = floor if length < noise else max(floor, 0.5 * scale)
    _distances(points, x, y, radius + shift, rows)
    square = rows[3] * rows[3]
    inside = square < floor * floor
    count = int(np.count_nonzero(inside))
    if count < 6:
        return None
    deviation = math.sqrt(square.dot(inside) / count)
    xx, xy, yy = (max(noise, deviation) ** 2 * value for value in spread)
    return CircleFit(np.array((x, y)), np.array(((xx, xy), (xy, yy))), count, deviation)


def _distances(points: FloatArray, x: float, y: float, radius: float, rows: FloatArray) -> None:
    """Write the direction from each point to (x, y), and its distance from the circle."""
    toward_x, toward_y, residual = rows[0], rows[1], rows[3]
    np.subtract(x, points[:, 0], out=toward_x)
    np.subtract(y, points[:, 1], out=toward_y)
    np.hypot(toward_x, toward_y, out=residual)
    residual += 1e-9
    toward_x /= residual
    toward_y /= residual
    residual -= radius


def _solve(
    sums: list[list[float]], shift: float
) -> tuple[tuple[float, float, float], tuple[float, float, float]] | None:
    """Return the step in x, y and shift, and xx, xy, yy of the inverse normal matrix.

    The inverse of a symmetric 3 x 3 matrix by its cofactors; None when it is singular.

    Args:
        sums: normal matrix (3, 3) without the priors, and the gradient as its fourth column.
        shift: present one, drawn to zero by its prior.
    """
    (a, b, c, u), (_, d, e, v), (_, _, f, w) = sums
    a, d, f, w = a + _PRIOR, d + _PRIOR, f + 1.0, w + shift
    xx, xy, xs = d * f - e * e, c * e - b * f, b * e - c * d
    yy, ys, ss = a * f - c * c, b * c - a * e, a * d - b * b
    determinant = a * xx + b * xy + c * xs
    if not determinant > 0.0:
        return None
    scale = 1.0 / determinant
    step = (
        -scale * (xx * u + xy * v + xs * w),
        -scale * (xy * u + yy * v + ys * w),
        -scale * (xs * u + ys * v + ss * w),
    )
    return step, (scale * xx, scale * xy, scale * yy)
