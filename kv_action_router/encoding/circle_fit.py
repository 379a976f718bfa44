"""Robust fit of a circle of known radius to points of its edge."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kv_action_router.contracts import FloatArray

_ITERATIONS = 12


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
    points: FloatArray, start: FloatArray, radius: float, noise: float
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
    center = np.array(start, dtype=float)
    shift, bound = 0.0, 3.0 * noise  # more than a pixel is another circle
    scale = radius  # wide at first: the start may be far off when the target is partly hidden
    floor = 4.0 * noise
    prior = np.diag((1e-9, 1e-9, 1.0))
    jacobian = np.full((len(points), 3), -1.0)
    normal = prior
    for _ in range(_ITERATIONS):
        offset = center - points
        distance = np.hypot(offset[:, 0], offset[:, 1]) + 1e-9
        jacobian[:, :2] = offset / distance[:, None]
        residual = distance - (radius + shift)
        weight = np.maximum(1.0 - (residual / scale) ** 2, 0.0) ** 2
        weighted = (jacobian * weight[:, None]).T
        normal = weighted @ jacobian + prior
        gradient = weighted @ residual
        gradient[2] += shift
        step = np.linalg.solve(normal, -gradient)
        length = math.hypot(step[0], step[1])
        if length > radius:
            step *= radius / length
        center += step[:2]
        shift = min(max(shift + float(step[2]), -bound), bound)
        if length < 0.01 * noise and scale <= floor:
            break
        scale = max(floor, 0.5 * scale)
    offset = points - center
    residual = np.hypot(offset[:, 0], offset[:, 1]) - radius - shift
    inside = np.abs(residual) < floor
    count = int(inside.sum())
    if count < 6:
        return None
    deviation = float(np.sqrt(np.mean(residual[inside] ** 2)))
    covariance = np.linalg.inv(normal)[:2, :2] * max(noise, deviation) ** 2
    return CircleFit(center, covariance, count, deviation)
