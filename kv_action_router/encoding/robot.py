"""What the encoder needs to know of a robot."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray


class Robot(Protocol):
    """What the encoder needs to know of a robot (``robots.model.RobotModel``)."""

    joint_names: tuple[str, ...]
    velocity_limit: FloatArray
    spindles: npt.NDArray[np.bool_]

    def link_spheres(self, q: FloatArray) -> FloatArray:
        """Return spheres x, y, z, r that cover the robot, base frame [m] (m, 4)."""
