"""A cached motion, joined to where the robot is and ended where the target is now.

The correction on top of the cached shape is exact in the spline's space. A difference of positions
is spread over the whole motion, by the polynomial of degree 5. A difference of velocity or
acceleration at the start must not be: over three seconds a residual 0.3 rad/s^2 would swing the arm
by centimeters. It fades, with the least jerk, as soon as the limits let it.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import LimitError, ReanchorError
from kv_action_router.robots.turns import whole_turns
from kv_action_router.synthesis.basis import DEGREE, ENDS, basis
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.retime import slow_down
from kv_action_router.synthesis.spline import Motion, MotionState

SHORTEST_JOINED = 0.02  # [s] tried first
SHORTEST_FADE = 0.2  # [s]
# A velocity v that fades over a time T needs an acceleration of 3.9 v/T and a jerk of 36 v/T^2, an
# acceleration a needs a jerk of 9 a/T. Half of the limits is left to the motion itself.
FADE_SHARE = 0.5
SLOW = 0.05  # [rad/s]


def joined(
    motion: Motion,
    start: MotionState,
    end: FloatArray,
    duration: float,
    fade: float = math.inf,
) -> Motion:
    """Return a motion of the same shape between other ends.

    Args:
        motion: on uniform knots.
        start: where the new one starts; exact in position, velocity and acceleration.
        end: where it ends, at rest [rad] (n,).
        duration: of the new one [s].
        fade: time after which another velocity or acceleration at the start is made up for [s]; a
            span of the knots is its resolution, three of them the least.
    """
    size = len(motion.coefficients)
    table = basis(size)
    correction = np.empty((2 * ENDS, motion.coefficients.shape[1]))
    correction[0] = start.position
    correction[1] = start.velocity * duration
    correction[2] = start.acceleration * (duration * duration)
    correction[:ENDS] -= table.at_start @ motion.coefficients[:ENDS]
    correction[ENDS] = end
    correction[ENDS + 1 :] = 0.0
    correction[ENDS:] -= table.at_end @ motion.coefficients[-ENDS:]
    spans = fade / duration * (size - DEGREE)
    row = max(0, math.ceil(spans) - ENDS) if spans < size else size
    if row >= len(table.fading):
        return Motion.uniform(motion.coefficients + table.quintic @ correction, duration)
    fading = table.fading[row] @ correction[1:ENDS]
    correction[1:ENDS] = 0.0
    coefficients = motion.coefficients + table.quintic @ correction
    coefficients[: len(fading)] += fading
    return Motion.uniform(coefficients, duration)


def fade_time(velocity: FloatArray, acceleration: FloatArray, limits: MotionLimits) -> float:
    """Return in which time [s] differences of velocity and acceleration (n,) fade inside limits."""
    speed, rate = np.abs(velocity), np.abs(acceleration)
    return max(
        SHORTEST_FADE,
        float((3.9 / FADE_SHARE * speed / limits.acceleration).max()),
        float(np.sqrt((36.0 / FADE_SHARE * speed / limits.jerk).max())),
        float((9.0 / FADE_SHARE * rate / limits.jerk).max()),
    )


def slow(start: MotionState) -> bool:
    """Say whether a start is slow enough for a line to be one; a measured velocity is never 0."""
    return float(np.abs(start.velocity).max()) < SLOW


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
        size: coefficients to use when the motion's knots are coarser, or not uniform.

    Raises:
        ReanchorError: no duration up to the longest keeps the limits.
    """
    shape = motion.uniform_form(size)
    if len(shape.coefficients) < size:
        shape = motion.remainder(0.0, size)  # on coarse knots nothing fades soon
    first = max(shape.duration, SHORTEST_JOINED)
    allowed = limits.including(start.velocity, start.acceleration)
    begin = shape.state(0.0)
    fade = fade_time(
        start.velocity - begin.velocity, start.acceleration - begin.acceleration, limits
    )
    longest = max(longest, first)
    try:
        try:
            return slow_down(
                lambda duration: joined(shape, start, end, duration, fade), first, allowed, longest
            )
        except LimitError:
            return slow_down(
                lambda duration: joined(shape, start, end, duration), first, allowed, longest
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
