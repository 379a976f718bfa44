"""Heartbeat: how long each node has been silent."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kv_action_router.monitoring.samples import LIFECYCLE_ACTIVE, HeartbeatSample
from kv_action_router.monitoring.signals import SignalTable

_LONGEST_STEP_NS = 30_000_000  # of a longer one the monitor itself was not awake


class HeartbeatDetector:
    """Writes ``heartbeat_age`` [s] of each node that is active, ``node_absence`` [s] of the others.

    Both are the time since the last sign of life in which the monitor itself was awake: after a
    stall of its own, signs of life are still on their way, and nobody may be blamed for it.

    Absence is that of a node that was never seen since the monitor's activation, or was last seen
    in another state than active: it moves nothing, and a transition may hold its executor for a
    while, so that it is judged by another measure. Ages count once every node has been active for
    the time ``settle`` [s]: while one starts, discovery holds up all of them without a fault, and
    a stop that is engaged then has to be released by a person.
    """

    def __init__(self, nodes: Sequence[str], settle: float = 0.0) -> None:
        self.nodes = tuple(nodes)
        self._settle_ns = round(settle * 1e9)
        self._last_ns: dict[str, int] = {}
        self._state: dict[str, int] = {}
        self._active_ns: dict[str, int] = {}  # when it became active
        self._asleep_ns: dict[str, int] = {}  # stalls of the monitor since the last sign of life
        self._begin_ns = -1
        self._tick_ns = -1

    def reset(self) -> None:
        """Forget every sign of life; absence begins with the next :meth:`measure`."""
        self._last_ns.clear()
        self._state.clear()
        self._active_ns.clear()
        self._asleep_ns.clear()
        self._begin_ns = -1
        self._tick_ns = -1

    def on_heartbeat(self, sample: HeartbeatSample) -> None:
        """Take a sign of life; those of other nodes are ignored."""
        node, state, receipt_ns = sample.node, sample.lifecycle_state, sample.receipt_ns
        if node in self.nodes:
            if state == LIFECYCLE_ACTIVE and self._state.get(node) != LIFECYCLE_ACTIVE:
                self._active_ns[node] = receipt_ns
            self._last_ns[node] = receipt_ns
            self._state[node] = state
            if self._asleep_ns:
                self._asleep_ns.pop(node, None)

    def is_active(self, node: str) -> bool:
        """Return whether the node said that it is active in its last sign of life."""
        return self._state.get(node) == LIFECYCLE_ACTIVE

    def _all_settled(self, now_ns: int) -> bool:
        if self._settle_ns == 0 or not self.nodes:
            return True
        if len(self._active_ns) < len(self.nodes):
            return False
        return not 0 <= now_ns - max(self._active_ns.values()) < self._settle_ns

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Write the age of every node's last sign of life."""
        if self._begin_ns < 0 or now_ns < self._tick_ns:
            self._begin_ns = now_ns
            stall_ns = 0
        else:
            stall_ns = max(0, now_ns - self._tick_ns - _LONGEST_STEP_NS)
        tick_ns, self._tick_ns = self._tick_ns, now_ns
        settled = self._all_settled(now_ns)
        for node in self.nodes:
            last_ns = self._last_ns.get(node, self._begin_ns)
            if stall_ns and last_ns <= tick_ns:
                self._asleep_ns[node] = self._asleep_ns.get(node, 0) + stall_ns
            silent_ns = now_ns - last_ns
            if self._asleep_ns:
                silent_ns -= self._asleep_ns.get(node, 0)
            age = silent_ns / 1e9 if silent_ns > 0 else 0.0
            active = self._state.get(node) == LIFECYCLE_ACTIVE
            table.put("heartbeat_age", age if active and settled else math.nan, now_ns, node)
            table.put("node_absence", math.nan if active else age, now_ns, node)
