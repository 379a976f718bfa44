"""Distances of capsules from spheres in closed form, along a whole motion at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray
from kv_action_router.robots.shapes import Capsules
from kv_action_router.robots.workspace import joint_placements

BoolArray = npt.NDArray[np.bool_]

BLOCK = 8  # configurations whose capsules share a box: longer boxes keep hardly anything out


class CapsuleAxes:
    """The axes of capsules (c) at configurations that pinocchio has placed.

    Args:
        data: pinocchio's workspace.
        capsules: sorted by joint; none is fixed to the world.
    """

    def __init__(self, data: Any, capsules: Capsules) -> None:
        joints, self._joint = np.unique(capsules.joint, return_inverse=True)
        self._placements = joint_placements(data, joints)
        ends = np.stack((capsules.start, capsules.end), axis=1)  # (c, 2, 3)
        self._local = np.concatenate((ends, np.ones((len(ends), 2, 1))), axis=2)
        self._radius = capsules.radius
        length = np.linalg.norm(capsules.end - capsules.start, axis=1)
        self._inverse = 1.0 / np.maximum(length, 1e-12) ** 2

    def placements(self) -> FloatArray:
        """Return where the capsules' joints are in the workspace (j, 4, 3).

        Axes x, y, z and position of each; :meth:`ends` wants them of many configurations at once.
        """
        return self._placements()

    def ends(self, placements: FloatArray) -> FloatArray:
        """Return both ends of each capsule [m] (r, c, 2, 3) at placements (r, j, 4, 3)."""
        placed: FloatArray = self._local @ placements[:, self._joint]
        return placed

    def first_near(
        self,
        ends: FloatArray,
        spheres: FloatArray,
        padding: float,
        allowed: BoolArray | None = None,
    ) -> tuple[int, int, int] | None:
        """Return row, sphere and capsule of the first configuration nearer than ``padding``.

        Boxes around a few consecutive configurations of each capsule leave out most pairs; what
        is left is the distance of a point from a segment.

        Args:
            ends: of the capsules at r configurations [m] (r, c, 2, 3).
            spheres: x, y, z, r [m] (k, 4).
            padding: [m].
            allowed: pairs that may be near (k, c); None = none may.
        """
        reach = self._radius + padding
        numbers = _inside(spheres, ends, float(reach.max()))
        if not len(numbers):
            return None
        around = spheres[numbers]
        forbidden = None if allowed is None else ~allowed[numbers]
        starts = np.arange(0, len(ends), BLOCK)
        low = np.minimum.reduceat(np.minimum(ends[:, :, 0], ends[:, :, 1]), starts)  # (b, c, 3)
        high = np.maximum.reduceat(np.maximum(ends[:, :, 0], ends[:, :, 1]), starts)
        middle, half = 0.5 * (high + low), 0.5 * (high - low) + reach[:, None]
        for first, center, size in zip(starts.tolist(), middle, half, strict=True):
            sphere, capsule = self._close(around, center, size, forbidden)
            if not len(sphere):
                continue
            block = ends[first : first + BLOCK]
            found = self._nearer(block, around[sphere], capsule, reach[capsule])
            if found is not None:
                row, pair = found
                return first + row, int(numbers[sphere[pair]]), int(capsule[pair])
        return None

    @staticmethod
    def _close(
        spheres: FloatArray, middle: FloatArray, half: FloatArray, forbidden: BoolArray | None
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return sphere and capsule of the pairs whose boxes (c, 3) meet (p,), (p,)."""
        near = forbidden
        for axis in range(3):
            away = np.abs(spheres[:, axis, None] - middle[:, axis])
            away -= spheres[:, 3, None]
            meets = away < half[:, axis]
            near = meets if near is None else near & meets
        assert near is not None
        sphere, capsule = near.nonzero()
        return sphere, capsule

    def _nearer(
        self,
        ends: FloatArray,
        spheres: FloatArray,
        capsule: npt.NDArray[np.intp],
        reach: FloatArray,
    ) -> tuple[int, int] | None:
        """Return the first row, and its pair, of p pairs that are nearer than their reach (p,)."""
        start = ends[:, capsule, 0]  # (r, p, 3)
        direction = ends[:, capsule, 1] - start
        offset = spheres[:, :3] - start
        along = np.einsum("rpi,rpi->rp", offset, direction)
        along *= self._inverse[capsule]
        np.minimum(np.maximum(along, 0.0, out=along), 1.0, out=along)
        offset -= along[:, :, None] * direction
        squared = np.einsum("rpi,rpi->rp", offset, offset)
        touching = squared < (spheres[:, 3] + reach) ** 2
        rows = touching.any(axis=1)
        if not rows.any():
            return None
        row = int(rows.argmax())
        return row, int(touching[row].argmax())


def _inside(spheres: FloatArray, ends: FloatArray, reach: float) -> npt.NDArray[np.intp]:
    """Return the spheres that meet the box around all capsules at all configurations."""
    points = ends.reshape(-1, 3)
    low, high = points.min(axis=0) - reach, points.max(axis=0) + reach
    center, radius = spheres[:, :3], spheres[:, 3:]
    meets = ((center + radius > low) & (center - radius < high)).all(axis=1)
    return np.flatnonzero(meets)
