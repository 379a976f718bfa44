"""Who wants the motions slower, and by how much."""

from __future__ import annotations

import math

from kv_action_router.errors import InputError

SLOWEST = 0.05  # share of the planned speed; who wants less interrupts
MAXIMUM_SOURCES = 16


class SpeedLimits:
    """One scale for each source; the smallest is in force.

    Invariant: ``scale`` is from ``SLOWEST`` to 1, and 1 exactly when nobody asks for less.
    """

    def __init__(self) -> None:
        self._scales: dict[str, tuple[float, str]] = {}

    @property
    def scale(self) -> float:
        """Share of the planned speed that is in force."""
        return min((scale for scale, _ in self._scales.values()), default=1.0)

    def ask(self, source: str, scale: float, reason: str) -> None:
        """Take a source's scale in place of what it asked for before; 1 lifts it.

        Raises:
            InputError: no source, a scale out of range, no reason to go slower, or too many
                sources; nothing was changed.
        """
        if not source:
            raise InputError("source", "a name that is not empty", source)
        if not (math.isfinite(scale) and SLOWEST <= scale <= 1.0):
            raise InputError("scale", f"from {SLOWEST:g} to 1", scale)
        if scale == 1.0:
            self._scales.pop(source, None)
            return
        if not reason.strip():
            raise InputError("reason", "a text that is not empty", reason)
        if source not in self._scales and len(self._scales) >= MAXIMUM_SOURCES:
            raise InputError("source", f"one of at most {MAXIMUM_SOURCES}", source)
        self._scales[source] = (scale, reason)

    def describe(self) -> str:
        """Return who holds which scale and why, for people."""
        held = [f"{name} {scale:g} ({why})" for name, (scale, why) in self._scales.items()]
        return "; ".join(held) or "planned speed"
