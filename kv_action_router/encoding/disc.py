"""Where a disc that lies flat is, given one piece of its color in an RGB-D image.

Planes are level, so a ray that looks down by d for each meter of depth has its point at height h
below the camera at depth h / d: all heights here are relative to the camera, thus negative.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray, Pose, TargetEstimate
from kv_action_router.encoding.camera import Camera
from kv_action_router.encoding.circle_fit import CircleFit, fit_circle
from kv_action_router.encoding.face import (
    OUTSIDE,
    TOP,
    WALL,
    ComplexArray,
    FaceShape,
    edge_points,
    face_shape,
    top_level,
)
from kv_action_router.encoding.face_axis import orientation
from kv_action_router.encoding.images import DepthImage, valid_depth
from kv_action_router.encoding.perception_config import TargetConfig
from kv_action_router.encoding.plain_view import NEARER

_EDGE_NOISE = 0.35  # [px] standard deviation of a midpoint between two pixels
_CORRELATION = 3.0  # neighboring edge points are not independent: variance is worth this more
_SLOPE_MAXIMUM = 0.25
_SEEN_MINIMUM = 0.3  # share of the edge
_ABOVE = 0.06  # share of the colored points that may lie above the face
_HORIZON = -0.02  # vertical part of a ray above which it does not count as looking down
_HEIGHT_DEVIATION = 0.0005  # [m] systematic part of the height
_YAW_VARIANCE = math.pi**2 / 3.0  # a disc has no heading: uniform over a turn

_Box = tuple[slice, slice]


class DiscLocator:
    """Locates the disc in images of one camera."""

    def __init__(self, config: TargetConfig, camera: Camera) -> None:
        self._config = config
        self._camera = camera
        rays = camera.rays.astype(float)
        # past the horizon there is no edge of the target
        self._down: FloatArray = np.minimum(rays[..., 2], _HORIZON)
        self._slopes: ComplexArray = (rays[..., 0] + 1j * rays[..., 1]) / self._down
        self._nearer: FloatArray = -NEARER * self._down  # the same as a difference of heights
        level = rays[..., 2] >= _HORIZON
        self._not_down: npt.NDArray[np.bool_] | None = level if level.any() else None

    def locate(
        self, seed: _Box, mask: npt.NDArray[np.uint8], depth: DepthImage
    ) -> TargetEstimate | str:
        """Return where the disc is, or why that cannot be said.

        Args:
            seed: box around a connected piece of the target's color, rows and columns.
            mask: nonzero where the target's color is (height, width).
            depth: [m] (height, width); NaN, Inf or 0 = not measured.
        """
        config = self._config
        limits = config.depth_minimum, config.depth_maximum
        depth_seed = depth[seed]
        inside = (mask[seed] > 0) & valid_depth(depth_seed, *limits)
        measured = depth_seed[inside]
        if len(measured) < config.target_pixels_minimum // 2:
            return "too few pixels of the target's color have depth"
        level, thickness = top_level(measured * self._down[seed][inside])
        middle = len(measured) // 2
        measured.partition(middle)
        distance = float(measured[middle])
        box = self._around(seed, distance)
        color = mask[box] > 0
        if level >= 0.0 or (self._not_down is not None and (self._not_down[box] & color).any()):
            return "the camera does not look down on the target's face"
        down, depth_box = self._down[box], depth[box]
        above = depth_box * down
        above -= level  # the face; NaN where nothing was measured
        valid = valid_depth(depth_box, *limits)
        valid &= color
        top = np.abs(above) <= thickness
        top &= valid
        wall = above < -thickness
        wall &= valid
        refusal = self._refuse_face(valid, top, wall)
        if refusal:
            return refusal
        covered = above > self._nearer[box]  # by the target itself, or by what hides it
        covered &= depth_box >= config.depth_minimum
        covered |= color
        slopes = self._slopes[box]
        edge = edge_points(_kinds(top, wall, covered), slopes, level, level - config.target_height)
        points = slopes[top]
        points *= level
        looks = down[top]
        shape = face_shape(points, above[top], looks, level)
        if shape.slope > _SLOPE_MAXIMUM:
            return "the visible piece is side wall, not top face"
        pixel = distance / self._camera.focal_length
        fit = fit_circle(
            edge.view(float).reshape(-1, 2), shape.center, config.target_radius, _EDGE_NOISE * pixel
        )
        if fit is None:
            return "the visible edge does not determine a circle"
        steepness = -float(looks.sum()) / len(looks)
        seen = self._seen(fit, pixel, steepness)
        refusal = self._refuse_fit(fit, points, len(edge), pixel, seen)
        if refusal:
            return refusal
        return self._estimate(fit, seen, level, shape, len(points))

    def _around(self, seed: _Box, distance: float) -> _Box:
        """Return the box in which the whole target lies when ``seed`` is a piece of it."""
        width = int(2.0 * self._config.target_radius * self._camera.focal_length / distance)
        box = []
        for span, size in zip(seed, self._camera.shape, strict=True):
            margin = 4 + max(0, width - (span.stop - span.start))
            box.append(slice(max(0, span.start - margin), min(size, span.stop + margin)))
        return box[0], box[1]

    def _refuse_face(
        self,
        valid: npt.NDArray[np.bool_],
        top: npt.NDArray[np.bool_],
        wall: npt.NDArray[np.bool_],
    ) -> str:
        """Return why the colored pixels with depth are not the disc's face; empty when they are."""
        count = int(np.count_nonzero(top))
        sides = int(np.count_nonzero(wall))
        colored = int(np.count_nonzero(valid))
        least = self._config.target_pixels_minimum
        if colored - count - sides > _ABOVE * colored:
            return "the visible piece has no level top face"
        if count < least:
            return f"top face: {count} pixels with depth, {least} are needed"
        if count < 0.5 * sides:
            return "more of the side wall is visible than of the top face"
        return ""

    def _refuse_fit(
        self, fit: CircleFit, face: ComplexArray, edges: int, pixel: float, seen: float
    ) -> str:
        """Return why the circle is not the disc's edge, or not well known; empty when it is."""
        config = self._config
        reach = np.abs(face - complex(fit.center[0], fit.center[1]))
        within = np.count_nonzero(reach <= config.target_radius + 2.0 * pixel)
        if within < 0.93 * len(face):
            return "the colored face is larger than the target"
        if fit.inliers < 0.5 * edges:
            share = fit.inliers / edges
            return f"only {share:.0%} of the edge lies on a circle of the target's radius"
        if seen < _SEEN_MINIMUM:
            return "too little of the target's edge is visible"
        (xx, xy), (_, yy) = fit.covariance.tolist()
        largest = 0.5 * (xx + yy) + math.hypot(0.5 * (xx - yy), xy)  # of the eigenvalues
        worst = math.sqrt(_inflation(seen) * largest)
        if worst > config.target_deviation_maximum:
            return f"the visible edge fixes the center to {1e3 * worst:.1f} mm only"
        return ""

    def _seen(self, fit: CircleFit, pixel: float, steepness: float) -> float:
        """Return the share of the target's edge that was seen, 0 to 1.

        An ellipse with half axes a, b [px] has 4 (a + b) crossings of its edge.
        """
        radius = self._config.target_radius / pixel
        return min(1.0, fit.inliers / (4.0 * radius * (1.0 + min(1.0, steepness))))

    def _estimate(
        self, fit: CircleFit, seen: float, level: float, shape: FaceShape, count: int
    ) -> TargetEstimate:
        """Return the estimate; ``count`` points are the face's."""
        covariance = np.zeros((6, 6))
        covariance[:2, :2] = fit.covariance * _inflation(seen)
        covariance[2, 2] = shape.variance / count + _HEIGHT_DEVIATION**2
        shape.slopes.write(covariance)
        covariance[5, 5] = _YAW_VARIANCE
        position = self._camera.origin.copy()
        position[:2] += fit.center
        position[2] += level
        turned = orientation(shape.slopes.x, shape.slopes.y, 0.0)
        return TargetEstimate(Pose(position, turned), covariance)


def _inflation(seen: float) -> float:
    """Return what the fit's covariance is multiplied by: more as less of the edge is seen."""
    return _CORRELATION / seen**2


def _kinds(
    top: npt.NDArray[np.bool_], wall: npt.NDArray[np.bool_], covered: npt.NDArray[np.bool_]
) -> npt.NDArray[np.uint8]:
    """Return what each pixel is, as :func:`edge_points` takes it; the three do not overlap."""
    kinds = (~covered).view(np.uint8)
    kinds *= OUTSIDE
    kinds += top.view(np.uint8) * np.uint8(TOP)
    kinds += wall.view(np.uint8) * np.uint8(WALL)
    return kinds
