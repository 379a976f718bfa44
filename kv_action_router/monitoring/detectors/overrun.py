"""Overrun: a control loop that comes too late."""

from __future__ import annotations

from collections import deque

from kv_action_router.monitoring.samples import LoopSample
from kv_action_router.monitoring.signals import SignalTable

_WINDOW_NS = 1_000_000_000


class OverrunDetector:
    """Writes ``missed_ticks`` of the last second and ``loop_lateness`` [s].

    The injector counts missed periods since its activation; a count that falls is another
    activation, with which counting begins anew.
    """

    def __init__(self) -> None:
        self._total = -1
        self._recent: deque[tuple[int, int]] = deque()  # receipt [ns], ticks missed before it

    def reset(self) -> None:
        """Forget all counts."""
        self._total = -1
        self._recent.clear()

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Nothing here changes with time alone."""

    def on_loop(self, sample: LoopSample, table: SignalTable) -> None:
        """Take the counters of a feedback."""
        before, self._total = self._total, sample.missed_ticks
        recent, receipt_ns = self._recent, sample.receipt_ns
        if not 0 <= before <= sample.missed_ticks:
            recent.clear()
        elif sample.missed_ticks > before:
            recent.append((receipt_ns, sample.missed_ticks - before))
        while recent and not 0 <= receipt_ns - recent[0][0] <= _WINDOW_NS:
            recent.popleft()
        table.put("missed_ticks", float(sum(count for _, count in recent)), receipt_ns)
        table.put("loop_lateness", sample.lateness, receipt_ns)
