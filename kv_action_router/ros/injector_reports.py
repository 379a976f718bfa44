"""What the injector's slower thread makes of the control loop's events: reports, logs, updates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kv_action_router.contracts import (
    KEY_SIZE,
    Decision,
    EntryUpdate,
    ExecutionValue,
    InjectorEvent,
    UpdateOperation,
)
from kv_action_router.errors import ChunkRefusedError, InjectionError
from kv_action_router.injection.events import Event
from kv_action_router.injection.lateness import BIN_US, LatenessMeter
from kv_action_router.msg import FailureEvent, LoopStatistics
from kv_action_router.ros import topics
from kv_action_router.ros.conversions import decision_to_msg, entry_update_to_msg
from kv_action_router.ros.lifecycle import StageNode

_EDGES_US = (5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000, 2000, 5000, 10000)

_REFUSALS = (
    InjectorEvent.CHUNK_LATE,
    InjectorEvent.CHUNK_EPOCH,
    InjectorEvent.CHUNK_ORDER,
    InjectorEvent.CHUNK_INVALID,
)
_SEVERITY = {
    InjectorEvent.STARVED: FailureEvent.SEVERITY_WARNING,
    InjectorEvent.DRIVE: FailureEvent.SEVERITY_WARNING,
    InjectorEvent.FAIL_SAFE: FailureEvent.SEVERITY_FATAL,
    InjectorEvent.STOPPED: FailureEvent.SEVERITY_FATAL,
    **dict.fromkeys(_REFUSALS, FailureEvent.SEVERITY_WARNING),
}
_RESPONSE = {
    InjectorEvent.DRIVE: "derate",
    InjectorEvent.FAIL_SAFE: "fail_safe",
    InjectorEvent.STOPPED: "brake",
}


class InjectorReports:
    """Publishes what the control loop saw; executor thread only."""

    def __init__(self, node: StageNode[Any]) -> None:
        self._node = node
        self._updates = _publisher(node, topics.ENTRY_UPDATE)
        self._statistics = _publisher(node, topics.LOOP_STATISTICS)
        self._publishers = [self._updates, self._statistics]

    def destroy(self) -> None:
        """Destroy the publishers."""
        for publisher in self._publishers:
            self._node.destroy_publisher(publisher)

    def tell(self, event: Event) -> None:
        """Report one event of the control loop."""
        if event.kind in _SEVERITY:
            refused = event.kind in _REFUSALS
            decision = None if event.chunk is None else decision_to_msg(event.chunk.decision)
            self._node.report(
                ChunkRefusedError.error_code if refused else InjectionError.error_code,
                f"chunk {event.chunk.decision.sequence}: {event.reason}"
                if refused and event.chunk is not None
                else event.reason,
                severity=_SEVERITY[event.kind],
                source=event.source,
                detector=f"injector_{event.kind.name.lower()}",
                response=_RESPONSE.get(event.kind, "none"),
                decision=decision,
            )
        elif event.kind is not InjectorEvent.CHUNK_ADOPTED:
            name = event.kind.name.lower()
            self._node.get_logger().info(f"{name}: epoch {event.epoch} {event.reason}".rstrip())
        if event.execution is not None:
            self._teach(event.execution, event.reason)

    def malformed(self, messages: Sequence[tuple[str, str]]) -> None:
        """Report messages that could not be read."""
        for topic, why in messages:
            self._node.report(
                InjectionError.error_code, f"{topic}: {why}", detector=f"injector_{topic}"
            )

    def lateness(self, meter: LatenessMeter, ticks: int) -> None:
        """Publish the loop's statistics since activation."""
        total = meter.total.summary()
        message = LoopStatistics(
            rate_hz=float(meter.rate_hz),
            ticks=ticks,
            missed_ticks=meter.missed,
            realtime=meter.realtime,
            lateness_p50_us=float(total.p50_us),
            lateness_p99_us=float(total.p99_us),
            lateness_p999_us=float(total.p999_us),
            lateness_max_us=float(total.max_us),
            bin_upper_us=[float(edge) for edge in _EDGES_US],
        )
        message.header.stamp = self._node.get_clock().now().to_msg()
        counts = [0] * len(_EDGES_US)
        column = 0
        for index, count in enumerate(meter.total.counts):
            while column < len(_EDGES_US) - 1 and (index + 1) * BIN_US > _EDGES_US[column]:
                column += 1
            counts[column] += count
        message.bin_count = counts
        self._statistics.publish(message)

    def _teach(self, value: ExecutionValue, reason: str) -> None:
        update = EntryUpdate(
            decision=Decision(robot_id=self._node.config.robot_id),
            operation=UpdateOperation.EXECUTION,
            entry_id=0,
            entry_version=value.base_version,
            vector=np.zeros(KEY_SIZE, dtype=np.float32),
            behavior=None,
            execution=value,
            error=float("nan"),
            false_hit=False,
            reason=reason,
        )
        self._updates.publish(entry_update_to_msg(update))


def _publisher(node: StageNode[Any], topic: topics.Topic) -> Any:
    return node.create_publisher(topic.type, topic.name, topic.profile())
