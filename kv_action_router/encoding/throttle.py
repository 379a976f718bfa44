"""Says the same thing at most once in a while."""

from __future__ import annotations


class Throttle:
    """Remembers by name when something was last said."""

    def __init__(self, period: float) -> None:
        """Let each name pass once in ``period`` [s]."""
        self._period_ns = int(period * 1e9)
        self._due: dict[str, int] = {}

    def allows(self, name: str, now_ns: int) -> bool:
        """Return whether ``name`` may be said now [ns], and take note when it may."""
        if now_ns < self._due.get(name, now_ns):
            return False
        self._due[name] = now_ns + self._period_ns
        return True
