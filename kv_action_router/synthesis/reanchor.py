"""A cached motion, joined to where the robot is and ended where the target is now.

The correction on top of the cached shape is exact in the spline's space. A difference of positions
is spread over the whole motion, by the polynomial of degree 5. A difference of velocity or
acceleration at the start must not be: over three seconds a residual 0.3 rad/s^2 would swing the arm
by centimeters. It fades, with the least jerk, as soon as the limits let it.

That is right for a cached shape. A motion that is due at its own times is :func:`merged` instead:
there a difference of positions fades as well.
"""

from __future__ import annotations

import math

import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import LimitError, ReanchorError
from kv_action_router.robots.turns import TurningRobot, aligned
from kv_action_router.synthesis.basis import DEGREE, ENDS, Basis, basis
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.retime import (
    load_of_shape,
    peaks_of_shape,
    slow_down,
    within,
)
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
    table = basis(len(motion.coefficients))
    correction = _correction(table, motion, start, end, duration)
    fading = _fading(table, fade / duration)
    if fading is None:
        return Motion.uniform(motion.coefficients + table.quintic @ correction, duration)
    deviation = correction[1:ENDS].copy()
    correction[1:ENDS] = 0.0
    coefficients = motion.coefficients + table.quintic @ correction
    coefficients[: len(fading)] += fading[:, 1:] @ deviation
    return Motion.uniform(coefficients, duration)


def _correction(
    table: Basis, motion: Motion, start: MotionState, end: FloatArray, duration: float
) -> FloatArray:
    """Return by how much both ends change, as ``Basis.quintic`` takes it (6, n)."""
    correction = np.empty((2 * ENDS, motion.coefficients.shape[1]))
    correction[0] = start.position
    correction[1] = start.velocity * duration
    correction[2] = start.acceleration * (duration * duration)
    correction[:ENDS] -= table.at_start @ motion.coefficients[:ENDS]
    correction[ENDS] = end
    correction[ENDS + 1 :] = 0.0
    correction[ENDS:] -= table.at_end @ motion.coefficients[-ENDS:]
    return correction


def _fading(table: Basis, share: float) -> FloatArray | None:
    """Return the deviation that is over after a share of the duration; None = it lasts longer."""
    row = _lasting(table, share)
    return table.fading[row] if row < len(table.fading) else None


def _lasting(table: Basis, share: float) -> int:
    """Return the number of the fading table that is over after a share of the duration."""
    return max(0, math.ceil(min(share, 2.0) * (table.size - DEGREE)) - ENDS)


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
    table = basis(len(shape.coefficients))
    duration = whole.duration
    correction = _correction(table, shape, start, end, duration)
    speeds, rates = np.abs(correction[1:ENDS])
    if max(speeds.max() / duration, rates.max() / duration**2) < SAME_START:
        return whole
    begin = table.at_start[1:] @ shape.coefficients[:ENDS]
    correction[1:ENDS] = 0.0
    joined_ends = shape.coefficients + table.quintic @ correction
    for stretch in STRETCHES:
        length = duration * stretch
        deviation = np.array((start.velocity * length, start.acceleration * length**2)) - begin
        for fade in FADES:
            if fade >= duration:
                break
            fading = _fading(table, fade / length)
            if fading is None:
                coefficients = joined_ends + table.quintic[:, 1:ENDS] @ deviation
            else:
                coefficients = joined_ends.copy()
                coefficients[: len(fading)] += fading[:, 1:] @ deviation
            try:
                if within(load_of_shape(coefficients, length, limits)):
                    return Motion.uniform(coefficients, length)
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

    def join(within: MotionLimits) -> Motion:
        longest_allowed = max(longest, first)
        return slow_down(
            lambda duration: joined(shape, start, end, duration), first, within, longest_allowed
        )

    try:
        try:
            whole = join(allowed)
        except LimitError:
            allowed = limits.leaving(start.velocity, start.acceleration)
            whole = join(allowed)
    except LimitError as error:
        raise ReanchorError(f"cached motion cannot be joined: {error}") from error
    return faded(shape, whole, start, end, allowed)


def merged(
    motion: Motion,
    start: MotionState,
    limits: MotionLimits,
    longest: float,
    size: int,
    soonest: float = 0.0,
) -> Motion:
    """Join a motion that is due at its own times to a start state; its end stays.

    Each joint comes onto the motion as soon as its limits let it, with the least jerk, so that what
    a slow source has answered is behind as little as can be.

    Args:
        motion: from now on.
        start: measured, or of the reference that is followed.
        limits: to keep.
        longest: duration of a motion that must be slowed down for it [s].
        size: coefficients to use when the motion's knots are coarser, or not uniform.
        soonest: time before which no joint is on the motion [s].

    Raises:
        ReanchorError: as :func:`reanchor`, which is asked when no such way keeps the limits.
    """
    shape = motion.uniform_form(size)
    if len(shape.coefficients) < size:
        shape = motion.remainder(0.0, size)
    table, duration = basis(len(shape.coefficients)), shape.duration
    scale = np.array(((1.0,), (duration,), (duration * duration,)))
    deviation = np.array(start) * scale - table.at_start @ shape.coefficients[:ENDS]
    allowed = limits.including(start.velocity, start.acceleration)
    coefficients = shape.coefficients.copy()
    waiting = np.ones(coefficients.shape[1], dtype=bool)
    first = _lasting(table, soonest / duration)
    for row in _merging_rows(len(table.fading), first):
        fading = table.fading[row]
        tried = shape.coefficients.copy()
        tried[: len(fading)] += fading @ deviation
        fits = waiting & allowed.kept_by(peaks_of_shape(tried, duration))
        coefficients[:, fits] = tried[:, fits]
        waiting &= ~fits
        if not waiting.any():
            whole = Motion.uniform(coefficients, duration)
            limits.check_positions(whole.derivative(table.checks * duration, 0))
            return whole
    return reanchor(motion, start, motion.end, limits, longest, size)


def _merging_rows(count: int, first: int) -> list[int]:
    """Return the fading tables to try, each about a fifth longer than the one before."""
    rows = [min(first, count - 1)]
    while rows[-1] < count - 1:
        rows.append(min(count - 1, rows[-1] + 1 + rows[-1] // 5))
    return rows


def shifted_by_turns(motion: Motion, position: FloatArray, robot: TurningRobot) -> Motion:
    """Shift continuous joints, so that the motion starts nearest to a position (``aligned``)."""
    shift = aligned(motion.start, position, robot)
    if not shift.any():
        return motion
    return Motion(motion.knots, motion.coefficients + shift)
