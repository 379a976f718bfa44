"""Waiting for what stands in the way of an interrupted motion to leave."""

from __future__ import annotations

from typing import Any


class Patience:
    """How long a decision stays open because its motion's way is blocked.

    Invariant: the same obstacles are tested once, however many matches come.
    """

    def __init__(self, limit_s: float) -> None:
        """Wait for a time [s] at most."""
        self._limit_ns = round(limit_s * 1e9)
        self._decision = 0
        self._since_ns = 0
        self._obstacles: Any = None

    def waits(self, obstacles: Any, now_ns: int) -> bool:
        """Say whether there is nothing new: the way is still blocked, and not for too long."""
        if obstacles is not self._obstacles or now_ns - self._since_ns >= self._limit_ns:
            self._obstacles = None
            return False
        return True

    def blocked(self, decision: int, obstacles: Any, now_ns: int) -> bool:
        """Note that these obstacles block the way; return whether to wait."""
        if decision != self._decision:
            self._decision, self._since_ns = decision, now_ns
        if now_ns - self._since_ns >= self._limit_ns:
            return False
        self._obstacles = obstacles
        return True
