"""The node ``failure_monitor``: a lifecycle shell around the failure monitor.

Subscriptions (polled): ``execution_feedback``, ``wrench``, ``drive_state``, ``task_state``,
``stop``, ``heartbeat/<node>`` of the other nodes; now and then ``task_key`` and ``cache_match``.
DDS events: deadline, liveliness and incompatible profiles of these and of ``trajectory_chunk``.
Publishers: ``failure_event``, ``condition``, ``stop`` (engages only), ``/diagnostics`` at 1 Hz.
Clients: ``cache_manager/invalidate``, ``behavior_synthesizer/interrupt``; called without waiting.
Parameters: ``monitoring/config.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import QoSProfile

from kv_action_router.contracts import DriveSample, ExecutionFeedback, TaskState
from kv_action_router.errors import InputError, ResponseError
from kv_action_router.monitoring.catalog import StageCatalog
from kv_action_router.monitoring.config import MonitorConfig
from kv_action_router.monitoring.expectation import PRODUCERS
from kv_action_router.monitoring.monitor import FailureMonitor
from kv_action_router.monitoring.response import Severity, default_table, load_rules
from kv_action_router.monitoring.samples import (
    HeartbeatSample,
    KeySample,
    StopSample,
    WrenchSample,
)
from kv_action_router.ros import qos, topics
from kv_action_router.ros.conversions import condition_to_msg, task_state_from_msg
from kv_action_router.ros.conversions.failure import report_to_msg
from kv_action_router.ros.diagnostics import signals, statuses
from kv_action_router.ros.lifecycle import StageNode
from kv_action_router.ros.periodic import PeriodicThread
from kv_action_router.ros.process import run
from kv_action_router.ros.responses import Responder
from kv_action_router.ros.streams import LatestReader, Sample
from kv_action_router.ros.topics import Topic
from kv_action_router.ros.transport import TransportEvents
from kv_action_router.ros.wire import (
    DriveReader,
    FeedbackReader,
    FieldReader,
    HeartbeatReader,
    WrenchReader,
)

NAME = "failure_monitor"
WATCHED_NODES = tuple(node for node in topics.NODES if node != NAME)

_FEEDBACK_PERIOD_NS = 19_000_000  # the dearest message; stages end no faster
_DRIVE_PERIOD_NS = 40_000_000  # heat is slow
_KEY_PERIOD_NS = 100_000_000  # a key is read for its image's age only
_EVENTS_PERIOD_NS = 50_000_000  # DDS counts them until they are taken
_DIAGNOSTICS_PERIOD_NS = 1_000_000_000


@dataclass(slots=True)
class _Stream:
    """A polled reader, what makes a sample of its messages, and when it is read next."""

    reader: LatestReader[Any]
    convert: Callable[[Sample], object]
    period_ns: int = 0
    due_ns: int = 0
    every: bool = False  # every sample counts, not only the newest


class FailureMonitorNode(StageNode[MonitorConfig]):
    """Threads: the data loop owns the monitor and all that it reads; the executor has the rest."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(NAME, MonitorConfig, **arguments)
        self._monitor: FailureMonitor | None = None
        self._responder: Responder | None = None
        self._publishers_made: list[Any] = []
        self._watched: list[str] = []
        self._streams: tuple[_Stream, ...] = ()
        self._events = TransportEvents()
        self._latched: dict[type, object] = {}  # outlives a deactivation: it comes only once
        self._pending: list[object] = []
        self._events_due_ns = self._diagnostics_due_ns = 0

    # --- transitions --------------------------------------------------------------------------

    def configure_stage(self) -> None:
        """Read the response table, subscribe to everything."""
        rules = load_rules(self.config.conditions_file or default_table())
        leases = {topics.HEARTBEATS[node].name: (node,) for node in WATCHED_NODES}
        self._streams = (
            _Stream(self._watch(topics.TASK_STATE), _task_state),
            _Stream(
                self._watch(topics.WRENCH, profile=qos.sensor_log(), raw=True),
                _wrenches(),
                every=True,
            ),
            _Stream(
                self._watch(topics.EXECUTION_FEEDBACK, raw=True), _feedback(), _FEEDBACK_PERIOD_NS
            ),
            _Stream(
                self._watch(topics.DRIVE_STATE, profile=qos.sensor(), raw=True),
                _drives(),
                _DRIVE_PERIOD_NS,
            ),
            _Stream(self._watch(topics.STOP), _stop),
            _Stream(self._watch(topics.TASK_KEY, raw=True), _keys(), _KEY_PERIOD_NS),
            *(
                _Stream(
                    self._watch(topics.HEARTBEATS[node], raw=True),
                    _heartbeats_of(node),
                )
                for node in WATCHED_NODES
            ),
        )
        self._match = self._watch(topics.CACHE_MATCH)
        self._watch(topics.TRAJECTORY_CHUNK)  # for its DDS events alone
        self._monitor = FailureMonitor(
            rules,
            StageCatalog(self.loop_failed).find,
            nodes=WATCHED_NODES,
            config=self.config,
            producers={**PRODUCERS, **leases},
            topics=self._watched,
        )
        self._condition = self._publisher(topics.CONDITION)
        self._diagnostics = self._publisher(topics.DIAGNOSTICS)
        self._responder = Responder(
            self,
            timeout_s=self.config.response_timeout,
            entry_in_force=self._entry_in_force,
            on_failure=self._response_failed,
        )

    def activate_stage(self) -> None:
        """Begin to watch; nothing is known of the time before but what is latched."""
        assert self._monitor is not None
        self._monitor.reset()
        for _ in self._events.take():
            pass
        self._pending = list(self._latched.values())
        self._events_due_ns = self._diagnostics_due_ns = 0
        self.start_beating_loop(
            PeriodicThread(self.config.poll_period, self._on_wake, self.loop_failed, name="monitor")
        )

    def cleanup_stage(self) -> None:
        """Destroy publishers and clients; the readers go with the data plane."""
        self._events.destroy()
        if self._responder is not None:
            self._responder.destroy()
            self._responder = None
        for publisher in self._publishers_made:
            self.destroy_publisher(publisher)
        self._publishers_made.clear()
        self._streams = ()
        self._watched.clear()
        self._latched.clear()
        self._monitor = None

    def _watch(
        self, topic: Topic, *, profile: QoSProfile | None = None, raw: bool = False
    ) -> LatestReader[Any]:
        reader = self.plane.reader(topic, profile=profile, raw=raw)
        # A driver's stream has no deadline of ours; every other profile does, or a lease.
        self._events.watch(reader, topic.name, timed=profile is None)
        self._watched.append(topic.name)
        return reader

    def _publisher(self, topic: Topic) -> Any:
        publisher = self.create_publisher(topic.type, topic.name, topic.profile())
        self._publishers_made.append(publisher)
        return publisher

    # --- data loop ------------------------------------------------------------------------------

    def _on_wake(self) -> None:
        assert self._monitor is not None
        assert self._responder is not None
        now_ns = time.monotonic_ns()
        samples, self._pending = self._pending, []
        for stream in self._streams:
            if now_ns >= stream.due_ns:
                stream.due_ns = now_ns + stream.period_ns
                while self._take(stream, samples):
                    pass
        if now_ns >= self._events_due_ns:
            self._events_due_ns = now_ns + _EVENTS_PERIOD_NS
            samples.extend(self._events.take())
        now_ns = time.monotonic_ns()  # no sample that was taken is of the future
        verdict = self._monitor.update(now_ns, samples)
        for report in verdict.responses:
            self._responder.respond(report)
        for condition in verdict.conditions:
            message = condition_to_msg(condition)
            message.header.stamp = self.get_clock().now().to_msg()
            self._condition.publish(message)
        for report in verdict.reports:
            self._failure_publisher.publish(report_to_msg(report))
            self._say(report.severity, report.error_code, report.message)
        self._responder.poll(now_ns)
        if now_ns >= self._diagnostics_due_ns:
            self._diagnostics_due_ns = now_ns + _DIAGNOSTICS_PERIOD_NS
            self._publish_diagnostics(now_ns)

    def _take(self, stream: _Stream, samples: list[object]) -> bool:
        """Add the next unread sample; return whether there may be more."""
        taken = stream.reader.take()
        if taken is None:
            return False
        try:
            sample = stream.convert(taken)
        except InputError as error:  # one sample that can't be used hides no other stream
            self.loop_failed(error)
        else:
            samples.append(sample)
            if isinstance(sample, _LATCHED):
                self._latched[type(sample)] = sample
        return stream.every

    def _publish_diagnostics(self, now_ns: int) -> None:
        assert self._monitor is not None
        array = DiagnosticArray()
        array.header.stamp = self.get_clock().now().to_msg()
        name = self.get_fully_qualified_name()
        array.status = [
            *statuses(self._monitor.status(), name),
            signals(self._monitor.values(now_ns), self._monitor.stages.describe(), name),
        ]
        self._diagnostics.publish(array)

    def _entry_in_force(self) -> int:
        taken = self._match.take()
        return int(taken.message.entry_id) if taken is not None and taken.message.hit else 0

    def _response_failed(self, message: str) -> None:
        code = ResponseError.error_code
        self.report(code, message, severity=Severity.ERROR, detector="response")

    def _say(self, severity: Severity, code: int, message: str) -> None:
        logger = self.get_logger()
        text = f"[{code}] {message}"
        if severity >= Severity.ERROR:
            logger.error(text)
        elif severity == Severity.WARNING:
            logger.warning(text)
        else:
            logger.info(text)


_LATCHED = (TaskState, StopSample)


def _task_state(sample: Sample) -> TaskState:
    return task_state_from_msg(sample.message)


def _stop(sample: Sample) -> StopSample:
    return StopSample(sample.message.engaged, sample.message.source, sample.receipt_ns)


def _feedback() -> Callable[[Sample], ExecutionFeedback]:
    reader = FeedbackReader()
    return lambda sample: reader.read(sample.message)


def _wrenches() -> Callable[[Sample], WrenchSample]:
    reader = WrenchReader()
    return lambda sample: WrenchSample(reader.read(sample.message), sample.receipt_ns)


def _drives() -> Callable[[Sample], DriveSample]:
    reader = DriveReader()
    return lambda sample: reader.read(sample.message, sample.receipt_ns)


def _keys() -> Callable[[Sample], KeySample]:
    reader = FieldReader(topics.TASK_KEY.type, ("scene_age",))

    def key(sample: Sample) -> KeySample:
        values = reader.read(sample.message)
        assert values is not None  # a key holds no sequence of messages
        return KeySample(values[0], sample.receipt_ns)

    return key


def _heartbeats_of(node: str) -> Callable[[Sample], HeartbeatSample]:
    reader = HeartbeatReader()

    def heartbeat(sample: Sample) -> HeartbeatSample:
        state, _ = reader.read(sample.message)
        return HeartbeatSample(node, state, sample.receipt_ns)

    return heartbeat


def main(arguments: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM."""
    return run(lambda: [FailureMonitorNode()], arguments)
