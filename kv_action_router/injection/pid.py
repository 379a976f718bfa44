"""One PID controller a joint: u = f + kp e + I + kd (v_set - v), I = sum of ki e dt.

The derivative acts on the measured velocity against the path's own velocity, so that a step of the
set-point gives no kick. Anti-windup is conditional integration: while the output is clamped the
integral only moves away from the clamp; besides, it is bounded by its own limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Values = Sequence[float]
_INFINITE = math.inf


class PidBank:
    """PID controllers of n joints with preallocated state.

    Invariant: integrals and outputs are finite; an update that is given a dt <= 0, a NaN or an
    infinity changes no state, repeats the last output of the joints concerned, and is counted.
    """

    def __init__(self, n: int) -> None:
        self.integral = [0.0] * n  # [N m]
        self.unclamped = [0.0] * n  # [N m] what the last update would have sent without limits
        self.clamped = False  # whether the last update left any of them beyond its limit, or undone
        self.refused = 0
        self._n = n

    def reset(self) -> None:
        """Clear the integrals."""
        for index in range(self._n):
            self.integral[index] = 0.0

    def update(
        self,
        dt: float,
        position: Values,
        velocity: Values,
        measured_position: Values,
        measured_velocity: Values,
        feed_forward: Values,
        proportional: Values,
        integral_gain: Values,
        derivative: Values,
        integral_limit: Values,
        limit: Values,
        stiffness: float,
        output: list[float],
    ) -> None:
        """Write the efforts of one tick into ``output`` [N m] (n,).

        Args:
            dt: since the last update [s].
            position: set-point [rad]; likewise ``velocity`` [rad/s].
            measured_position: [rad]; likewise ``measured_velocity`` [rad/s].
            feed_forward: [N m].
            proportional: [N m/rad]; ``integral_gain`` [N m/(rad s)]; ``derivative`` [N m s/rad].
            integral_limit: [N m].
            limit: of the effort [N m], >= 0.
            stiffness: share of the proportional part, 0 to 1; below 1 the integrals are frozen.
            output: last outputs, overwritten.
        """
        if not 0.0 < dt < _INFINITE:
            self.refused += 1
            self.clamped = True
            return
        integrate = stiffness >= 1.0
        clamped = False
        infinite, integrals, unclamped = _INFINITE, self.integral, self.unclamped
        for i in range(self._n):
            error = position[i] - measured_position[i]
            bound = limit[i]
            raw = (
                feed_forward[i]
                + stiffness * proportional[i] * error
                + integrals[i]
                + derivative[i] * (velocity[i] - measured_velocity[i])
            )
            if -bound <= raw <= bound and -infinite < raw < infinite:
                output[i] = unclamped[i] = raw
                if not integrate:
                    continue
            elif -infinite < raw < infinite:
                clamped = True
                unclamped[i] = raw
                output[i] = bound if raw > bound else -bound
                if not integrate or (error < 0.0) != (raw > bound):
                    continue
            else:
                clamped = True
                self.refused += 1
                continue
            moved = integrals[i] + integral_gain[i] * error * dt
            most = integral_limit[i]
            integrals[i] = most if moved > most else -most if moved < -most else moved
        self.clamped = clamped
