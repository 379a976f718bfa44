"""Depth image -> at most 256 spheres around what stands free on the table.

The robot's own links, the table and the target are filtered out. Points are gathered in cubic
cells; each cell becomes one sphere around its points. Where there are too many cells they are
made larger, so that the spheres always cover everything that was seen.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import (
    Decision,
    FloatArray,
    ObstacleSpheres,
    TargetEstimate,
)
from kv_action_router.encoding.camera import Camera
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.images import DepthImage, valid_depth
from kv_action_router.encoding.scene_slice import inside_spheres

_GROWTH = 1.5  # of the cells while there are too many


class ObstacleFinder:
    """Turns depth images of one camera into obstacle spheres. One instance a thread."""

    def __init__(self, config: EncoderConfig, camera: Camera) -> None:
        self._config = config
        self._camera = camera
        step = config.obstacle_stride
        height, width = camera.shape
        rows, columns = np.arange(0, height, step), np.arange(0, width, step)
        self._places = (rows[:, None] * width + columns).ravel()  # in a flat image
        self._rays: FloatArray = camera.rays.reshape(-1, 3)[self._places].astype(float)
        self._rise: FloatArray = np.ascontiguousarray(self._rays[:, 2])

    def find(
        self,
        depth: DepthImage,
        decision: Decision,
        robot: FloatArray | None = None,
        target: TargetEstimate | None = None,
    ) -> ObstacleSpheres:
        """Return the spheres that cover the obstacles.

        Args:
            depth: [m] (height, width); NaN, Inf or 0 = not measured.
            decision: header of the key that was made from the same image.
            robot: spheres x, y, z, r that cover the robot, base frame [m] (m, 4).
            target: is no obstacle.

        Raises:
            ImageError: the image's size is not the camera's.
        """
        self._camera.check_size(depth.shape, "depth")
        points, spacing = self._points(depth)
        if len(points) and robot is not None and len(robot):
            keep = ~inside_spheres(points, robot, self._config.robot_padding)
            points, spacing = points[keep], spacing[keep]
        if len(points) and target is not None:
            keep = ~self._on_target(points, target)
            points, spacing = points[keep], spacing[keep]
        center, radius = self._gather(points, spacing)
        return ObstacleSpheres(decision, center.astype(np.float32), radius.astype(np.float32))

    def _points(self, depth: DepthImage) -> tuple[FloatArray, FloatArray]:
        """Return free-standing points (n, 3) [m] and the spacing of points there (n,) [m]."""
        config = self._config
        sampled = depth.take(self._places)
        measured = np.flatnonzero(valid_depth(sampled, config.depth_minimum, config.depth_maximum))
        distance = sampled.take(measured).astype(float)
        height = distance * self._rise.take(measured)
        # nearly all that is seen is table: it goes first
        high = np.flatnonzero(height > config.obstacle_height_minimum - self._camera.origin[2])
        distance = distance.take(high)
        points = self._rays.take(measured.take(high), axis=0)
        points *= distance[:, None]
        points += self._camera.origin
        near = np.einsum("ij,ij->i", points, points) < config.obstacle_range**2
        spacing = distance[near] * (config.obstacle_stride / self._camera.focal_length)
        return points[near], spacing

    def _on_target(self, points: FloatArray, target: TargetEstimate) -> npt.NDArray[np.bool_]:
        config = self._config
        offset = points - target.pose.position
        reach = config.target_radius + config.target_padding
        flat = offset[:, 0] ** 2 + offset[:, 1] ** 2 < reach**2
        return flat & (np.abs(offset[:, 2]) < config.target_height + config.target_padding)

    def _gather(self, points: FloatArray, spacing: FloatArray) -> tuple[FloatArray, FloatArray]:
        cell = self._config.obstacle_cell
        while len(points):
            index = np.floor(points / cell).astype(np.int64) + (1 << 20)
            code = (index[:, 0] << 42) | (index[:, 1] << 21) | index[:, 2]
            order = np.argsort(code, kind="stable")
            ordered = code[order]
            starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
            counts = np.diff(np.r_[starts, len(ordered)])
            # a lone point is more often a flying pixel at an edge than an obstacle
            solid = counts >= self._config.obstacle_points_minimum
            if int(solid.sum()) <= ObstacleSpheres.MAXIMUM:
                return _bounding(points[order], spacing[order], starts, counts, solid)
            cell *= _GROWTH
        return np.zeros((0, 3)), np.zeros(0)


def _bounding(
    points: FloatArray,
    spacing: FloatArray,
    starts: npt.NDArray[np.intp],
    counts: npt.NDArray[np.intp],
    solid: npt.NDArray[np.bool_],
) -> tuple[FloatArray, FloatArray]:
    """Return centers (n, 3) and radii (n,) of spheres around consecutive groups of points."""
    center = np.add.reduceat(points, starts, axis=0) / counts[:, None]
    offset = points - np.repeat(center, counts, axis=0)
    distance = np.sqrt(np.einsum("ij,ij->i", offset, offset)) + spacing
    return center[solid], np.maximum.reduceat(distance, starts)[solid]
