"""Rows of measurement that are kept for a fit: an even sample of all that came."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from kv_action_router.contracts import FloatArray


class Column(IntEnum):
    """What a row holds of each drive."""

    POSITION = 0  # [rad]
    VELOCITY = 1  # [rad/s]
    ACCELERATION = 2  # [rad/s^2]
    CURRENT = 3  # [A]
    VOLTAGE = 4  # [V]; NaN = not measured
    TEMPERATURE = 5  # [degC]; NaN = not measured


class RowStore:
    """At most ``capacity`` rows (len(Column), n) in memory that was taken once.

    Invariant: whatever number of rows came, each of them is among those kept with the same chance
    (Vitter's algorithm R), so that hours of work and the warming in them are told by few rows.

    Attributes:
        seen: rows that came since the beginning.
    """

    def __init__(self, drives: int, capacity: int = 1000, seed: int = 1) -> None:
        """Begin without rows of ``drives`` drives."""
        self._rows: FloatArray = np.zeros((capacity, len(Column), drives))
        self._generator = np.random.default_rng(seed)
        self.seen = 0

    @property
    def kept(self) -> int:
        """Number of rows that are kept."""
        return min(self.seen, len(self._rows))

    def add(self, row: FloatArray) -> None:
        """Take a row (len(Column), n); it may be written to afterwards."""
        place = self.seen
        self.seen += 1
        if place >= len(self._rows):
            place = int(self._generator.integers(self.seen))
            if place >= len(self._rows):
                return
        self._rows[place] = row

    def rows(self) -> FloatArray:
        """Return a copy of the rows that are kept (k, len(Column), n)."""
        return self._rows[: self.kept].copy()

    def clear(self) -> None:
        """Forget all rows."""
        self.seen = 0
