"""From RGB-D images to what the networks take; training and run time share it."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import Float32Array
from kv_action_router.encoding.camera import Camera
from kv_action_router.encoding.images import ColorImage, DepthImage
from kv_action_router.encoding.network.layout import (
    CLOSEUP_HEIGHT,
    HEIGHT_LIMIT,
    HEIGHT_PLANE,
    MEASURED_PLANE,
    OVERVIEW,
    OVERVIEW_CELL,
    OVERVIEW_HEIGHT,
)

_AROUND = 3  # [px of the overview] whose heights say how high a likely place lies
_LEVEL_SHARE = 0.3  # quantile of them: what hides the target stands above it
_LEVEL_PIXELS = 4  # fewer heights than that say nothing


class Overview:
    """The whole picture, small. One thread may use it: buffers are reused.

    Attributes:
        color: (120, 160, 3) uint8.
        heights: above the base plane [m] (120, 160), NaN = not measured.
    """

    def __init__(self, camera: Camera, depth_limits: tuple[float, float]) -> None:
        rows, columns = OVERVIEW
        self._size = (columns, rows)
        self._limits = depth_limits
        self._slope = cv2.resize(
            camera.rays[..., 2], self._size, interpolation=cv2.INTER_NEAREST
        )  # height that a meter of depth adds
        self._origin = np.float32(camera.origin[2])
        self._scale = (camera.shape[1] / columns, camera.shape[0] / rows)
        self.color: ColorImage = np.zeros((rows, columns, 3), np.uint8)
        self.heights: Float32Array = np.full(OVERVIEW, np.nan, np.float32)
        self._depth = np.empty(OVERVIEW, np.float32)

    def take(self, color: ColorImage, depth: DepthImage) -> bool:
        """Take in a pair of images of the camera's size; return whether any depth is valid."""
        cv2.resize(color, self._size, dst=self.color, interpolation=cv2.INTER_AREA)
        near, far = self._limits
        cv2.resize(depth, self._size, dst=self._depth, interpolation=cv2.INTER_NEAREST)
        np.multiply(self._depth, self._slope, out=self.heights)
        self.heights += self._origin
        measured = (self._depth >= near) & (self._depth <= far)
        self.heights[~measured] = np.nan
        return bool(measured.any())

    def pixel(self, row: float, column: float) -> tuple[float, float]:
        """Return column and row of the image [px] of a place on the map of likely places."""
        across, down = self._scale
        half = 0.5 * OVERVIEW_CELL
        return (
            (column * OVERVIEW_CELL + half) * across - 0.5,
            (row * OVERVIEW_CELL + half) * down - 0.5,
        )

    def cell(self, column: float, row: float) -> tuple[float, float]:
        """Return row and column on the map of a pixel of the image: inverse of :meth:`pixel`."""
        across, down = self._scale
        return (
            ((row + 0.5) / down) / OVERVIEW_CELL - 0.5,
            ((column + 0.5) / across) / OVERVIEW_CELL - 0.5,
        )

    def level(self, pixel: tuple[float, float]) -> float | None:
        """Return the height of what lies around a pixel [m]; None where nothing was measured."""
        across, down = self._scale
        column, row = int(pixel[0] / across), int(pixel[1] / down)
        around = self.heights[
            max(0, row - _AROUND) : row + _AROUND + 1,
            max(0, column - _AROUND) : column + _AROUND + 1,
        ]
        known = around[np.isfinite(around)]
        if len(known) < _LEVEL_PIXELS:
            return None
        place = int(_LEVEL_SHARE * len(known))
        known.partition(place)
        return float(known[place])


def write_planes(color: ColorImage, heights: Float32Array, unit: float, out: Float32Array) -> None:
    """Write the five planes (5, rows, columns) that a network takes.

    Args:
        color: (rows, columns, 3).
        heights: [m] (rows, columns), NaN = not measured.
        unit: height that is written as 1 [m].
        out: where they are written.
    """
    np.multiply(color.transpose(2, 0, 1), np.float32(1.0 / 255.0), out=out[:HEIGHT_PLANE])
    out[:HEIGHT_PLANE] -= np.float32(0.5)
    plane, measured = out[HEIGHT_PLANE], out[MEASURED_PLANE]
    known = np.isfinite(heights)
    np.copyto(measured, known)
    np.multiply(heights, np.float32(1.0 / unit), out=plane)
    np.clip(plane, -HEIGHT_LIMIT, HEIGHT_LIMIT, out=plane)
    plane[~known] = 0.0


def write_overview(color: ColorImage, heights: Float32Array, out: Float32Array) -> None:
    """Write the planes of an overview (5, 120, 160)."""
    write_planes(color, heights, OVERVIEW_HEIGHT, out)


def write_closeup(
    color: ColorImage, heights: Float32Array, window: float, out: Float32Array
) -> None:
    """Write the planes of a cut-out ``window`` [m] wide (5, n, n); heights above its own level."""
    write_planes(color, heights, CLOSEUP_HEIGHT * window, out)


@dataclass(frozen=True, slots=True)
class Cutout:
    """A square around a likely place, of the same metric size whatever the distance.

    Attributes:
        color: (n, n, 3) uint8.
        heights: above ``level`` [m] (n, n), NaN = not measured.
        level: height of the place above the base plane [m].
        pixel: column and row of its middle [px].
        width: of the square [px].
    """

    color: ColorImage
    heights: Float32Array
    level: float
    pixel: tuple[float, float]
    width: float


class Cutter:
    """Cuts squares out of images of one camera."""

    def __init__(
        self, camera: Camera, window: float, size: int, depth_limits: tuple[float, float]
    ) -> None:
        """Cut squares of ``window`` [m], made ``size`` pixels wide."""
        self._camera = camera
        self._window = window
        self._size = size
        self._limits = depth_limits
        self._slope = np.ascontiguousarray(camera.rays[..., 2])

    def cut(
        self, color: ColorImage, depth: DepthImage, pixel: tuple[float, float], level: float
    ) -> Cutout | None:
        """Return the square around a pixel whose target lies at a height [m] above the base plane.

        None where the ray does not come down to that height in front of the camera.
        """
        camera, size = self._camera, self._size
        rows, columns = camera.shape
        row = min(max(round(pixel[1]), 0), rows - 1)
        column = min(max(round(pixel[0]), 0), columns - 1)
        slope = float(self._slope[row, column])
        distance = (level - float(camera.origin[2])) / slope if slope else 0.0
        if not self._limits[0] <= distance <= self._limits[1]:
            return None
        width = self._window * camera.focal_length / distance
        step = width / size
        half = 0.5 * (size - 1) * step
        matrix = np.array([[step, 0.0, pixel[0] - half], [0.0, step, pixel[1] - half]])
        shape = (size, size)
        nearest = cv2.INTER_NEAREST | cv2.WARP_INVERSE_MAP
        cut = np.empty((size, size, 3), np.uint8)
        cv2.warpAffine(
            color,
            matrix,
            shape,
            dst=cut,
            flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
            borderMode=cv2.BORDER_REPLICATE,
        )
        near = cv2.warpAffine(
            depth, matrix, shape, flags=nearest, borderMode=cv2.BORDER_CONSTANT, borderValue=0.0
        )
        slopes = cv2.warpAffine(
            self._slope, matrix, shape, flags=nearest, borderMode=cv2.BORDER_REPLICATE
        )
        heights: Float32Array = near * slopes
        heights += np.float32(camera.origin[2] - level)
        heights[~((near >= self._limits[0]) & (near <= self._limits[1]))] = np.nan
        return Cutout(cut, heights, level, pixel, width)


def likely_places(likely: npt.NDArray[np.float32], minimum: float, most: int) -> list[
    tuple[float, float, float]
]:  # fmt: skip
    """Return (row, column, score) of the highest peaks of a map, best first.

    Args:
        likely: (rows, columns), 0 to 1.
        minimum: score below which a place is none.
        most: places to return.
    """
    left = likely.copy()
    columns = left.shape[1]
    found = []
    for _ in range(most):
        row, column = divmod(int(left.argmax()), columns)
        score = float(left[row, column])
        if not score >= minimum:
            break
        top, first = max(0, row - 1), max(0, column - 1)
        around = likely[top : row + 2, first : column + 2]
        total = float(around.sum())
        down = float(around.sum(axis=1) @ np.arange(top, top + around.shape[0])) / total
        across = float(around.sum(axis=0) @ np.arange(first, first + around.shape[1])) / total
        found.append((down, across, score))
        left[max(0, row - 2) : row + 3, max(0, column - 2) : column + 3] = 0.0
    return found
