"""Covering spheres of the links: for self filtering and guards."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.robots.shapes import Capsules, PlacedPoints


class LinkSpheres:
    """Spheres that cover every capsule and ``margin`` [m] around it.

    Centers lie along each capsule's axis, at most one radius (or 30 mm) apart.

    Attributes:
        links: name of the link that each sphere belongs to (m).
    """

    def __init__(self, data: Any, capsules: Capsules, margin: float) -> None:
        centers, radii, joints = [], [], []
        links: list[str] = []
        for link, start, end, radius, joint in zip(
            capsules.links,
            capsules.start,
            capsules.end,
            capsules.radius,
            capsules.joint,
            strict=True,
        ):
            outer = radius + margin
            length = float(np.linalg.norm(end - start))
            count = 1 + math.ceil(length / max(outer, 0.03))
            spacing = length / (count - 1) if count > 1 else 0.0
            share = np.linspace(0.0, 1.0, count)[:, None]
            centers.append(start + share * (end - start))
            # Between two centers the cover is thinnest half way: widen the spheres by that much.
            radii.append(np.full(count, math.hypot(outer, spacing / 2.0)))
            joints.append(np.full(count, joint))
            links += [link] * count
        self.links = tuple(links)
        self._placed = PlacedPoints(data, np.concatenate(joints), np.concatenate(centers))
        self._spheres = np.empty((len(self._placed.points), 4))
        self._spheres[:, 3] = np.concatenate(radii)

    def update(self) -> FloatArray:
        """Return the spheres x, y, z, r [m] (m, 4) at the configuration in the workspace.

        The array is overwritten by the next call.
        """
        self._spheres[:, :3] = self._placed.update()
        return self._spheres
