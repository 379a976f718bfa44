"""Where a pixel looks: pinhole intrinsics and extrinsics of one camera.

The optical frame has x right, y down, z forward (REP 103); depth is measured along its z axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import ImageError


@dataclass(frozen=True)
class Intrinsics:
    """Pinhole model with optional plumb-bob or rational distortion.

    Raises:
        ImageError: a focal length is zero, negative or not finite, or the size is not positive.
    """

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    distortion: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("width", "height"):
            if getattr(self, name) <= 0:
                raise ImageError(f"camera {name} must be positive, got {getattr(self, name)}")
        for name in ("fx", "fy"):
            value = getattr(self, name)
            if not math.isfinite(value) or value <= 0.0:
                raise ImageError(f"camera matrix: {name} must be finite and positive, got {value}")
        if not all(map(math.isfinite, (self.cx, self.cy, *self.distortion))):
            raise ImageError(
                "camera matrix: cx, cy and distortion must be finite, "
                f"got {self.cx}, {self.cy}, {self.distortion}"
            )

    @classmethod
    def from_matrix(
        cls,
        width: int,
        height: int,
        matrix: Sequence[float],
        distortion: Sequence[float] = (),
    ) -> Intrinsics:
        """Take a row-major 3x3 camera matrix (``CameraInfo.k``) and ``CameraInfo.d``.

        Raises:
            ImageError: the matrix has not nine numbers, or is not calibrated (all zero).
        """
        if len(matrix) != 9:
            raise ImageError(f"camera matrix must have 9 numbers, got {len(matrix)}")
        fx, _, cx, _, fy, cy = (float(value) for value in matrix[:6])
        used = tuple(float(value) for value in distortion)
        return cls(width, height, fx, fy, cx, cy, used if any(used) else ())


def rotation_from_quaternion(quaternion: Sequence[float] | FloatArray) -> FloatArray:
    """Return the (3, 3) rotation of a quaternion x, y, z, w, which need not be of unit norm."""
    x, y, z, w = np.asarray(quaternion, dtype=float) / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


class Camera:
    """A calibrated camera at a fixed place in the robot's base frame.

    Attributes:
        origin: optical center in the base frame [m] (3,).
        orientation: of the optical frame in the base frame, quaternion x, y, z, w (4,).
        shape: height and width [px].
        focal_length: mean of both [px].
        rays: per pixel the base-frame direction of unit *depth* (height, width, 3) float32, so the
            point at depth d is ``origin + d * ray``.
    """

    def __init__(
        self,
        intrinsics: Intrinsics,
        position: Sequence[float],
        orientation: Sequence[float],
    ) -> None:
        self.intrinsics = intrinsics
        self.shape = (intrinsics.height, intrinsics.width)
        self.focal_length = 0.5 * (intrinsics.fx + intrinsics.fy)
        self.origin: FloatArray = np.array(position, dtype=float)
        self.orientation: FloatArray = np.array(orientation, dtype=float)
        self.rotation = rotation_from_quaternion(orientation)
        self.rays: npt.NDArray[np.float32] = self._rays()

    def check_size(self, shape: tuple[int, ...], name: str) -> None:
        """Refuse an image that does not belong to this calibration.

        Raises:
            ImageError: naming the image and both sizes.
        """
        if tuple(shape[:2]) != self.shape:
            raise ImageError(
                f"{name} image must be {self.shape[1]}x{self.shape[0]} as its camera info says, "
                f"got {shape[1]}x{shape[0]}"
            )

    def project(self, points: FloatArray) -> FloatArray:
        """Return undistorted pixels (n, 2), column then row, of base-frame points (n, 3) [m].

        Points at or behind the optical center become NaN.
        """
        local = (np.asarray(points, dtype=float) - self.origin) @ self.rotation
        depth = np.where(local[:, 2] > 1e-6, local[:, 2], np.nan)
        k = self.intrinsics
        return np.column_stack(
            (k.fx * local[:, 0] / depth + k.cx, k.fy * local[:, 1] / depth + k.cy)
        )

    def depth_of(self, point: FloatArray) -> float:
        """Return the depth of a base-frame point (3,) [m]."""
        return float((np.asarray(point) - self.origin) @ self.rotation[:, 2])

    def meet_level(
        self, column: float, row: float, height: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return where the ray through a pixel [px] meets the level plane z = ``height`` [m].

        Also the derivatives of that point by column and row [m/px] (3, 2), and by height (3,).
        Pixels outside of the image count as on its edge. The ray must not be level.
        """
        rows, columns = self.shape
        x = min(max(column, 0.0), columns - 1.001)
        y = min(max(row, 0.0), rows - 1.001)
        left, top = int(x), int(y)
        a, b = x - left, y - top
        corners = self.rays[top : top + 2, left : left + 2].astype(float)
        ray = (1 - b) * ((1 - a) * corners[0, 0] + a * corners[0, 1]) + b * (
            (1 - a) * corners[1, 0] + a * corners[1, 1]
        )
        across = (1 - b) * (corners[0, 1] - corners[0, 0]) + b * (corners[1, 1] - corners[1, 0])
        down = (1 - a) * (corners[1, 0] - corners[0, 0]) + a * (corners[1, 1] - corners[0, 1])
        depth = (height - self.origin[2]) / ray[2]
        by_height = ray / ray[2]
        by_pixel = depth * np.column_stack(
            (across - by_height * across[2], down - by_height * down[2])
        )
        return self.origin + depth * ray, by_pixel, by_height

    def _rays(self) -> npt.NDArray[np.float32]:
        k = self.intrinsics
        columns, rows = np.meshgrid(np.arange(k.width, dtype=float), np.arange(k.height))
        if k.distortion:
            matrix = np.array([[k.fx, 0.0, k.cx], [0.0, k.fy, k.cy], [0.0, 0.0, 1.0]])
            pixels = np.column_stack((columns.ravel(), rows.ravel()))[:, None, :]
            flat = cv2.undistortPoints(pixels, matrix, np.array(k.distortion))[:, 0, :]
            x, y = flat[:, 0].reshape(columns.shape), flat[:, 1].reshape(columns.shape)
        else:
            x, y = (columns - k.cx) / k.fx, (rows - k.cy) / k.fy
        directions = np.stack((x, y, np.ones_like(x)), axis=-1) @ self.rotation.T
        return np.ascontiguousarray(directions, dtype=np.float32)
