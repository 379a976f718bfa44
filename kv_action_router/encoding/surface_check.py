"""Whether the camera still stands where its pose says: the work surface must be where it was.

The surface is level and its height is known. A camera that was tilted, raised or lowered shows it
as a plane that is not level or not of that height, and then every position that an image gives is
wrong. A camera that was turned about the vertical, or moved level, shows the same plane: that
cannot be told from one image (``docs/perception.md``).
"""

from __future__ import annotations

import math

import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.encoding.camera import Camera
from kv_action_router.encoding.images import DepthImage, valid_depth
from kv_action_router.encoding.perception_config import PerceptionConfig, TargetConfig

_GRID = (15, 20)  # rows, columns of the pixels that are looked at
_EVERY = 8  # images: a camera that was moved stays so, and the way to a key must be short
_NEAR = 0.08  # [m] points farther from where the surface should be are not its
_WIDTHS = (0.04, 0.02, 0.01, 0.006, 0.006)  # [m] of Tukey's weights, narrower each time
_SHARE = 0.35  # of the measured points that must lie in the plane, or nothing is said
_POINTS = 60  # that must be measured


class SurfaceCheck:
    """Fits a plane to coarse depth. One thread may use it."""

    def __init__(self, config: TargetConfig, told: PerceptionConfig, camera: Camera) -> None:
        """Look with a camera; ``config`` has the limits of depth."""
        self._limits = config.depth_minimum, config.depth_maximum
        self._height = told.surface_height
        self._tolerance = told.surface_tolerance
        self._tilt = told.surface_tilt_maximum
        height, width = camera.shape
        rows = (np.arange(_GRID[0]) * height + height // 2) // _GRID[0]
        columns = (np.arange(_GRID[1]) * width + width // 2) // _GRID[1]
        self._cells = (rows[:, None] * width + columns).ravel()
        self._rays: FloatArray = camera.rays.reshape(-1, 3)[self._cells].astype(float)
        self._origin = camera.origin
        self._images = 0
        self._trouble = ""

    def trouble(self, depth: DepthImage) -> str:
        """Return what is wrong with the surface; empty = nothing, or nothing that can be told.

        Every eighth image is looked at, the first one among them; the answer holds until the next.

        Args:
            depth: [m] (height, width) of the camera's size; NaN, Inf or 0 = not measured.
        """
        if self._tolerance and self._images % _EVERY == 0:
            self._trouble = self.look(depth)
        self._images += 1
        return self._trouble

    def look(self, depth: DepthImage) -> str:
        """Return what is wrong with the surface in this image; see :meth:`trouble`."""
        distance = depth.take(self._cells)
        measured = np.flatnonzero(valid_depth(distance, *self._limits))
        if len(measured) < _POINTS:
            return ""
        points = self._rays.take(measured, axis=0) * distance.take(measured)[:, None] + self._origin
        points[:, 2] -= self._height
        near = points[np.abs(points[:, 2]) < _NEAR]
        if len(near) < _SHARE * len(measured):
            return ""
        plane = _fit(near)
        if plane is None or plane[3] < _SHARE * len(measured):
            return ""
        east, north, offset, _ = plane
        tilt = math.hypot(east, north)
        if tilt > self._tilt:
            return (
                f"the work surface is tilted by {math.degrees(tilt):.1f} degrees, at most "
                f"{math.degrees(self._tilt):.1f} are allowed: the camera was moved"
            )
        if abs(offset) > self._tolerance:
            return (
                f"the work surface is {1e3 * offset:+.0f} mm from its height, at most "
                f"{1e3 * self._tolerance:.0f} are allowed: the camera was moved"
            )
        return ""


def _fit(points: FloatArray) -> tuple[float, float, float, int] | None:
    """Return the slopes along x and y, the height at the points' middle [m], and how many fit.

    None where the points do not determine a plane.
    """
    middle = points[:, :2].mean(axis=0)
    design = np.column_stack((points[:, :2] - middle, np.ones(len(points))))
    z = points[:, 2]
    weight = np.ones(len(points))
    solution = np.zeros(3)
    for width in _WIDTHS:
        weighted = design * weight[:, None]
        normal = weighted.T @ design
        if abs(np.linalg.det(normal)) < 1e-12:
            return None
        solution = np.linalg.solve(normal, weighted.T @ z)
        residual = (z - design @ solution) / width
        weight = np.maximum(0.0, 1.0 - residual * residual) ** 2
    return float(solution[0]), float(solution[1]), float(solution[2]), int((weight > 0.0).sum())
