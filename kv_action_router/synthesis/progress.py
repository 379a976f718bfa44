"""Time-optimal, jerk-limited way from state to state, by Ruckig."""

from __future__ import annotations

import numpy as np
from ruckig import InputParameter, Result, Ruckig, Synchronization, Trajectory

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import LimitError
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.spline import MotionState


class StateToState:
    """Solves for one number of joints; not thread safe."""

    def __init__(self, size: int) -> None:
        self._solver = Ruckig(size)
        self._input = InputParameter(size)
        self._trajectory = Trajectory(size)
        self._rest = np.zeros(size)

    def solve(self, start: MotionState, goal: FloatArray, limits: MotionLimits) -> float:
        """Find the way from a state to rest at a goal (n,); return its duration [s].

        Raises:
            LimitError: there is none, e.g. since the start is outside the limits.
        """
        query = self._input
        query.current_position = start.position
        query.current_velocity = start.velocity
        query.current_acceleration = np.clip(
            start.acceleration, -limits.acceleration, limits.acceleration
        )
        query.target_position = goal
        query.target_velocity = query.target_acceleration = self._rest
        query.max_velocity = limits.velocity
        query.max_acceleration = limits.acceleration
        query.max_jerk = limits.jerk
        query.synchronization = Synchronization.Phase
        result = self._solver.calculate(query, self._trajectory)
        if result not in (Result.Working, Result.Finished):
            raise LimitError(f"no way from state to state inside the limits: {result}")
        return float(self._trajectory.duration)

    def positions(self, shares: FloatArray) -> FloatArray:
        """Return positions (m, n) of the last solution at shares of its duration (m,)."""
        at_time, length = self._trajectory.at_time, self._trajectory.duration
        return np.array([at_time(share * length)[0] for share in shares.tolist()])
