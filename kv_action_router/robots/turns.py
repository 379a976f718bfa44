"""Whole turns of continuous joints."""

from __future__ import annotations

import math

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
