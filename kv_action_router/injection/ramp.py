"""Ramp to rest on the path: all joints slow down together, so the direction of motion is kept.

With s = t / T: v = v0 (1 - 3 s^2 + 2 s^3) + a0 T (s - 2 s^2 + s^3). Velocity and acceleration end
at 0; |a| <= max(1.5 |v0| / T, |a0|) as long as a0 slows the joint down.
"""

from __future__ import annotations

from collections.abc import Sequence

_SHORTEST = 0.004  # [s]


class Ramp:
    """Motion of n joints from a state to rest; invariant: at rest from ``start + duration`` on."""

    def __init__(self, n: int) -> None:
        self._n = n
        self.position = [0.0] * n  # [rad] at the start
        self.velocity = [0.0] * n  # [rad/s]
        self.acceleration = [0.0] * n  # [rad/s^2]
        self.start_ns = 0
        self.duration = 0.0  # [s]

    def begin(
        self,
        start_ns: int,
        position: Sequence[float],
        velocity: Sequence[float],
        acceleration: Sequence[float],
        limit: Sequence[float],
    ) -> None:
        """Plan the ramp.

        Args:
            start_ns: CLOCK_MONOTONIC of the state that follows [ns].
            position: [rad] (n,).
            velocity: [rad/s] (n,).
            acceleration: [rad/s^2] (n,); what would speed a joint up further is left out.
            limit: deceleration that may be used [rad/s^2], > 0 (n,).
        """
        longest = 0.0
        for i in range(self._n):
            v, a, most = velocity[i], acceleration[i], limit[i]
            longest = max(longest, 1.5 * abs(v) / most)
            self.position[i] = position[i]
            self.velocity[i] = v
            self.acceleration[i] = 0.0 if a * v >= 0.0 else max(-most, min(most, a))
        self.start_ns = start_ns
        self.duration = max(longest, _SHORTEST)
        for i in range(self._n):
            # A deceleration that is stronger than the ramp's own would turn the joint back.
            most = 3.0 * abs(self.velocity[i]) / self.duration
            self.acceleration[i] = max(-most, min(most, self.acceleration[i]))

    def stop_position(self, i: int) -> float:
        """Return where a joint comes to rest [rad]."""
        t = self.duration
        return self.position[i] + 0.5 * self.velocity[i] * t + self.acceleration[i] * t * t / 12.0

    def done(self, now_ns: int) -> bool:
        """Return whether the ramp has ended."""
        return (now_ns - self.start_ns) * 1e-9 >= self.duration

    def evaluate(
        self, now_ns: int, position: list[float], velocity: list[float], acceleration: list[float]
    ) -> None:
        """Write the set-point at an instant into the three lists (n,)."""
        t = self.duration
        s = min(1.0, max(0.0, (now_ns - self.start_ns) * 1e-9 / t))
        s2 = s * s
        r = 1.0 - s
        v0 = t * s * (1.0 - s2 + 0.5 * s2 * s)
        v1 = 1.0 - s2 * (3.0 - 2.0 * s)
        v2 = -6.0 * s * r / t
        a0 = t * t * s2 * (0.5 - s * (2.0 / 3.0 - 0.25 * s))
        a1 = t * s * r * r
        a2 = r * (1.0 - 3.0 * s)
        for i in range(self._n):
            v, a = self.velocity[i], self.acceleration[i]
            position[i] = self.position[i] + v * v0 + a * a0
            velocity[i] = v * v1 + a * a1
            acceleration[i] = (v * v2 + a * a2) if s < 1.0 else 0.0
