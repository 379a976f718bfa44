"""Where the target is: color segmentation, then depth, then a circle of known radius.

The target is a disc of one color, lying flat, of which the camera sees the top face and, obliquely,
a piece of the side wall. Its frame sits at the center of the top face, so the wall must not pull
the estimate:

1. pixels of the target's color, largest connected piece first;
2. the height of the top face is the uppermost level at which the piece's depth points gather;
3. edge points at the midpoint between an inside and an outside pixel, each ray cut with the plane
   of the face that it belongs to: the far edge with the top plane, the near edge, below the wall,
   with the bottom plane. An edge whose outside is *nearer* than the target is an occluder's and
   does not count;
4. a robust circle fit of known radius, which also works on an arc; its covariance grows as
   the arc shrinks, and past a limit there is no estimate. Never a guess.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import cv2
import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray, Pose, TargetEstimate
from kv_action_router.encoding.camera import Camera
from kv_action_router.encoding.circle_fit import CircleFit, fit_circle
from kv_action_router.encoding.config import TargetConfig
from kv_action_router.encoding.face import edge_points, slope, top_level
from kv_action_router.encoding.images import ColorImage, DepthImage, valid_depth

_EDGE_NOISE = 0.35  # [px] standard deviation of a midpoint between two pixels
_CORRELATION = 3.0  # neighboring edge points are not independent: variance is worth this more
_NEARER = 0.006  # [m] an outside point this much nearer than the face hides it
_SLOPE_MAXIMUM = 0.25
_SEEN_MINIMUM = 0.3  # share of the edge
_ABOVE = 0.06  # share of the colored points that may lie above the face
_HORIZON = -0.02  # vertical part of a ray above which it does not count as looking down
_HEIGHT_DEVIATION = 0.0005  # [m] systematic part of the height
_TILT_DEVIATION = 0.05  # [rad] the face is taken as level
_YAW_VARIANCE = math.pi**2 / 3.0  # a disc has no heading: uniform over a turn


class Sight(Enum):
    """What the newest image says about the target."""

    SEEN = "seen"
    HIDDEN = "hidden"  # absent, or not visible enough to say where it is
    NO_DEPTH = "no depth"  # the depth image has no valid point at all


@dataclass(frozen=True, slots=True)
class Perception:
    """One image's answer: the estimate is there exactly when ``sight`` is SEEN."""

    sight: Sight
    target: TargetEstimate | None
    color_mask: npt.NDArray[np.uint8]  # (height, width), 255 where the target's color is
    reason: str = ""


class TargetPerception:
    """Finds the disc in RGB-D images of one camera. Not thread safe: buffers are reused."""

    def __init__(self, config: TargetConfig, camera: Camera) -> None:
        self._config = config
        self._camera = camera
        self._hsv = np.empty((*camera.shape, 3), dtype=np.uint8)
        self._mask = np.empty(camera.shape, dtype=np.uint8)
        self._bands = hue_bands(config)

    def find(self, color: ColorImage, depth: DepthImage) -> Perception:
        """Return where the target is, or why there is no estimate.

        Args:
            color: 8-bit RGB (height, width, 3).
            depth: [m] (height, width); NaN, Inf or 0 = not measured.

        Raises:
            ImageError: an image's size is not the camera's.
        """
        self._camera.check_size(color.shape, "color")
        self._camera.check_size(depth.shape, "depth")
        mask = self.segment(color)
        config = self._config
        limits = config.depth_minimum, config.depth_maximum
        if (
            not valid_depth(depth[::4, ::4], *limits).any()
            and not valid_depth(depth, *limits).any()
        ):
            return Perception(Sight.NO_DEPTH, None, mask, "the depth image has no valid point")
        reason = "no pixel of the target's color"
        for seed in self._pieces(mask):
            found = self._locate(seed, mask, depth)
            if isinstance(found, TargetEstimate):
                return Perception(Sight.SEEN, found, mask)
            reason = found
        return Perception(Sight.HIDDEN, None, mask, reason)

    def segment(self, color: ColorImage) -> npt.NDArray[np.uint8]:
        """Return 255 where the target's color is; the buffer is reused by the next call."""
        cv2.cvtColor(color, cv2.COLOR_RGB2HSV, dst=self._hsv)
        first, *rest = self._bands
        cv2.inRange(self._hsv, first[0], first[1], dst=self._mask)
        for low, high in rest:  # the band wraps around red
            np.bitwise_or(self._mask, cv2.inRange(self._hsv, low, high), out=self._mask)
        return self._mask

    def place_is_empty(
        self, target: TargetEstimate, mask: npt.NDArray[np.uint8], depth: DepthImage
    ) -> bool:
        """Return whether the place of an earlier estimate is in plain view, without the target.

        A hidden place is not empty: what stands before it is nearer than the target was.
        """
        center = target.pose.position
        pixel = self._camera.project(center[None, :])[0]
        distance = self._camera.depth_of(center)
        if not np.isfinite(pixel).all():
            return False
        half = max(
            1,
            int(0.6 * self._config.target_radius * self._camera.focal_length / distance),
        )
        column, row = int(np.rint(pixel[0])), int(np.rint(pixel[1]))
        height, width = self._camera.shape
        if not (half <= column < width - half and half <= row < height - half):
            return False
        window = np.s_[row - half : row + half + 1, column - half : column + half + 1]
        there = depth[window]
        measured = valid_depth(there, self._config.depth_minimum, self._config.depth_maximum)
        seen = measured & (there > distance - _NEARER - self._config.target_radius)
        return bool(seen.mean() > 0.8 and (mask[window] > 0).mean() < 0.1)

    def _pieces(self, mask: npt.NDArray[np.uint8]) -> list[tuple[slice, slice]]:
        """Return the bounding boxes of connected pieces of color, largest first, at most three."""
        left, top, width, height = cv2.boundingRect(mask)
        if width == 0:
            return []
        crop = mask[top : top + height, left : left + width]
        count, _, statistics, _ = cv2.connectedComponentsWithStats(crop, connectivity=8)
        order = 1 + np.argsort(-statistics[1:count, cv2.CC_STAT_AREA], kind="stable")
        boxes = []
        for index in order[:3]:
            x, y, w, h, area = (int(value) for value in statistics[index])
            if area >= self._config.target_pixels_minimum // 2:
                boxes.append((slice(top + y, top + y + h), slice(left + x, left + x + w)))
        return boxes

    def _locate(
        self, seed: tuple[slice, slice], mask: npt.NDArray[np.uint8], depth: DepthImage
    ) -> TargetEstimate | str:
        config, camera = self._config, self._camera
        depth_seed = depth[seed]
        inside = (mask[seed] > 0) & valid_depth(
            depth_seed, config.depth_minimum, config.depth_maximum
        )
        measured = depth_seed[inside]
        if len(measured) < config.target_pixels_minimum // 2:
            return "too few pixels of the target's color have depth"
        level, thickness = top_level(
            camera.origin[2] + measured * camera.rays[..., 2][seed][inside].astype(float)
        )
        distance = float(np.partition(measured, len(measured) // 2)[len(measured) // 2])
        box = self._around(seed, distance)
        color = mask[box] > 0
        down = camera.rays[..., 2][box].astype(float)
        if not (down[color] < _HORIZON).all() or level >= camera.origin[2]:
            return "the camera does not look down on the target's face"
        np.minimum(down, _HORIZON, out=down)  # past the horizon there is no edge of the target
        depth_box = depth[box].astype(float)
        valid = color & valid_depth(depth_box, config.depth_minimum, config.depth_maximum)
        height = camera.origin[2] + depth_box * down
        with np.errstate(invalid="ignore"):
            top = valid & (np.abs(height - level) <= thickness)
            wall = valid & (height < level - thickness)
        with np.errstate(invalid="ignore"):
            above = np.count_nonzero(valid & (height > level + thickness))
        if above > _ABOVE * np.count_nonzero(valid):
            return "the visible piece has no level top face"
        if (count := int(np.count_nonzero(top))) < config.target_pixels_minimum:
            return f"top face: {count} pixels with depth, {config.target_pixels_minimum} are needed"
        if count < 0.5 * np.count_nonzero(wall):
            return "more of the side wall is visible than of the top face"
        level_depth = (level - camera.origin[2]) / down
        bottom_depth = (level - config.target_height - camera.origin[2]) / down
        with np.errstate(invalid="ignore"):
            hidden = (depth_box < level_depth - _NEARER) & (depth_box >= config.depth_minimum)
        outside = ~(color | hidden)
        flat = camera.rays[box][..., :2].astype(float)
        face = level_depth[..., None] * flat
        bottom = bottom_depth[..., None] * flat
        edge = np.concatenate((edge_points(top, outside, face), edge_points(wall, outside, bottom)))
        points = face[top]
        steepness = float(-down[top].mean())
        heights = height[top]
        if slope(points, heights) > _SLOPE_MAXIMUM:
            return "the visible piece is side wall, not top face"
        weight = level_depth[top] ** 3  # equal areas of the face, not of the image
        start = weight @ points / weight.sum()
        pixel = distance / camera.focal_length
        fit = fit_circle(edge, start, config.target_radius, _EDGE_NOISE * pixel)
        refusal = self._refusal(fit, points, len(edge), pixel, steepness)
        if refusal or fit is None:
            return refusal
        return self._estimate(self._spread(fit, pixel, steepness), fit.center, level, heights)

    def _around(self, seed: tuple[slice, slice], distance: float) -> tuple[slice, slice]:
        """Return the box in which the whole target lies when ``seed`` is a piece of it."""
        width = int(2.0 * self._config.target_radius * self._camera.focal_length / distance)
        box = []
        for span, size in zip(seed, self._camera.shape, strict=True):
            margin = 4 + max(0, width - (span.stop - span.start))
            box.append(slice(max(0, span.start - margin), min(size, span.stop + margin)))
        return box[0], box[1]

    def _refusal(
        self,
        fit: CircleFit | None,
        face: FloatArray,
        edges: int,
        pixel: float,
        steepness: float,
    ) -> str:
        config = self._config
        if fit is None:
            return "the visible edge does not determine a circle"
        offset = face - fit.center
        within = np.hypot(offset[:, 0], offset[:, 1]) <= config.target_radius + 2.0 * pixel
        if within.mean() < 0.93:
            return "the colored face is larger than the target"
        if fit.inliers < 0.5 * edges:
            share = fit.inliers / edges
            return f"only {share:.0%} of the edge lies on a circle of the target's radius"
        if self._seen(fit, pixel, steepness) < _SEEN_MINIMUM:
            return "too little of the target's edge is visible"
        worst = math.sqrt(float(np.linalg.eigvalsh(self._spread(fit, pixel, steepness))[-1]))
        if worst > config.target_deviation_maximum:
            return f"the visible edge fixes the center to {1e3 * worst:.1f} mm only"
        return ""

    def _seen(self, fit: CircleFit, pixel: float, steepness: float) -> float:
        """Return the share of the target's edge that was seen, 0 to 1.

        An ellipse with half axes a, b [px] has 4 (a + b) crossings of its edge.
        """
        radius = self._config.target_radius / pixel
        return min(1.0, fit.inliers / (4.0 * radius * (1.0 + min(1.0, steepness))))

    def _spread(self, fit: CircleFit, pixel: float, steepness: float) -> FloatArray:
        """Return the covariance of the center (2, 2) [m^2], growing as less of the edge is seen."""
        return fit.covariance * (_CORRELATION / self._seen(fit, pixel, steepness) ** 2)

    def _estimate(
        self, spread: FloatArray, center: FloatArray, level: float, heights: FloatArray
    ) -> TargetEstimate:
        covariance = np.zeros((6, 6))
        covariance[:2, :2] = spread
        covariance[2, 2] = float(np.var(heights)) / len(heights) + _HEIGHT_DEVIATION**2
        covariance[3, 3] = covariance[4, 4] = _TILT_DEVIATION**2
        covariance[5, 5] = _YAW_VARIANCE
        position = np.array([*(self._camera.origin[:2] + center), level])
        return TargetEstimate(Pose(position), covariance)


def hue_bands(
    config: TargetConfig,
) -> list[tuple[tuple[int, int, int], tuple[int, int, int]]]:
    """Return (low, high) HSV bounds in OpenCV's units (hue in 2 degrees); two where red wraps."""
    low = (config.target_hue - config.target_hue_tolerance) / 2.0
    high = (config.target_hue + config.target_hue_tolerance) / 2.0
    saturation = round(255 * config.target_saturation_minimum)
    value = round(255 * config.target_value_minimum)
    bands = []
    for first, last in (
        (low, high),
        (low + 180.0, high + 180.0),
        (low - 180.0, high - 180.0),
    ):
        first, last = max(first, 0.0), min(last, 179.0)
        if first <= last:
            bands.append(((math.ceil(first), saturation, value), (math.floor(last), 255, 255)))
    return bands
