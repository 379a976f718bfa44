"""An RGB-D image of a disc on a table, computed ray by ray: for warm-up and tests."""

from __future__ import annotations

import colorsys

import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.encoding.camera import Camera
from kv_action_router.encoding.images import ColorImage, DepthImage

_TABLE = (150, 135, 115)
_FAR = 4.0  # [m] depth where a ray meets nothing


def disc_on_table(
    camera: Camera, center: FloatArray, radius: float, height: float, hue: float = 308.0
) -> tuple[ColorImage, DepthImage]:
    """Return color (height, width, 3) and depth [m] (height, width) as the camera would see them.

    Args:
        camera: of the images.
        center: of the disc's top face, base frame [m] (3,).
        radius: of the disc [m].
        height: of the disc [m]; the table is that far below the top face.
        hue: of the disc [deg].
    """
    rays = camera.rays.astype(float)
    origin = camera.origin
    down = np.where(rays[..., 2] < -1e-6, rays[..., 2], np.nan)
    with np.errstate(invalid="ignore"):
        table = (center[2] - height - origin[2]) / down
        depth = np.where(np.isfinite(table) & (table < _FAR), table, _FAR)
        color = np.empty((*camera.shape, 3), dtype=np.uint8)
        color[:] = _TABLE
        face = (center[2] - origin[2]) / down
        spot = origin[:2] + face[..., None] * rays[..., :2] - center[:2]
        top = np.hypot(spot[..., 0], spot[..., 1]) <= radius
        side = _side(rays, origin - center, radius)
        level = origin[2] + side * rays[..., 2] - center[2]
        wall = ~top & np.isfinite(side) & (level <= 0.0) & (level >= -height)
    depth[top] = face[top]
    depth[wall] = side[wall]
    color[top] = _rgb(hue, 0.9)
    color[wall] = _rgb(hue, 0.45)
    return color, depth.astype(np.float32)


def _side(rays: FloatArray, start: FloatArray, radius: float) -> FloatArray:
    """Return the depth (height, width) where rays meet an upright cylinder around z, or NaN."""
    a = rays[..., 0] ** 2 + rays[..., 1] ** 2
    b = rays[..., 0] * start[0] + rays[..., 1] * start[1]
    c = start[0] ** 2 + start[1] ** 2 - radius**2
    root = b * b - a * c
    return np.where(
        root >= 0.0, (-b - np.sqrt(np.maximum(root, 0.0))) / np.maximum(a, 1e-12), np.nan
    )


def _rgb(hue: float, value: float) -> tuple[int, int, int]:
    red, green, blue = colorsys.hsv_to_rgb(hue / 360.0, 0.95, value)
    return round(255 * red), round(255 * green), round(255 * blue)
