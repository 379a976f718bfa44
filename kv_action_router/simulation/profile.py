"""The velocity that a drive asks of itself: its command, on a profile of its own."""

from __future__ import annotations

import numpy as np

from kv_action_router.contracts import FloatArray

_POSITION_GAIN = 40.0  # [1/s] position error to velocity


class VelocityProfile:
    """Profile acceleration of CiA 402, for n joints.

    Invariant: between two calls the velocity moves by at most ``acceleration`` times their dt.
    """

    def __init__(self, velocity_limit: FloatArray, acceleration: float) -> None:
        """Set the limits [rad/s] (n,) and [rad/s^2]."""
        self._limit = velocity_limit
        self._acceleration = acceleration
        self._velocity: FloatArray | None = None  # [rad/s] (n,); None = it begins anew

    def reset(self) -> None:
        """Begin at the joints' own velocity the next time."""
        self._velocity = None

    def to_position(self, goal: FloatArray, position: FloatArray) -> FloatArray:
        """Return the velocity toward a goal [rad] (n,), such that it can still stop there."""
        way = goal - position
        braking = np.sqrt(self._acceleration * np.abs(way))
        wanted: FloatArray = np.clip(_POSITION_GAIN * way, -braking, braking)
        return wanted

    def follow(self, wanted: FloatArray, velocity: FloatArray, dt: float) -> FloatArray:
        """Return the velocity of this step toward the one that is wanted [rad/s] (n,)."""
        if self._velocity is None:
            self._velocity = velocity.copy()
        most = self._acceleration * dt
        change = np.clip(wanted, -self._limit, self._limit) - self._velocity
        self._velocity += np.clip(change, -most, most)
        return self._velocity
