"""Quintic offset that carries the set-point from where it is onto a chunk.

The set-point is path + offset. The offset starts with the difference in position, velocity and
acceleration and ends after ``duration`` with all three 0, so position, velocity and acceleration
are continuous. It lives on while chunks that agree with each other follow, and is 0 when they agree
with the set-point from the start.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

# Peaks of |d''| of the three basis polynomials over s in [0, 1], for a start of 1 and T = 1.
_POSITION_PEAK = 10.0 / math.sqrt(3.0)
_VELOCITY_PEAK = 3.9403


class OffsetBlend:
    """Offset of n joints; invariant: 0 from ``start + duration`` on.

    With s = t / T: d = p (1 - 10 s^3 + 15 s^4 - 6 s^5) + v T (s - 6 s^3 + 8 s^4 - 3 s^5)
    + a T^2 / 2 (s^2 - 3 s^3 + 3 s^4 - s^5).
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self.position = [0.0] * n  # [rad] at the start
        self.velocity = [0.0] * n  # [rad/s]
        self.acceleration = [0.0] * n  # [rad/s^2]
        self.start_ns = 0
        self.duration = 0.0  # [s]

    def clear(self) -> None:
        """Make the offset 0."""
        self.duration = 0.0

    def copy_from(self, other: OffsetBlend) -> None:
        """Become equal to another blend."""
        self.position[:] = other.position
        self.velocity[:] = other.velocity
        self.acceleration[:] = other.acceleration
        self.start_ns = other.start_ns
        self.duration = other.duration

    def active(self, now_ns: int) -> bool:
        """Return whether the offset is not 0 yet."""
        return (now_ns - self.start_ns) * 1e-9 < self.duration

    def add_to(
        self, now_ns: int, position: list[float], velocity: list[float], acceleration: list[float]
    ) -> None:
        """Add the offset at an instant to a path's position, velocity and acceleration (n,)."""
        if self.duration <= 0.0:
            return
        t = self.duration
        s = (now_ns - self.start_ns) * 1e-9 / t
        if s >= 1.0:
            self.duration = 0.0
            return
        s = max(s, 0.0)
        s2 = s * s
        r = 1.0 - s
        # position, velocity and acceleration of the three basis polynomials
        p0 = 1.0 - s2 * s * (10.0 - 15.0 * s + 6.0 * s2)
        p1 = -30.0 * s2 * r * r / t
        p2 = -60.0 * s * r * (1.0 - 2.0 * s) / (t * t)
        v0 = t * s * (1.0 - s2 * (6.0 - 8.0 * s + 3.0 * s2))
        v1 = 1.0 - s2 * (18.0 - 32.0 * s + 15.0 * s2)
        v2 = -s * (36.0 - 96.0 * s + 60.0 * s2) / t
        a0 = 0.5 * t * t * s2 * r * r * r
        a1 = t * s * r * r * (1.0 - 2.5 * s)
        a2 = r * (1.0 - 8.0 * s + 10.0 * s2)
        for i in range(self._n):
            p, v, a = self.position[i], self.velocity[i], self.acceleration[i]
            position[i] += p * p0 + v * v0 + a * a0
            velocity[i] += p * p1 + v * v1 + a * a1
            acceleration[i] += p * p2 + v * v2 + a * a2


def shortest_duration(
    position: Sequence[float], velocity: Sequence[float], budget: Sequence[float]
) -> float:
    """Return the shortest blend [s] whose acceleration stays inside ``budget`` [rad/s^2].

    Args:
        position: differences at the start [rad] (n,).
        velocity: differences at the start [rad/s] (n,).
        budget: what each joint may spend on the blend, > 0 (n,).
    """
    longest = 0.0
    for p, v, b in zip(position, velocity, budget, strict=True):
        # P |p| / T^2 + V |v| / T <= b, solved for T
        linear = _VELOCITY_PEAK * abs(v)
        root = math.sqrt(linear * linear + 4.0 * b * _POSITION_PEAK * abs(p))
        longest = max(longest, (linear + root) / (2.0 * b))
    return longest
