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
from kv_action_router.synthesis.retime import load_of, slow_down, within
from kv_action_router.synthesis.spline import Motion, MotionState

SHORTEST_JOINED = 0.02  # [s] tried first
FADES = (0.05, 0.1, 0.2, 0.4)  # [s] tried in turn
STRETCHES = (1.0, 1.15)  # a motion on its limits leaves no room for what fades
SAME_START = 1.0e-9  # [rad/s] and [rad/s^2]
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


def faded(
    shape: Motion, whole: Motion, start: MotionState, end: FloatArray, limits: MotionLimits
) -> Motion:
    """Return the joined motion whose deviation at the start fades soonest inside limits.

    Args:
        shape: on uniform knots.
        whole: it, joined with a deviation that lasts to the end; the answer if no other is.
        start: of ``whole``.
        end: of ``whole``.
        limits: to keep.
    """
    duration = whole.duration
    scale = shape.duration / duration
    begin = shape.state(0.0)
    speed = np.abs(start.velocity - begin.velocity * scale).max()
    rate = np.abs(start.acceleration - begin.acceleration * scale**2).max()
    if max(speed, rate) < SAME_START:
        return whole
    for stretch in STRETCHES:
        for fade in FADES:
            if fade >= duration:
                break
            made = joined(shape, start, end, duration * stretch, fade)
            try:
                if within(load_of(made, limits)):
                    return made
            except LimitError:
                continue  # it swings out of the joints' range: a shorter one may not
    return whole


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
    try:
        whole = slow_down(
            lambda duration: joined(shape, start, end, duration),
            first,
            allowed,
            max(longest, first),
        )
    except LimitError as error:
        raise ReanchorError(f"cached motion cannot be joined: {error}") from error
    return faded(shape, whole, start, end, allowed)


def shifted_by_turns(
    motion: Motion, position: FloatArray, continuous: npt.NDArray[np.bool_]
) -> Motion:
    """Shift continuous joints by whole turns, so that the motion starts nearest to a position."""
    shift = whole_turns(motion.start, position, continuous)
    if not shift.any():
        return motion
    return Motion(motion.knots, motion.coefficients + shift)
