"""Collision shapes of a robot as capsules, read from its MJCF through pinocchio."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coal
import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import RobotModelError

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Capsules:
    """Capsules fixed to joints (c), sorted by joint; a sphere is one with start = end.

    Attributes:
        links: name of the body that each belongs to.
        joint: pinocchio's number of the joint that moves it (c,); 0 = fixed to the world.
        start: center of one end, in the joint's frame [m] (c, 3).
        end: center of the other end (c, 3).
        radius: [m] (c,).
    """

    links: tuple[str, ...]
    joint: IntArray
    start: FloatArray
    end: FloatArray
    radius: FloatArray

    def taken(self, index: IntArray) -> Capsules:
        """Return the capsules of some rows, in their order."""
        links = tuple(self.links[i] for i in index)
        return Capsules(
            links, self.joint[index], self.start[index], self.end[index], self.radius[index]
        )


class PlacedPoints:
    """Points fixed to joints, written in the base frame at each configuration.

    Holds views of the joint placements in pinocchio's workspace: :meth:`update` follows whatever
    configuration was computed there last.

    Args:
        data: pinocchio's workspace.
        joint: number of the joint that moves each point (k,); 0 = fixed to the world.
        local: points in that joint's frame [m] (k, 3).

    Attributes:
        points: in the base frame [m] (k, 3); overwritten by :meth:`update`.
    """

    def __init__(self, data: Any, joint: IntArray, local: FloatArray) -> None:
        order = np.argsort(joint, kind="stable")
        if (order != np.arange(len(joint))).any():
            raise ValueError("points must be sorted by joint")
        self.points = np.array(local, dtype=float)
        self._groups = []
        for number in np.unique(joint):
            if number == 0:
                continue
            first, last = np.searchsorted(joint, (number, number + 1))
            placement = data.oMi[int(number)]
            self._groups.append(
                (
                    self.points[first:last],
                    np.array(local[first:last], dtype=float),
                    placement.rotation.T,
                    placement.translation,
                )
            )

    def update(self) -> FloatArray:
        """Bring :attr:`points` to the configuration in the workspace and return them."""
        for out, local, rotation, translation in self._groups:
            np.matmul(local, rotation, out=out)
            np.add(out, translation, out=out)
        return self.points


def load_capsules(model: Any, geometry: Any, mjcf: Path) -> Capsules:
    """Return the capsules of a collision geometry.

    Raises:
        RobotModelError: a shape is neither a capsule nor a sphere, or there is none.
    """
    links, joints, starts, ends, radii = [], [], [], [], []
    for item in geometry.geometryObjects:
        if isinstance(item.geometry, coal.Capsule):
            half = item.geometry.halfLength
        elif isinstance(item.geometry, coal.Sphere):
            half = 0.0
        else:
            raise RobotModelError(
                f"{mjcf}: collision shape {item.name} must be a capsule or sphere, "
                f"got {type(item.geometry).__name__}"
            )
        axis = item.placement.rotation[:, 2] * half
        links.append(link_name(model, item))
        joints.append(item.parentJoint)
        starts.append(item.placement.translation - axis)
        ends.append(item.placement.translation + axis)
        radii.append(item.geometry.radius)
    if not links:
        raise RobotModelError(f"{mjcf}: there is no collision shape")
    return Capsules(
        tuple(links), np.array(joints), np.array(starts), np.array(ends), np.array(radii)
    )


def link_name(model: Any, item: Any) -> str:
    """Return the name of the body that a geometry object belongs to."""
    return str(model.frames[item.parentFrame].name)
