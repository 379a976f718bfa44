"""A cached motion, joined to where the robot is and ended where the target is now.

The correction on top of the cached shape is the polynomial of degree 5 that moves position,
velocity and acceleration of both ends: the least jerk that does it, exact in the spline's space.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import LimitError, ReanchorError
from kv_action_router.robots.turns import whole_turns
from kv_action_router.synthesis.basis import ENDS, basis
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.retime import slow_down
from kv_action_router.synthesis.spline import Motion, MotionState

SHORTEST_JOINED = 0.02  # [s] tried first


def joined(motion: Motion, start: MotionState, end: FloatArray, duration: float) -> Motion:
    """Return a motion of the same shape between other ends.

    Args:
        motion: on uniform knots.
        start: where the new one starts; exact in position, velocity and acceleration.
        end: where it ends, at rest [rad] (n,).
        duration: of the new one [s].
    """
    table = basis(len(motion.coefficients))
    correction = np.empty((2 * ENDS, motion.coefficients.shape[1]))
    correction[0] = start.position
    correction[1] = start.velocity * duration
    correction[2] = start.acceleration * (duration * duration)
    correction[:ENDS] -= table.at_start @ motion.coefficients[:ENDS]
    correction[ENDS] = end
    correction[ENDS + 1 :] = 0.0
    correction[ENDS:] -= table.at_end @ motion.coefficients[-ENDS:]
    return Motion.uniform(motion.coefficients + table.quintic @ correction, duration)


def reanchor(
    motion: Motion,
    start: MotionState,
    end: FloatArray,
    limits: MotionLimits,
    longest: float,
    size: int,
) -> Motion:
    """Join a motion to a start state and move its end, inside limits.

    Args:
        motion: cached or present one.
        start: measured, or of the reference that is followed.
        end: new last position [rad] (n,).
        limits: to keep.
        longest: duration that the joined motion may have at most [s].
        size: coefficients to use when the motion's knots are not uniform.

    Raises:
        ReanchorError: no duration up to the longest keeps the limits.
    """
    shape = motion.uniform_form(size)
    first = max(shape.duration, SHORTEST_JOINED)
    allowed = limits.including(start.velocity, start.acceleration)
    try:
        return slow_down(
            lambda duration: joined(shape, start, end, duration),
            first,
            allowed,
            max(longest, first),
        )
    except LimitError as error:
        raise ReanchorError(f"cached motion cannot be joined: {error}") from error


def shifted_by_turns(
    motion: Motion, position: FloatArray, continuous: npt.NDArray[np.bool_]
) -> Motion:
    """Shift continuous joints by whole turns, so that the motion starts nearest to a position."""
    shift = whole_turns(motion.start, position, continuous)
    if not shift.any():
        return motion
    return Motion(motion.knots, motion.coefficients + shift)
