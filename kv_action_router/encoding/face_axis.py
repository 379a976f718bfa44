"""The axis of a face that lies flat or nearly so: a plane through its depth, with what is expected.

The heights of a face along both directions of the ground are a slope each. Faces lie flat but for a
few degrees, which is known beforehand (Gaussian, ``EXPECTED``); the fewer points there are, and the
noisier, the more of that stays in the answer. Bishop, Pattern Recognition and Machine Learning,
2006, section 3.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.encoding.camera import rotation_from_quaternion

EXPECTED = 0.05  # standard deviation of a slope before any image
_NOISE_MINIMUM = 4e-4  # [m] of a height: whole millimeters, along an oblique ray
_CORRELATION = 3.0  # neighboring heights are not independent: variance is worth this more


@dataclass(frozen=True, slots=True)
class Slopes:
    """How a face rises along x and y, and the covariance of that: xx, xy, yy."""

    x: float
    y: float
    covariance: tuple[float, float, float]

    @property
    def tilt(self) -> float:
        """Angle between the face's axis and the vertical [rad]."""
        return math.atan(math.hypot(self.x, self.y))

    def write(self, covariance: FloatArray) -> None:
        """Write the variances of roll and pitch into a pose's covariance (6, 6) [rad^2]."""
        xx, xy, yy = self.covariance
        covariance[3, 3], covariance[4, 4] = yy, xx  # about x it turns as it rises along y
        covariance[3, 4] = covariance[4, 3] = -xy


def fit_slopes(
    spread: tuple[float, float, float],
    rise: tuple[float, float],
    variance: float,
    count: int,
    sight: tuple[float, float],
) -> Slopes:
    """Return the slopes of a face whose points were put on the level plane of their mean height.

    Args:
        spread: sums of squares and products of x and y about their means: xx, xy, yy [m^2].
        rise: sums of products of x and y with height, about their means [m^2].
        variance: of the heights about their mean [m^2].
        count: of points.
        sight: way along x and y for each meter that a ray to the face gains in height.
    """
    xx, xy, yy = spread
    xh, yh = rise
    # what the slopes do not explain is noise; least squares, held back where points are on a line
    a, b = _solve(xx, xy, yy, xh, yh, 1e-9 + 1e-6 * (xx + yy))
    left = max(0.0, variance * count - a * xh - b * yh) / max(1, count - 3)
    noise = _CORRELATION * max(_NOISE_MINIMUM**2, left)
    prior = noise / EXPECTED**2
    a, b = _solve(xx, xy, yy, xh, yh, prior)
    xx, yy = xx + prior, yy + prior
    determinant = (xx * yy - xy * xy) / noise
    # a point above the level plane lies nearer to the camera than where its ray cuts that plane
    stretch = 1.0 / max(0.5, 1.0 + a * sight[0] + b * sight[1])
    return Slopes(a * stretch, b * stretch, (yy / determinant, -xy / determinant, xx / determinant))


def orientation(x: float, y: float, yaw: float) -> FloatArray:
    """Return the quaternion x, y, z, w of a face with these slopes, turned by ``yaw`` [rad]."""
    scale = 1.0 / math.sqrt(1.0 + x * x + y * y)
    w = math.sqrt(0.5 * (1.0 + scale))
    about_x, about_y = 0.5 * y * scale / w, -0.5 * x * scale / w
    s, c = math.sin(0.5 * yaw), math.cos(0.5 * yaw)
    return np.array([about_x * c + about_y * s, about_y * c - about_x * s, w * s, w * c])


def axis(quaternion: FloatArray) -> FloatArray:
    """Return the z axis (3,) of a frame with this orientation: x, y, z, w (4,)."""
    up: FloatArray = rotation_from_quaternion(quaternion)[:, 2]
    return up


def _solve(
    xx: float, xy: float, yy: float, xh: float, yh: float, more: float
) -> tuple[float, float]:
    """Return the solution of the symmetric system with ``more`` on its diagonal."""
    xx, yy = xx + more, yy + more
    determinant = xx * yy - xy * xy
    return (yy * xh - xy * yh) / determinant, (xx * yh - xy * xh) / determinant
