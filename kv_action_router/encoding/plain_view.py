"""Whether the place of an earlier estimate is in plain view."""

from __future__ import annotations

import numpy as np

from kv_action_router.contracts import TargetEstimate
from kv_action_router.encoding.camera import Camera
from kv_action_router.encoding.images import DepthImage, valid_depth
from kv_action_router.encoding.perception_config import TargetConfig

NEARER = 0.006  # [m] what is this much nearer than a face hides it
_SEEN = 0.8  # share of the place's pixels that must show it

Window = tuple[slice, slice]


def window_in_plain_view(
    target: TargetEstimate, depth: DepthImage, camera: Camera, config: TargetConfig
) -> Window | None:
    """Return the pixels around an estimate's place, None where something may hide them.

    A hidden place is not empty: what stands before it is nearer than the target was.
    """
    center = target.pose.position
    pixel = camera.project(center[None, :])[0]
    distance = camera.depth_of(center)
    if not np.isfinite(pixel).all():
        return None
    half = max(1, int(0.6 * config.target_radius * camera.focal_length / distance))
    column, row = int(np.rint(pixel[0])), int(np.rint(pixel[1]))
    height, width = camera.shape
    if not (half <= column < width - half and half <= row < height - half):
        return None
    window = np.s_[row - half : row + half + 1, column - half : column + half + 1]
    there = depth[window]
    measured = valid_depth(there, config.depth_minimum, config.depth_maximum)
    seen = measured & (there > distance - NEARER - config.target_radius)
    return window if seen.mean() > _SEEN else None
