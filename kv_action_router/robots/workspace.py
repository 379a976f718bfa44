"""Reading many joint placements out of pinocchio's workspace at once."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray

_POSE = 12  # numbers: three columns of the rotation, then the position


def joint_placements(data: Any, joints: npt.NDArray[np.int64]) -> Callable[[], FloatArray]:
    """Return a function that copies the placements of joints (j): axes and position (j, 4, 3).

    A placement at a time costs as much as the kinematics itself. Pinocchio keeps them one behind
    the other, rotation by columns first; where that is found to hold, they are one block to copy.

    Args:
        data: pinocchio's workspace; it is kept alive.
        joints: their numbers, rising.
    """
    block = _block(data, joints)
    if block is not None:
        kept = block, data  # the block is of the workspace's memory
        return lambda: kept[0].copy()
    views = [(data.oMi[int(joint)].rotation, data.oMi[int(joint)].translation) for joint in joints]

    def gathered() -> FloatArray:
        poses = np.empty((len(views), 4, 3))
        for pose, (rotation, translation) in zip(poses, views, strict=True):
            pose[:3] = rotation.T
            pose[3] = translation
        return poses

    return gathered


def _block(data: Any, joints: npt.NDArray[np.int64]) -> FloatArray | None:
    """Return a view of all placements (j, 4, 3), or None when they don't lie in one block."""
    first = int(joints[0])
    size = 8 * _POSE
    start = _address(data.oMi[first].rotation)
    for joint in joints.tolist():
        place = data.oMi[int(joint)]
        expected = start + size * (int(joint) - first)
        columns = place.rotation.strides == (8, 24) and place.translation.strides == (8,)
        if not columns or _address(place.rotation) != expected:
            return None
        if _address(place.translation) != expected + 72:
            return None
    count = int(joints[-1]) - first + 1
    if count != len(joints):
        return None
    memory = (ctypes.c_double * (_POSE * count)).from_address(start)
    return np.ctypeslib.as_array(memory).reshape(count, 4, 3)


def _address(array: FloatArray) -> int:
    return int(array.__array_interface__["data"][0])
