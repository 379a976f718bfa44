"""Slowing a motion down until it is inside its limits, openly: the caller sees the duration."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import LimitError
from kv_action_router.synthesis.basis import basis
from kv_action_router.synthesis.limits import RATIO_SLACK, Load, MotionLimits
from kv_action_router.synthesis.spline import Motion

ATTEMPTS = 8
MARGIN = 1.01  # on top of the stretch that the worst limit asks for
LONGEST = 60.0  # [s]


def load_of(motion: Motion, limits: MotionLimits) -> Load:
    """Return how much of the limits a motion uses.

    Raises:
        LimitError: a position is outside its limits; slowing down can't mend that.
    """
    if motion.is_uniform():
        return load_of_shape(motion.coefficients, motion.duration, limits)
    spans = len(np.unique(motion.knots)) - 1
    times = np.linspace(0.0, motion.duration, 12 * spans + 1)
    limits.check_positions(motion.derivative(times, 0))
    return limits.load(*(motion.derivative(times, order) for order in (1, 2, 3)))


def load_of_shape(coefficients: FloatArray, duration: float, limits: MotionLimits) -> Load:
    """Return the same for coefficients (m, n) on uniform knots and a duration [s].

    Raises:
        LimitError: as :func:`load_of`.
    """
    high, low = _extremes(coefficients)
    limits.check_range(low[0], high[0])
    return limits.load_of_peaks(_peaks(high, low, duration))


def peaks_of_shape(coefficients: FloatArray, duration: float) -> FloatArray:
    """Return the largest velocity, acceleration and jerk (3, n) of the same."""
    return _peaks(*_extremes(coefficients), duration)


def _extremes(coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the highest and lowest value and derivatives 1 to 3 over the share, each (4, n)."""
    samples = coefficients.T @ basis(len(coefficients)).checked
    samples = samples.reshape(len(samples), 4, -1)
    return samples.max(axis=2).T, samples.min(axis=2).T


def _peaks(high: FloatArray, low: FloatArray, duration: float) -> FloatArray:
    peaks: FloatArray = np.maximum(high[1:], -low[1:])
    scale = 1.0 / duration
    peaks *= np.array(((scale,), (scale * scale,), (scale * scale * scale,)))
    return peaks


def within(load: Load) -> bool:
    """Say whether all limits are kept."""
    return max(load.velocity, load.acceleration, load.jerk) <= 1.0 + RATIO_SLACK


def slow_down(
    build: Callable[[float], Motion],
    duration: float,
    limits: MotionLimits,
    longest: float = LONGEST,
) -> Motion:
    """Return the motion of the shortest tried duration that keeps the limits.

    Args:
        build: makes the motion for a duration [s].
        duration: tried first [s].
        limits: to keep.
        longest: duration at which to give up [s].

    Raises:
        LimitError: no duration up to ``longest`` keeps the limits; the message names the joint.
    """
    tried = duration
    for _ in range(ATTEMPTS):
        motion = build(tried)
        load = load_of(motion, limits)
        if within(load):
            return motion
        if tried >= longest:
            break
        tried = min(tried * max(load.stretch * MARGIN, 1.02), longest)
    raise LimitError(
        f"joint {limits.names[load.joint]!r} would use {load.velocity:.2f} of its velocity,"
        f" {load.acceleration:.2f} of its acceleration and {load.jerk:.2f} of its jerk limit,"
        f" even in {motion.duration:.2f} s"
    )


def inside(motion: Motion, limits: MotionLimits) -> Motion:
    """Return a motion from rest to rest, slowed down as a whole until it keeps the limits.

    Raises:
        LimitError: it leaves the position limits, or needs longer than ``LONGEST``.
    """
    unit = motion.knots / motion.duration
    return slow_down(
        lambda duration: Motion(unit * duration, motion.coefficients), motion.duration, limits
    )
