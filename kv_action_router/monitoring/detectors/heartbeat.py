"""Heartbeat: how long each node has been silent."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kv_action_router.monitoring.samples import LIFECYCLE_ACTIVE, HeartbeatSample
from kv_action_router.monitoring.signals import SignalTable

_STALL_NS = 30_000_000  # the monitor itself was not served for longer: its view is not current
_RECOVERY_NS = 20_000_000  # one heartbeat period for the samples to arrive after that


class HeartbeatDetector:
    """Writes ``heartbeat_age`` [s] of each expected node.

    A node that was active is silent from its last sign of life on. One that was never seen, or
    was last seen in another state (transitions may hold its executor for a while), is not
    measured before ``grace_s`` has passed since then or since activation.

    After a stall of the monitor itself, one heartbeat period passes before anybody is judged:
    the receiving threads were stalled as well.
    """

    def __init__(self, nodes: Sequence[str], grace_s: float) -> None:
        self.nodes = tuple(nodes)
        self._grace_ns = int(grace_s * 1e9)
        self._last_ns: dict[str, int] = {}
        self._state: dict[str, int] = {}
        self._begin_ns = -1
        self._tick_ns = -1
        self._judge_from_ns = 0

    def reset(self) -> None:
        """Forget every sign of life; grace begins with the next :meth:`measure`."""
        self._last_ns.clear()
        self._state.clear()
        self._begin_ns = -1
        self._tick_ns = -1
        self._judge_from_ns = 0

    def on_heartbeat(self, sample: HeartbeatSample) -> None:
        """Take a sign of life; those of other nodes are ignored."""
        if sample.node in self.nodes:
            self._last_ns[sample.node] = sample.receipt_ns
            self._state[sample.node] = sample.lifecycle_state

    def is_active(self, node: str) -> bool:
        """Return whether the node said that it is active in its last sign of life."""
        return self._state.get(node) == LIFECYCLE_ACTIVE

    def seen(self, node: str) -> bool:
        """Return whether the node ever gave a sign of life."""
        return node in self._last_ns

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Write the age of every node's last sign of life."""
        if self._begin_ns < 0 or now_ns < self._tick_ns:
            self._begin_ns = now_ns
        elif now_ns - self._tick_ns > _STALL_NS:
            self._judge_from_ns = now_ns + _RECOVERY_NS
        self._tick_ns = now_ns
        if now_ns < self._judge_from_ns:
            return
        for node in self.nodes:
            since_ns = max(self._last_ns.get(node, self._begin_ns), 0)
            age_ns = max(0, now_ns - since_ns)
            judged = self.is_active(node) or age_ns > self._grace_ns
            table.put("heartbeat_age", age_ns / 1e9 if judged else math.nan, now_ns, node)
