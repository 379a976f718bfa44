"""Whole turns of continuous joints, and any turn of spindles."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray


def whole_turns(
    position: FloatArray, reference: FloatArray, continuous: npt.NDArray[np.bool_]
) -> FloatArray:
    """Return the shift [rad] that brings ``position`` nearest to ``reference`` by whole turns.

    The shift is k * 2 pi with integer k for continuous joints and 0 for all others: the angle
    of a bounded joint is not the same after a turn. Add it to a whole motion: its shape stays.

    Args:
        position: where a motion starts [rad] (n,).
        reference: where the robot is [rad] (n,).
        continuous: joints that turn without end (n,).

    Returns:
        Shift [rad] (n,).
    """
    turns = np.round((np.asarray(reference) - np.asarray(position)) / math.tau)
    return np.where(continuous, turns * math.tau, 0.0)


class TurningRobot(Protocol):
    """What is asked of a robot's model (``robots.model.RobotModel`` is one)."""

    @property
    def continuous(self) -> npt.NDArray[np.bool_]:
        """Joints that turn without end (n,)."""

    @property
    def spindles(self) -> npt.NDArray[np.bool_]:
        """Those of them that do not move the tip (n,)."""


def aligned(position: FloatArray, reference: FloatArray, robot: TurningRobot) -> FloatArray:
    """Return the shift [rad] (n,) that lets a motion begin where the robot is.

    As :func:`whole_turns`; a spindle is shifted to ``reference`` exactly. Where it stands makes no
    difference to the tip, so a motion of it is by how much it turns.
    """
    shift = whole_turns(position, reference, robot.continuous)
    return np.where(robot.spindles, np.asarray(reference) - np.asarray(position), shift)
