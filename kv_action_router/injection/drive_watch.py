"""Sees in the control loop what a drive's own feedback would show too late: clamp and stall."""

from __future__ import annotations

from collections.abc import Sequence

from kv_action_router.injection.execution_layer import DriveFault
from kv_action_router.injection.execution_table import Snapshot

_STALL_HOLD = 0.2  # [s]
_NOTHING = (-1, DriveFault.NONE)


class DriveWatch:
    """Counts for how long each drive has been at its protective limit, or stalled.

    Invariant: a condition counts only through ticks in which it held without a gap.
    """

    def __init__(self, n: int, protective_hold: float) -> None:
        self._n = n
        self._protective_hold = protective_hold
        self._clamped = [0.0] * n  # [s]
        self._stalled = [0.0] * n  # [s]
        self._counting = False

    def reset(self) -> None:
        """Start counting anew."""
        self._counting = False
        for i in range(self._n):
            self._clamped[i] = self._stalled[i] = 0.0

    def update(
        self,
        dt: float,
        wanted: Sequence[float],
        sent: Sequence[float],
        velocity: Sequence[float],
        limits: Snapshot,
    ) -> tuple[int, DriveFault]:
        """Return the first joint with a fault and the fault, or (-1, NONE).

        Args:
            dt: of this tick [s].
            wanted: efforts before the clamp [N m] (n,).
            sent: efforts after it [N m] (n,).
            velocity: measured [rad/s] (n,).
            limits: in force.
        """
        if not self._counting:
            for effort, after, most in zip(wanted, sent, limits.alarming, strict=True):
                if not (-most < effort < most and -most < after < most):
                    break
            else:  # the usual case
                return _NOTHING
        self._counting = False
        for i in range(self._n):
            most = limits.protective_effort[i]
            if -most <= wanted[i] <= most:
                self._clamped[i] = 0.0
            else:
                self._counting = True
                self._clamped[i] += dt
                if self._clamped[i] >= self._protective_hold:
                    return i, DriveFault.CLAMP
            if (
                abs(sent[i]) > limits.stall_effort[i]
                and abs(velocity[i]) < limits.stall_velocity[i]
            ):
                self._counting = True
                self._stalled[i] += dt
                if self._stalled[i] >= _STALL_HOLD:
                    return i, DriveFault.STALL
            else:
                self._stalled[i] = 0.0
        return _NOTHING
