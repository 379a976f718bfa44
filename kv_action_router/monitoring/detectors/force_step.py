"""A step of the force: something that was pushed against has given way."""

from __future__ import annotations

import math

from kv_action_router.monitoring.signals import SignalTable

FORCE_DROP = "force_drop"


class ForceStepDetector:
    """Writes ``force_drop`` [N], while somebody asks for it: the largest fall of the force.

    A latch that snaps shows as a force that rises, falls at once and rises again. What counts is
    the largest distance of any sample from the largest one before it, so the step is still seen
    when the force has come back.

    Invariant: it never falls while a motion lasts.
    """

    def __init__(self) -> None:
        self.asked = False
        self.begin()

    def reset(self) -> None:
        """Forget everything, and that somebody asks."""
        self.asked = False
        self.begin()

    def begin(self) -> None:
        """A motion begins: count from now on."""
        self._highest = -math.inf
        self._drop = 0.0

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Nothing here changes with time alone."""

    def on_force(self, force: float, receipt_ns: int, table: SignalTable) -> None:
        """Take the force at the tool, free of its tare [N]; NaN is no sample."""
        if not math.isfinite(force):
            return
        self._highest = max(self._highest, force)
        self._drop = max(self._drop, self._highest - force)
        table.put(FORCE_DROP, self._drop, receipt_ns)
