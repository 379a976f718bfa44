"""Limits of a chunk's samples as whole arrays: a few comparisons for what is above any doubt."""

from __future__ import annotations

import math

import numpy as np

from kv_action_router.contracts import CHUNK_PERIOD, CHUNK_SAMPLES, FloatArray
from kv_action_router.injection.execution_table import Snapshot

RATIO_SLACK = 1.01  # rounding of whoever planned right at a limit of velocity or acceleration
DISAGREEMENT = 0.02  # [rad/s] between the positions' slope and the velocities
_FAR = 1e9  # [rad] no joint that turns without end has come so far


class ChunkBounds:
    """Bounds of complete rows (100, 2 n), and what follows from them; no NaN or infinity passes.

    Bounds are as large as what they are compared with, and all of it is contiguous: a loop over
    rows of 2 n numbers would cost three times as much.
    """

    def __init__(self, n: int) -> None:
        self.limits: Snapshot | None = None  # that they were made from
        self._n = n
        self._least = np.zeros((CHUNK_SAMPLES, 2 * n))
        self._most = np.zeros((CHUNK_SAMPLES, 2 * n))
        self._change = np.zeros((CHUNK_SAMPLES - 1, 2 * n))  # from sample to sample
        self._step = np.zeros((CHUNK_SAMPLES - 1, 2 * n))
        self._sum = np.zeros((CHUNK_SAMPLES - 1, 2 * n))
        # Flat, a velocity stands n places behind its position. What is not a pair of the two may
        # differ by anything.
        difference = np.full((CHUNK_SAMPLES - 1, 2 * n), math.inf)
        difference[:, :n] = DISAGREEMENT * CHUNK_PERIOD
        self._difference = difference.reshape(-1)[:-n]
        self._flat_step = self._step.reshape(-1)[:-n]
        self._flat_sum = self._sum.reshape(-1)[n:]

    def set(
        self,
        limits: Snapshot,
        lower: list[float],
        upper: list[float],
        continuous: list[bool],
    ) -> None:
        """Make the bounds from the limits in force."""
        n = self._n
        speed = RATIO_SLACK * np.array(limits.velocity_limit)
        rate = RATIO_SLACK * np.array(limits.acceleration_limit)
        self._least[:, :n] = np.where(continuous, -_FAR, lower)
        self._most[:, :n] = np.where(continuous, _FAR, upper)
        self._least[:, n:], self._most[:, n:] = -speed, speed
        self._change[:, :n] = speed * CHUNK_PERIOD
        self._change[:, n:] = rate * CHUNK_PERIOD
        self.limits = limits

    def hold(self, rows: FloatArray) -> bool:
        """Return whether complete rows (100, 2 n) keep them; False = look closer."""
        inside = rows >= self._least
        inside &= rows <= self._most
        if np.count_nonzero(inside) < inside.size:
            return False
        step = np.subtract(rows[1:], rows[:-1], out=self._step)
        np.add(rows[1:], rows[:-1], out=self._sum)
        difference = self._flat_sum  # of mean velocity x time, and step of the position
        difference *= 0.5 * CHUNK_PERIOD
        difference -= self._flat_step
        np.abs(difference, out=difference)
        np.abs(step, out=step)
        agree, reachable = difference <= self._difference, step <= self._change
        return (
            np.count_nonzero(agree) == agree.size and np.count_nonzero(reachable) == reachable.size
        )
