"""Scene slice (24): what the surroundings look like, by fixed statistics of color and depth.

Both images are sampled on a coarse grid. Cells that show the target's color or the robot itself are
left out, and of the rest only the *distribution* counts: nine quantiles each of brightness, two
color differences, depth, and local contrast. Where the target lies and where the arm is changes
little; another table, another room or another light changes much. The statistics, relative to a
neutral reference, go through a fixed orthogonal projection and are scaled to norm sqrt(0.25).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import (
    SCENE_SLICE,
    SLICE_NORMS,
    Float32Array,
    FloatArray,
)
from kv_action_router.encoding.camera import Camera
from kv_action_router.encoding.images import ColorImage, DepthImage
from kv_action_router.encoding.projection import orthogonal_projection

SIZE = SCENE_SLICE.stop - SCENE_SLICE.start
SEED = 2028
GRID = (24, 32)  # rows, columns
_QUANTILES = np.linspace(0.1, 0.9, 9)
_CHANNELS = 5
_DEPTH = 3  # channel
_FARTHEST = 4.0  # [m] more than that is the same
# brightness around 0.5, no color, depth around 1 m, little contrast; then the scale of each
_REFERENCE = np.array([[0.5], [0.0], [0.0], [1.0], [0.05]])
_SCALE = np.array([[0.25], [0.15], [0.15], [0.5], [0.1]])
_CELLS_MINIMUM = 32  # fewer free cells than that say nothing


class SceneEncoder:
    """Describes the surroundings of one camera. One instance a thread: buffers are reused."""

    def __init__(self, camera: Camera) -> None:
        height, width = camera.shape
        rows = (np.arange(GRID[0]) * height + height // 2) // GRID[0]
        columns = (np.arange(GRID[1]) * width + width // 2) // GRID[1]
        self._cells = (rows[:, None] * width + columns).ravel()  # places in a flat image
        self._colors = 3 * self._cells + np.arange(3)[:, None]  # the same by channel
        rays = camera.rays.reshape(-1, 3)[self._cells]
        self._rays: FloatArray = np.ascontiguousarray(rays.T, dtype=float)
        self._origin = camera.origin[:, None]
        self._rgb = np.empty((3, len(self._cells)))
        self._values = np.zeros((_CHANNELS, len(self._cells)))
        self._features = np.ones(_CHANNELS * len(_QUANTILES) + 1)
        self._matrix = orthogonal_projection(SIZE, len(self._features), SEED)
        self._last = self._finish(np.zeros((_CHANNELS, len(_QUANTILES))))

    def encode(
        self,
        color: ColorImage,
        depth: DepthImage,
        target_mask: npt.NDArray[np.uint8],
        robot: FloatArray | None = None,
    ) -> Float32Array:
        """Return the slice (24,) float32.

        Args:
            color: 8-bit RGB (height, width, 3).
            depth: [m] (height, width); NaN, Inf or 0 = not measured.
            target_mask: nonzero where the target's color is (height, width).
            robot: spheres x, y, z, r that cover the robot, base frame [m] (m, 4); None = unknown.
        """
        distance = depth.take(self._cells)
        measured = (distance > 0.0) & (distance < np.inf)
        free = target_mask.take(self._cells) == 0
        if robot is not None and len(robot):
            places = np.flatnonzero(measured & free)
            points = self._rays.take(places, axis=1)
            points *= distance.take(places)
            points += self._origin
            free[places] = ~inside_spheres(points.T, robot)
        places = np.flatnonzero(free)
        count = len(places)
        if count < _CELLS_MINIMUM:
            return self._last  # nothing but robot and target in view: the scene is held
        known = int(np.count_nonzero(measured.take(places)))
        if known < count:
            distance[~measured] = np.inf  # the last ones when sorted
        self._describe(color, distance)
        values = self._values.take(places, axis=1)
        values.sort(axis=1)
        statistics = values.take(_ranks(count), axis=1)
        if 0 < known < count:
            statistics[_DEPTH] = values[_DEPTH].take(_ranks(known))
        statistics -= _REFERENCE
        statistics /= _SCALE
        if known < _CELLS_MINIMUM:
            statistics[_DEPTH] = 0.0  # says nothing
        self._last = self._finish(statistics)
        return self._last

    def _describe(self, color: ColorImage, distance: DepthImage) -> None:
        """Write the values of all cells, channel by channel."""
        rgb = self._rgb
        np.divide(color.take(self._colors), 255.0, out=rgb)
        red, green, blue = rgb
        brightness, first, second, reach, contrast = self._values
        yellow = red + green
        np.add(yellow, blue, out=brightness)
        brightness /= 3.0
        total = brightness + 0.1  # dark cells have no reliable color
        np.subtract(red, green, out=first)
        first /= total
        yellow *= 0.5
        np.subtract(blue, yellow, out=second)
        second /= total
        np.minimum(distance, _FARTHEST, out=reach)
        rows, steps = brightness.reshape(GRID), contrast.reshape(GRID)
        np.subtract(rows[:, 1:], rows[:, :-1], out=steps[:, :-1])
        steps[:, -1] = steps[:, -2]
        np.abs(contrast, out=contrast)

    def _finish(self, statistics: FloatArray) -> Float32Array:
        # The constant keeps the norm away from zero in a scene that equals the reference.
        features = self._features
        np.multiply(statistics.ravel(), 0.5, out=features[:-1])
        np.tanh(features[:-1], out=features[:-1])
        projected = self._matrix.dot(features)
        projected *= SLICE_NORMS["scene"] / math.sqrt(projected.dot(projected))
        return projected.astype(np.float32)


def inside_spheres(
    points: FloatArray, spheres: FloatArray, padding: float = 0.0
) -> npt.NDArray[np.bool_]:
    """Return which points (n, 3) lie in any of the spheres x, y, z, r (m, 4), padded [m]."""
    inside = np.zeros(len(points), dtype=bool)
    if not len(points):
        return inside
    center, radius = spheres[:, :3], spheres[:, 3:] + padding
    low, high = center - radius, center + radius
    # most spheres are far from all points, and most points from all other spheres
    # (a ufunc's reduce is what the methods max, min and all call, through Python)
    close = low < np.maximum.reduce(points)
    close &= high > np.minimum.reduce(points)
    chosen = np.flatnonzero(np.logical_and.reduce(close, axis=1))
    if not len(chosen):
        return inside
    boxed = points > np.minimum.reduce(low.take(chosen, axis=0))
    boxed &= points < np.maximum.reduce(high.take(chosen, axis=0))
    near = np.flatnonzero(np.logical_and.reduce(boxed, axis=1))
    if len(near):
        # |p|^2 - 2 p.c + |c|^2 - r^2: one matrix product instead of an (n, m, 3) difference
        center, radius = center.take(chosen, axis=0), radius.take(chosen, axis=0)
        points = points.take(near, axis=0)
        bound = radius * radius
        bound -= np.einsum("ij,ij->i", center, center)[:, None]
        products = (2.0 * center).dot(points.T)
        products += bound
        inside[near] = np.maximum.reduce(products) > np.einsum("ij,ij->i", points, points)
    return inside


def _ranks(count: int) -> npt.NDArray[np.intp]:
    """Return the places of the quantiles (9,) among sorted values."""
    return np.rint(_QUANTILES * (count - 1)).astype(np.intp)
