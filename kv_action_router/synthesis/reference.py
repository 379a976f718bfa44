"""What the injector is asked to follow: a motion, and how far it has been run through."""

from __future__ import annotations

import numpy as np

from kv_action_router.contracts import CHUNK_PERIOD, CHUNK_SAMPLES, FloatArray
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.path_clock import PathClock, RateChange, path_time
from kv_action_router.synthesis.spline import Motion, MotionState

STILL = 1.0e-9  # [rad/s] below it a reference stands
_CHUNK_TIMES: FloatArray = np.arange(CHUNK_SAMPLES, dtype=float) * CHUNK_PERIOD
_SHORTEST_BRAKE = 0.02  # [s]
_LONGEST_BRAKE = 3.0  # [s]
_BRAKE_GROWTH = 1.25
_BRAKE_CHECKS = 33


class Reference:
    """A motion under way.

    Invariant: position, velocity and acceleration are continuous in time, whatever is called.
    """

    __slots__ = ("_clock", "_phase", "motion")

    def __init__(
        self, motion: Motion, origin_ns: int, phase: float = 0.0, clock: PathClock | None = None
    ) -> None:
        """Start a motion.

        Args:
            motion: to run through.
            origin_ns: CLOCK_MONOTONIC of its beginning [ns].
            phase: share of the stage's motion that was done before it.
            clock: that counts from there; None = one that runs as planned.
        """
        self.motion = motion
        self._clock = clock or PathClock(origin_ns)
        self._phase = phase

    def replaced(self, motion: Motion, now_ns: int, phase: float) -> Reference:
        """Return a reference of another motion that begins now and is run at the same rate.

        It is continuous where the motion begins as :meth:`own_state` is now.
        """
        return Reference(motion, now_ns, phase, self._clock.rebased(now_ns))

    def own_state(self, now_ns: int) -> MotionState:
        """Return the state at an instant as the motion would have it at its planned speed."""
        return self.motion.state(self.motion_time(now_ns))

    def chunk(self, anchor_ns: int) -> tuple[FloatArray, FloatArray]:
        """Return positions and velocities of a chunk's samples, each (100, n)."""
        samples = self.samples(anchor_ns)
        size = samples.shape[1] // 2
        return samples[:, :size], samples[:, size:]

    def samples(self, anchor_ns: int) -> FloatArray:
        """Return a chunk's samples (100, 2 n): all positions, then all velocities."""
        clock, motion = self._clock, self.motion
        size = motion.coefficients.shape[1]
        samples = np.empty((CHUNK_SAMPLES, 2 * size))
        if clock.steady(anchor_ns):
            position, rate, _ = clock.moment(anchor_ns)
            if rate == 0.0 or position >= motion.duration:
                samples[:, :size], samples[:, size:] = self.position(anchor_ns), 0.0
            elif rate == 1.0:
                motion.sample(_CHUNK_TIMES + position, samples)
            else:
                motion.sample(_CHUNK_TIMES * rate + position, samples)
                samples[:, size:] *= rate
            return samples
        time = clock.at(anchor_ns, _CHUNK_TIMES)
        motion.sample(time.position, samples)
        samples[:, size:] *= time.rate[:, None]
        return samples

    def state(self, now_ns: int) -> MotionState:
        """Return position, velocity and acceleration at an instant."""
        time, rate, change = self._clock.moment(now_ns)
        position, velocity, acceleration = self.motion.state(time)
        if rate == 1.0 and change == 0.0:
            return MotionState(position, velocity, acceleration)
        return MotionState(
            position, velocity * rate, acceleration * (rate * rate) + velocity * change
        )

    def position(self, now_ns: int) -> FloatArray:
        """Return the positions (n,) at an instant."""
        return self.motion.position(self._clock.moment(now_ns).position)

    def motion_time(self, now_ns: int) -> float:
        """Return how much of the motion has been run through [s], 0 to its duration."""
        return min(max(self._clock.moment(now_ns).position, 0.0), self.motion.duration)

    def phase(self, now_ns: int) -> float:
        """Return the share of the stage's motion that is done, 0 to 1."""
        return self.phase_of(self.motion_time(now_ns))

    def phase_of(self, motion_time: float) -> float:
        """Return the same for a motion time [s]."""
        if motion_time >= self.motion.duration:
            return 1.0  # exactly, whatever rounding says
        return self._phase + (1.0 - self._phase) * (motion_time / self.motion.duration)

    def at_rest(self, now_ns: int) -> bool:
        """Say whether the reference stands still from this instant on."""
        time, rate, _ = self._clock.moment(now_ns)
        if time >= self.motion.duration:
            return True
        return rate < STILL and self._clock.target_rate == 0.0

    @property
    def stops(self) -> bool:
        """Whether it was told to stop on its path."""
        return self._clock.target_rate == 0.0

    def brake(self, now_ns: int, limits: MotionLimits) -> float:
        """Come to rest on the path, as fast as the limits allow; return how long it takes [s].

        0 = it stops already, or its motion is over.
        """
        return self._change_rate(now_ns, 0.0, limits)

    def release(self, now_ns: int, limits: MotionLimits, rate: float = 1.0) -> float:
        """Go on along the path at a share of the planned speed; return how long it takes [s]."""
        return self._change_rate(now_ns, rate, limits)

    def _change_rate(self, now_ns: int, rate: float, limits: MotionLimits) -> float:
        if self._clock.target_rate == rate or self.motion_time(now_ns) >= self.motion.duration:
            return 0.0
        state = self.motion.state(self.motion_time(now_ns))
        speed = np.abs(state.velocity)
        duration = max(
            _SHORTEST_BRAKE,
            1.5 * float((speed / limits.acceleration).max()),
            float(np.sqrt((6.0 * speed / limits.jerk).max())),
        )
        shortest = duration
        change = self._clock.candidate(now_ns, rate, duration)
        while duration < _LONGEST_BRAKE and not self._keeps(change, limits):
            duration *= _BRAKE_GROWTH
            change = self._clock.candidate(now_ns, rate, duration)
        if rate > 0.0 and not self._keeps(change, limits) and not self._clock.steady(now_ns):
            # Whoever brakes can't always speed up again at once: then when it has come to rest.
            duration = shortest
            change = self._clock.after_this(rate, duration)
            while duration < _LONGEST_BRAKE and not self._keeps(change, limits):
                duration *= _BRAKE_GROWTH
                change = self._clock.after_this(rate, duration)
        self._clock.change(change)
        return (change.end_ns - now_ns) * 1.0e-9

    def _keeps(self, change: RateChange, limits: MotionLimits) -> bool:
        """Say whether the limits are kept while the rate changes."""
        time = path_time(change, np.linspace(0.0, change.duration, _BRAKE_CHECKS))
        if time.rate.min() < -1.0e-9:
            return False
        rate, bend = time.rate[:, None], time.change[:, None]
        first, second, third = (self.motion.derivative(time.position, order) for order in (1, 2, 3))
        load = limits.load(
            first * rate,
            second * rate**2 + first * bend,
            third * rate**3 + 3.0 * second * rate * bend + first * time.bend[:, None],
        )
        return max(load.velocity, load.acceleration, load.jerk) <= 1.0
