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

Here is the first step; the others are ``disc.py``, with ``face.py`` and ``circle_fit.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import Sight, TargetEstimate
from kv_action_router.encoding.camera import Camera
from kv_action_router.encoding.disc import DiscLocator
from kv_action_router.encoding.images import ColorImage, DepthImage, valid_depth
from kv_action_router.encoding.perception_config import TargetConfig
from kv_action_router.encoding.plain_view import window_in_plain_view

_STEP = 2  # [px] of the first look, both ways
_MARGIN = 8  # [px] around what the first look found

_Box = tuple[slice, slice]


@dataclass(frozen=True, slots=True)
class Perception:
    """One image's answer: the estimate is there exactly when ``sight`` is SEEN."""

    sight: Sight
    target: TargetEstimate | None
    # (height, width), as :meth:`TargetPerception.segment` says; (0, 0) where nobody segments
    color_mask: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros((0, 0), np.uint8))
    reason: str = ""


class TargetPerception:
    """Finds the disc in RGB-D images of one camera. Not thread safe: buffers are reused."""

    def __init__(self, config: TargetConfig, camera: Camera) -> None:
        self._config = config
        self._camera = camera
        self._bands = hue_bands(config, config.target_hue)
        self._mask = np.zeros(camera.shape, dtype=np.uint8)
        self._region: _Box = (slice(0, 0), slice(0, 0))  # outside of it the mask is zero
        rows, columns = ((size + _STEP - 1) // _STEP for size in camera.shape)
        self._coarse = np.empty((rows, columns, 3), dtype=np.uint8)
        self._coarse_hsv = np.empty_like(self._coarse)
        self._coarse_mask = np.empty((rows, columns), dtype=np.uint8)
        self._locate = DiscLocator(config, camera).locate

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
        sight, reason = Sight.ABSENT, "no pixel of the target's color"
        for seed in self._pieces(mask):
            found = self._locate(seed, mask, depth)
            if isinstance(found, TargetEstimate):
                return Perception(Sight.SEEN, found, mask)
            sight, reason = Sight.HIDDEN, found
        limits = self._config.depth_minimum, self._config.depth_maximum
        if (
            not valid_depth(depth[::4, ::4], *limits).any()
            and not valid_depth(depth, *limits).any()
        ):
            return Perception(Sight.NO_DEPTH, None, mask, "the depth image has no valid point")
        return Perception(sight, None, mask, reason)

    def look_for(self, hue: float) -> None:
        """Look for a target of another color from now on, given by its hue [deg]."""
        self._bands = hue_bands(self._config, hue)

    def segment(self, color: ColorImage) -> npt.NDArray[np.uint8]:
        """Return 255 where the target's color is; the buffer is reused by the next call.

        A first look takes every second pixel, both ways; all pixels are looked at only in the box
        around what it found. A speck that is a pixel wide can escape it, a target cannot.
        """
        rows, columns = self._coarse_mask.shape
        cv2.resize(color, (columns, rows), dst=self._coarse, interpolation=cv2.INTER_NEAREST)
        cv2.cvtColor(self._coarse, cv2.COLOR_RGB2HSV, dst=self._coarse_hsv)
        self._in_bands(self._coarse_hsv, self._coarse_mask)
        left, top, width, height = cv2.boundingRect(self._coarse_mask)
        mask = self._mask
        mask[self._region] = 0
        if width == 0:
            self._region = (slice(0, 0), slice(0, 0))
            return mask
        self._region = box = (
            slice(max(0, _STEP * top - _MARGIN), _STEP * (top + height) + _MARGIN),
            slice(max(0, _STEP * left - _MARGIN), _STEP * (left + width) + _MARGIN),
        )
        self._in_bands(cv2.cvtColor(color[box], cv2.COLOR_RGB2HSV), mask[box])
        return mask

    def _in_bands(self, hsv: npt.NDArray[Any], out: npt.NDArray[np.uint8]) -> None:
        """Write 255 where a pixel lies in a band, 0 elsewhere."""
        first, *rest = self._bands
        cv2.inRange(hsv, first[0], first[1], dst=out)
        for low, high in rest:  # the band wraps around red
            np.bitwise_or(out, cv2.inRange(hsv, low, high), out=out)

    def place_is_empty(
        self, target: TargetEstimate, mask: npt.NDArray[np.uint8], depth: DepthImage
    ) -> bool:
        """Return whether the place of an earlier estimate is in plain view, without the target."""
        window = window_in_plain_view(target, depth, self._camera, self._config)
        return window is not None and bool((mask[window] > 0).mean() < 0.1)

    def _pieces(self, mask: npt.NDArray[np.uint8]) -> list[_Box]:
        """Return the bounding boxes of connected pieces of color, largest first, at most three."""
        rows, columns = self._region
        region = mask[rows, columns]
        if region.size == 0:
            return []
        left, top, width, height = cv2.boundingRect(region)
        if width == 0:
            return []
        crop = region[top : top + height, left : left + width]
        top, left = top + rows.start, left + columns.start
        count, _, statistics, _ = cv2.connectedComponentsWithStats(crop, connectivity=8)
        pieces = sorted(
            statistics[1:count].tolist(), key=itemgetter(cv2.CC_STAT_AREA), reverse=True
        )
        boxes = []
        for x, y, w, h, area in pieces[:3]:
            if area >= self._config.target_pixels_minimum // 2:
                boxes.append((slice(top + y, top + y + h), slice(left + x, left + x + w)))
        return boxes


def hue_bands(
    config: TargetConfig, hue: float
) -> list[tuple[tuple[int, int, int], tuple[int, int, int]]]:
    """Return (low, high) HSV bounds in OpenCV's units (hue in 2 degrees); two where red wraps."""
    low = (hue - config.target_hue_tolerance) / 2.0
    high = (hue + config.target_hue_tolerance) / 2.0
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
