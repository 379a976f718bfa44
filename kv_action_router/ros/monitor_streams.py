"""The polled subscriptions of stage 5, and what becomes of their samples and DDS events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rclpy.qos import QoSProfile

from kv_action_router.contracts import DriveSample, ExecutionFeedback, TaskState
from kv_action_router.errors import InputError
from kv_action_router.monitoring.samples import (
    HeartbeatSample,
    KeySample,
    StopSample,
    WrenchSample,
)
from kv_action_router.ros import qos, topics
from kv_action_router.ros.conversions import task_state_from_msg
from kv_action_router.ros.streams import DataPlane, LatestReader, Sample
from kv_action_router.ros.topics import Topic
from kv_action_router.ros.transport import TransportEvents
from kv_action_router.ros.wire import (
    DriveReader,
    FeedbackReader,
    FieldReader,
    HeartbeatReader,
    WrenchReader,
)

_FEEDBACK_PERIOD_NS = 19_000_000  # the dearest message; stages end no faster
_DRIVE_PERIOD_NS = 40_000_000  # heat is slow
_KEY_PERIOD_NS = 100_000_000  # a key is read for its image's age only
_EVENTS_PERIOD_NS = 50_000_000  # DDS counts them until they are taken
_LATCHED = (TaskState, StopSample)


@dataclass(slots=True)
class _Stream:
    """A polled reader, what makes a sample of its messages, and when it is read next."""

    reader: LatestReader[Any]
    convert: Callable[[Sample], object]
    period_ns: int = 0
    due_ns: int = 0
    every: bool = False  # every sample counts, not only the newest


class MonitorStreams:
    """Samples of every stream; used by the monitor's thread.

    Attributes:
        watched: names of the topics whose DDS events are taken.
    """

    def __init__(
        self, plane: DataPlane, nodes: Sequence[str], on_refused: Callable[[Exception], None]
    ) -> None:
        """Subscribe to everything.

        Args:
            plane: owner of the readers.
            nodes: whose heartbeats are heard.
            on_refused: receives why a sample cannot be used; it hides no other stream.
        """
        self._plane = plane
        self._on_refused = on_refused
        self._events = TransportEvents()
        self._events_due_ns = 0
        self._latched: dict[type, object] = {}  # outlives a deactivation: it comes only once
        self._pending: list[object] = []
        self.watched: list[str] = []
        watch = self._watch
        wrench, drives = qos.sensor_log(), qos.sensor()
        self._streams = (
            _Stream(watch(topics.TASK_STATE), _task_state),
            _Stream(watch(topics.WRENCH, profile=wrench, raw=True), _wrenches(), every=True),
            _Stream(watch(topics.EXECUTION_FEEDBACK, raw=True), _feedback(), _FEEDBACK_PERIOD_NS),
            _Stream(
                watch(topics.DRIVE_STATE, profile=drives, raw=True), _drives(), _DRIVE_PERIOD_NS
            ),
            _Stream(watch(topics.STOP), _stop),
            _Stream(watch(topics.TASK_KEY, raw=True), _keys(), _KEY_PERIOD_NS),
            *(
                _Stream(watch(topics.HEARTBEATS[node], raw=True), _heartbeats_of(node))
                for node in nodes
            ),
        )
        self._match = watch(topics.CACHE_MATCH)
        watch(topics.TRAJECTORY_CHUNK)  # for its DDS events alone

    def restart(self) -> None:
        """Forget DDS events from before now; what is latched is told once more."""
        for _ in self._events.take():
            pass
        self._pending = list(self._latched.values())
        self._events_due_ns = 0

    def take(self, now_ns: int) -> list[object]:
        """Return the samples that came, and the DDS events."""
        samples, self._pending = self._pending, []
        for stream in self._streams:
            if now_ns >= stream.due_ns:
                stream.due_ns = now_ns + stream.period_ns
                while self._take(stream, samples):
                    pass
        if now_ns >= self._events_due_ns:
            self._events_due_ns = now_ns + _EVENTS_PERIOD_NS
            samples.extend(self._events.take())
        return samples

    def entry_in_force(self) -> int:
        """Return the entry of the newest match; 0 = it is no hit, or none came since the last."""
        taken = self._match.take()
        return int(taken.message.entry_id) if taken is not None and taken.message.hit else 0

    def destroy(self) -> None:
        """Let go of the DDS events; the readers go with the data plane."""
        self._events.destroy()

    def _watch(
        self, topic: Topic, *, profile: QoSProfile | None = None, raw: bool = False
    ) -> LatestReader[Any]:
        reader = self._plane.reader(topic, profile=profile or topic.profile(), raw=raw)
        # A driver's stream has no deadline of ours; every other profile does, or a lease.
        self._events.watch(reader, topic.name, timed=profile is None)
        self.watched.append(topic.name)
        return reader

    def _take(self, stream: _Stream, samples: list[object]) -> bool:
        """Add the next unread sample; return whether there may be more."""
        taken = stream.reader.take()
        if taken is None:
            return False
        try:
            sample = stream.convert(taken)
        except InputError as error:
            self._on_refused(error)
        else:
            samples.append(sample)
            if isinstance(sample, _LATCHED):
                self._latched[type(sample)] = sample
        return stream.every


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
