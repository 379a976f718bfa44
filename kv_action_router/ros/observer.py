"""Watches a running system and writes down what a report needs. Changes nothing.

Subscriptions: ``cache_match``, ``trajectory_chunk``, ``execution_feedback``, ``entry_update``,
``failure_event``, ``stop``, ``actuator_injector/loop_statistics``, the five heartbeats;
with cycles, also those of ``cycle_recorder.py``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Any

from rclpy.node import Node

from kv_action_router.contracts import ChunkKind, InjectorEvent, InjectorState, Stage, Trigger
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.msg import (
    CacheMatch,
    EntryUpdate,
    ExecutionFeedback,
    FailureEvent,
    Heartbeat,
    LoopStatistics,
    Stop,
    TrajectoryChunk,
)
from kv_action_router.reporting.records import LoopCounters, Passage, RunRecord
from kv_action_router.ros import qos
from kv_action_router.ros.cycle_recorder import CycleRecorder
from kv_action_router.ros.frame_capture import FrameCapture
from kv_action_router.ros.periodic import PeriodicThread
from kv_action_router.ros.streams import DataPlane
from kv_action_router.ros.topics import (
    CACHE_MATCH,
    ENTRY_UPDATE,
    EXECUTION_FEEDBACK,
    FAILURE_EVENT,
    HEARTBEATS,
    LOOP_STATISTICS,
    STOP,
    TRAJECTORY_CHUNK,
)
from kv_action_router.ros.wire.reader import FieldReader, message_from_bytes

_DRAIN_S = 0.1
_KEPT_DECISIONS = 4096
_KEPT_IMAGES = 16


class RunObserver:
    """Fills a :class:`RunRecord` from the topics of a running system.

    Invariant: a passage is written down once, when the first command made from it was published.
    """

    def __init__(self, node: Node, run: RunRecord) -> None:
        self.run = run
        self.states: dict[str, int] = {}
        self.injector_state = InjectorState.INACTIVE
        self.injector_since_ns = 0
        self._cycles: CycleRecorder | None = None
        self._capture: FrameCapture | None = None
        self._kinds: dict[int, str] = {}
        self._image_origins_ns: deque[int] = deque(maxlen=_KEPT_IMAGES)
        self._node = node
        # Every match and feedback reaches this process; of most only a glance is needed. A content
        # filter would leave that to the writers, in the middle of their hot paths.
        self._plane = DataPlane(node)
        self._matches = self._plane.reader(CACHE_MATCH, profile=qos.log_stream(), raw=True)
        self._feedback = self._plane.reader(EXECUTION_FEEDBACK, profile=qos.log_stream(), raw=True)
        self._chunks = self._plane.reader(TRAJECTORY_CHUNK, profile=qos.log_stream(), raw=True)
        self._match_fields = FieldReader(CacheMatch, ("trigger", "decision.stage_monotonic_ns"))
        self._chunk_fields = FieldReader(TrajectoryChunk, ("kind", "entry_id", "decision.trace_id"))
        self._glance = FieldReader(ExecutionFeedback, ("event", "state", "monotonic_ns"))
        self._drain = PeriodicThread(_DRAIN_S, self._take_all, _raise, name="observer")
        subscribe = node.create_subscription
        self._subscriptions: list[Any] = [
            subscribe(EntryUpdate, ENTRY_UPDATE.name, self._on_update, qos.event()),
            subscribe(FailureEvent, FAILURE_EVENT.name, self._on_failure, qos.event()),
            subscribe(Stop, STOP.name, self._on_stop, qos.latched()),
            subscribe(LoopStatistics, LOOP_STATISTICS.name, self._on_loop, qos.latched()),
        ]
        self._heartbeats: list[Any] = [
            subscribe(Heartbeat, topic.name, self._on_heartbeat, qos.heartbeat())
            for topic in HEARTBEATS.values()
        ]

    def record_cycles(self, looking: Collection[str]) -> CycleRecorder:
        """Record cycles too; to be asked before :meth:`start`.

        Args:
            looking: subtasks in which the target is looked at, whose errors are written down.
        """
        self._cycles = CycleRecorder(self._node, self._plane, self.run, looking)
        return self._cycles

    def capture_frame(self, config: EncoderConfig) -> FrameCapture:
        """Take one image with its target too; to be asked before :meth:`start`."""
        self._capture = FrameCapture(self._plane, config)
        return self._capture

    def start(self) -> None:
        """Start to take matches and feedback, on a thread of its own."""
        self._drain.start()

    def stop(self) -> None:
        """Stop that thread and let go of its streams."""
        self._drain.stop()
        self._plane.destroy()

    def missing(self, active: int) -> list[str]:
        """Return the nodes that are not in the given lifecycle state yet."""
        return [name for name in HEARTBEATS if self.states.get(name) != active]

    def leave_heartbeats(self) -> None:
        """Hear no more heartbeats: once all nodes are active they cost more than they tell."""
        for subscription in self._heartbeats:
            self._node.destroy_subscription(subscription)
        self._heartbeats.clear()

    # --- the drain's thread --------------------------------------------------------------------

    def _take_all(self) -> None:
        """Take what came; a chunk is published before the feedback of its first command."""
        while (sample := self._matches.take()) is not None:
            self._on_match(sample.message)
        while (sample := self._chunks.take()) is not None:
            self._on_chunk(sample.message)
        while (sample := self._feedback.take()) is not None:
            self._on_glance(sample.message)
        if self._cycles is not None:
            self._cycles.take_all()
        if self._capture is not None:
            self._capture.take_all()

    def _on_match(self, data: bytes) -> None:
        fields = self._match_fields.read(data)
        assert fields is not None  # a match holds no sequence of messages
        trigger, times = fields
        if trigger == Trigger.IMAGE:
            self._image_origins_ns.append(times[Stage.ORIGIN])
            if self._cycles is not None:
                self._cycles.on_image_match(data)

    def _on_chunk(self, data: bytes) -> None:
        fields = self._chunk_fields.read(data)
        if fields is None:  # timed outputs stand before what is read
            chunk = message_from_bytes(TrajectoryChunk, data)
            fields = chunk.kind, chunk.entry_id, chunk.decision.trace_id
        kind, entry_id, trace_id = fields
        if kind != ChunkKind.DECISION:
            return
        self._kinds[trace_id] = "hit" if entry_id else "miss"
        if len(self._kinds) > _KEPT_DECISIONS:
            del self._kinds[next(iter(self._kinds))]

    def _on_glance(self, data: bytes) -> None:
        """Take the state from every feedback: whoever comes later has missed the event."""
        fields = self._glance.read(data)
        assert fields is not None  # a feedback holds no sequence of messages
        event, state, now_ns = fields
        if state != self.injector_state:
            self.injector_state = InjectorState(state)
            self.injector_since_ns = now_ns
        if event != InjectorEvent.NONE:
            self._on_feedback(message_from_bytes(ExecutionFeedback, data))

    def _on_feedback(self, message: ExecutionFeedback) -> None:
        self.run.counters = LoopCounters(
            ticks=message.ticks,
            confident_ticks=message.confident_ticks,
            missed_ticks=message.missed_ticks,
            chunks_adopted=message.chunks_adopted,
            chunks_late=message.chunks_late,
            chunks_refused=message.chunks_refused,
            commands_sent=message.commands_sent,
            late_commands_sent=message.late_commands_sent,
            rate_hz=message.rate_hz,
            realtime=message.realtime,
        )
        if message.event == InjectorEvent.CHUNK_ADOPTED:
            self._on_adopted(message)
            if self._cycles is not None:
                self._cycles.on_adopted(message)

    def _on_adopted(self, message: ExecutionFeedback) -> None:
        decision = message.decision
        times = tuple(int(value) for value in decision.stage_monotonic_ns)
        command_ns = times[Stage.COMMAND] or message.monotonic_ns
        if decision.trace_id and all(times):
            # a chunk made from a key, but not by a decision, followed a target that moved
            kind = self._kinds.pop(decision.trace_id, "refresh")
            self.run.passages.append(Passage(decision.trace_id, kind, times))  # type: ignore[arg-type]
        # what is drained together came in any order: the newest image from before the command
        for origin_ns in reversed(self._image_origins_ns):
            if 0 < origin_ns < command_ns:
                self.run.image_ages_ms.append((command_ns - origin_ns) / 1e6)
                break

    # --- callbacks -----------------------------------------------------------------------------

    def _on_update(self, message: EntryUpdate) -> None:
        self.run.false_hits += bool(message.false_hit)

    def _on_failure(self, message: FailureEvent) -> None:
        if message.error_msg.startswith("decision dropped"):
            self.run.decisions_unsent += 1
        if message.severity >= FailureEvent.SEVERITY_WARNING:
            text = f"{message.source}: [{message.error_code}] {message.error_msg}"
            self.run.failures.append(text)

    def _on_stop(self, message: Stop) -> None:
        if message.engaged:
            self.run.stops.append(f"{message.source}: {message.reason}")

    def _on_loop(self, message: LoopStatistics) -> None:
        self.run.lateness_us = {
            "p50": float(message.lateness_p50_us),
            "p99": float(message.lateness_p99_us),
            "p999": float(message.lateness_p999_us),
            "max": float(message.lateness_max_us),
        }

    def _on_heartbeat(self, message: Heartbeat) -> None:
        self.states[message.node] = message.lifecycle_state


def _raise(error: Exception) -> None:
    raise error
