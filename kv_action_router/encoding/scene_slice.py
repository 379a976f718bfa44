"""Scene slice (24): what the surroundings look like, by fixed statistics of color and depth.

Both images are sampled on a coarse grid. Cells that show the target's color or the robot itself are
left out, and of the rest only the *distribution* counts: nine quantiles each of brightness, two
color differences, depth, and local contrast. Where the target lies and where the arm is changes
little; another table, another room or another light changes much. The statistics, relative to a
neutral reference, go through a fixed orthogonal projection and are scaled to norm sqrt(0.25).
"""

from __future__ import annotations

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
# brightness around 0.5, no color, depth around 1 m, little contrast; then the scale of each
_REFERENCE = np.array([0.5, 0.0, 0.0, 1.0, 0.05])
_SCALE = np.array([0.25, 0.15, 0.15, 0.5, 0.1])
_CELLS_MINIMUM = 32  # fewer free cells than that say nothing


class SceneEncoder:
    """Describes the surroundings of one camera. One instance a thread."""

    def __init__(self, camera: Camera) -> None:
        rows, columns = camera.shape
        self._rows = (np.arange(GRID[0]) * rows + rows // 2) // GRID[0]
        self._columns = (np.arange(GRID[1]) * columns + columns // 2) // GRID[1]
        self._grid = np.ix_(self._rows, self._columns)
        self._rays: FloatArray = camera.rays[self._grid].reshape(-1, 3).astype(float)
        self._origin = camera.origin
        self._matrix = orthogonal_projection(SIZE, _CHANNELS * len(_QUANTILES) + 1, SEED)
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
        small = color[self._grid].reshape(-1, 3)
        distance = depth[self._grid].ravel().astype(float)
        measured = np.isfinite(distance) & (distance > 0.0)
        free = target_mask[self._grid].ravel() == 0
        if robot is not None and len(robot):
            points = self._origin + np.where(measured, distance, 0.0)[:, None] * self._rays
            free &= ~(measured & inside_spheres(points, robot))
        if np.count_nonzero(free) < _CELLS_MINIMUM:
            return self._last  # nothing but robot and target in view: the scene is held
        rgb = small.astype(float) / 255.0
        brightness = rgb.mean(axis=1)
        total = brightness + 0.1  # dark cells have no reliable color
        contrast = np.abs(np.diff(brightness.reshape(GRID), axis=1, append=0.0))
        contrast[:, -1] = contrast[:, -2]
        values = (
            brightness[free],
            ((rgb[:, 0] - rgb[:, 1]) / total)[free],
            ((rgb[:, 2] - 0.5 * (rgb[:, 0] + rgb[:, 1])) / total)[free],
            np.minimum(distance[free & measured], 4.0),
            contrast.ravel()[free],
        )
        statistics = np.empty((_CHANNELS, len(_QUANTILES)))
        for index, channel in enumerate(values):
            statistics[index] = (_quantiles(channel) - _REFERENCE[index]) / _SCALE[index]
            if len(channel) < _CELLS_MINIMUM:
                statistics[index] = 0.0  # e.g. no depth: says nothing
        self._last = self._finish(statistics)
        return self._last

    def _finish(self, statistics: FloatArray) -> Float32Array:
        # The constant keeps the norm away from zero in a scene that equals the reference.
        projected = self._matrix @ np.append(np.tanh(0.5 * statistics).ravel(), 1.0)
        norm = float(np.sqrt(projected @ projected))
        return (projected * (SLICE_NORMS["scene"] / norm)).astype(np.float32)


def inside_spheres(
    points: FloatArray, spheres: FloatArray, padding: float = 0.0
) -> npt.NDArray[np.bool_]:
    """Return which points (n, 3) lie in any of the spheres x, y, z, r (m, 4), padded [m]."""
    # |p|^2 - 2 p.c + |c|^2 - r^2: one matrix product instead of an (n, m, 3) difference
    radius = spheres[:, 3] + padding
    bound = radius**2 - np.einsum("ij,ij->i", spheres[:, :3], spheres[:, :3])
    products = points @ (2.0 * spheres[:, :3].T)
    products += bound
    square = np.einsum("ij,ij->i", points, points)
    return (products > square[:, None]).any(axis=1)


def _quantiles(values: FloatArray) -> FloatArray:
    if len(values) == 0:
        return np.zeros(len(_QUANTILES))
    ordered = np.sort(values)
    return ordered[np.round(_QUANTILES * (len(ordered) - 1)).astype(int)]
