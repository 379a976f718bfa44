"""How far a motion has been run through: time that can slow down, stop, and go on again.

The motion's own time u is a smooth function of real time t. Its rate du/dt is 1 while the motion
runs, less while it is slowed down, 0 while it stands, and a cubic in between, so that braking and
starting stay on the path and velocity and acceleration stay continuous.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kv_action_router.contracts import FloatArray


class PathTime(NamedTuple):
    """Motion time u [s] at some instants, its rate, and the rate's first two derivatives."""

    position: FloatArray
    rate: FloatArray
    change: FloatArray  # [1/s]
    bend: FloatArray  # [1/s^2]


class Moment(NamedTuple):
    """The same at one instant, without the second derivative."""

    position: float
    rate: float
    change: float  # [1/s]


class RateChange(NamedTuple):
    """A cubic change of the rate, and a constant rate after it.

    Attributes:
        origin_ns: when it begins.
        position: motion time at its beginning [s].
        first: rate at its beginning.
        slope: rate's derivative at its beginning [1/s].
        last: rate at its end and from then on.
        duration: [s]; 0 = none.
        before: in force until this one begins; None = the first rate was constant.
    """

    origin_ns: int
    position: float
    first: float
    slope: float
    last: float
    duration: float
    before: RateChange | None = None

    @property
    def end_ns(self) -> int:
        """When it is over."""
        return self.origin_ns + round(self.duration * 1.0e9)


def path_time(change: RateChange, instants: FloatArray) -> PathTime:
    """Evaluate a rate change at instants after its origin [s] (m,)."""
    earlier = change.before
    if earlier is not None and len(instants) and instants.min() < 0.0:
        lead = (change.origin_ns - earlier.origin_ns) * 1.0e-9
        then = path_time(earlier, instants + lead)
        now = path_time(change._replace(before=None), instants)
        return PathTime(*(np.where(instants < 0.0, a, b) for a, b in zip(then, now, strict=True)))
    length = change.duration
    if length <= 0.0:
        position = change.position + change.last * instants
        flat = np.zeros(len(instants))
        return PathTime(position, np.full(len(instants), change.last), flat, flat)
    x = np.clip(instants / length, 0.0, 1.0)
    x2 = x * x
    x3 = x2 * x
    first, slope, last = change.first, change.slope * length, change.last
    rise = last - first
    rate = first + slope * (x3 - 2.0 * x2 + x) + rise * (3.0 * x2 - 2.0 * x3)
    way = first * x + slope * (x2 * x2 / 4.0 - 2.0 * x3 / 3.0 + x2 / 2.0)
    way += rise * (x3 - x2 * x2 / 2.0)
    after = np.maximum(instants - length, 0.0)
    before = np.minimum(instants, 0.0)
    position = change.position + way * length + after * last + before * first
    moving = (instants >= 0.0) & (instants < length)
    slope_now = (slope * (3.0 * x2 - 4.0 * x + 1.0) + rise * 6.0 * (x - x2)) / length
    bend = (slope * (6.0 * x - 4.0) + rise * (6.0 - 12.0 * x)) / length**2
    return PathTime(position, rate, np.where(moving, slope_now, 0.0), np.where(moving, bend, 0.0))


def path_moment(change: RateChange, instant: float) -> Moment:
    """Evaluate a rate change at one instant after its origin [s], as :func:`path_time` does."""
    if instant < 0.0 and change.before is not None:
        lead = (change.origin_ns - change.before.origin_ns) * 1.0e-9
        return path_moment(change.before, instant + lead)
    length, last = change.duration, change.last
    if length <= 0.0:
        return Moment(change.position + last * instant, last, 0.0)
    first = change.first
    if instant < 0.0:
        return Moment(change.position + first * instant, first, 0.0)
    slope, rise = change.slope * length, last - first
    if instant >= length:
        way = first + slope / 12.0 + rise / 2.0
        return Moment(change.position + way * length + (instant - length) * last, last, 0.0)
    x = instant / length
    x2 = x * x
    x3 = x2 * x
    way = first * x + slope * (x2 * x2 / 4.0 - 2.0 * x3 / 3.0 + x2 / 2.0)
    way += rise * (x3 - x2 * x2 / 2.0)
    rate = first + slope * (x3 - 2.0 * x2 + x) + rise * (3.0 * x2 - 2.0 * x3)
    slope_now = (slope * (3.0 * x2 - 4.0 * x + 1.0) + rise * 6.0 * (x - x2)) / length
    return Moment(change.position + way * length, rate, slope_now)


class PathClock:
    """Motion time as a function of CLOCK_MONOTONIC.

    Invariant: rate and motion time are continuous; the rate is never negative.
    """

    __slots__ = ("_change",)

    def __init__(self, origin_ns: int) -> None:
        self._change = RateChange(origin_ns, 0.0, 1.0, 0.0, 1.0, 0.0)

    @property
    def target_rate(self) -> float:
        """Rate that it has or goes to: 1 = runs as planned, 0 = stands."""
        return self._change.last

    def at(self, now_ns: int, offsets: FloatArray) -> PathTime:
        """Return motion time at ``now_ns`` plus offsets [s] (m,)."""
        return path_time(self._change, (now_ns - self._change.origin_ns) * 1.0e-9 + offsets)

    def moment(self, now_ns: int) -> Moment:
        """Return motion time and rate at one instant."""
        change = self._change
        return path_moment(change, (now_ns - change.origin_ns) * 1.0e-9)

    def steady(self, now_ns: int) -> bool:
        """Say whether the rate is constant from now on."""
        change = self._change
        return change.duration <= 0.0 or (now_ns - change.origin_ns) * 1.0e-9 >= change.duration

    def rebased(self, now_ns: int) -> PathClock:
        """Return a clock for another motion that begins now and goes on at the same rate."""
        clock = PathClock(now_ns)
        position, rate, slope = self.moment(now_ns)
        change = self._change
        if change.before is not None and now_ns < change.origin_ns:
            clock._change = change._replace(
                position=change.position - position,
                before=change.before._replace(position=change.before.position - position),
            )
            return clock
        left = change.duration - (now_ns - change.origin_ns) * 1.0e-9
        # What is left of a cubic is the cubic between the same ends and slopes.
        clock._change = RateChange(now_ns, 0.0, rate, slope, change.last, max(0.0, left))
        return clock

    def candidate(self, now_ns: int, rate: float, duration: float) -> RateChange:
        """Return the change that goes from the present to another rate, without making it."""
        position, first, slope = self.moment(now_ns)
        if slope < 0.0 and rate == 0.0:  # a longer one would run backward
            duration = min(duration, 3.0 * first / -slope)
        return RateChange(now_ns, position, first, slope, rate, duration)

    def after_this(self, rate: float, duration: float) -> RateChange:
        """Return the change to another rate that begins when the one in force is over."""
        change = self._change
        position, first, _ = path_moment(change, change.duration)
        return RateChange(change.end_ns, position, first, 0.0, rate, duration, change)

    def change(self, change: RateChange) -> None:
        """Make a change that came from :meth:`candidate` or :meth:`after_this`."""
        self._change = change
