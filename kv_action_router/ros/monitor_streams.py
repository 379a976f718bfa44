"""The polled subscriptions of stage 5, and what becomes of their samples and DDS events."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rclpy.qos import QoSProfile

from kv_action_router.contracts import TaskState
from kv_action_router.errors import InputError
from kv_action_router.monitoring.samples import (
    HeartbeatSample,
    KeySample,
    LoopSample,
    ObstacleSample,
    RatesSample,
    StampSample,
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
    ObstacleReader,
    WrenchReader,
)

_FEEDBACK_PERIOD_NS = 19_000_000  # the dearest message; stages end no faster
_DRIVE_PERIOD_NS = 40_000_000  # heat is slow
_KEY_PERIOD_NS = 30_000_000  # with 45 ms of a healthy image's age still well below 100 ms
_OBSTACLE_PERIOD_NS = 80_000_000  # 10 Hz
_STATISTICS_PERIOD_NS = 500_000_000
_LOOP_EVERY = 10  # feedbacks: they tell of the last second
_STAMPS_EVERY = 10  # wrenches: two in a row are looked at, so that a repeated stamp shows
_LAYERS = ("task", "behavior")  # whose hits are counted in decisions
_EVENTS_PERIOD_NS = 50_000_000  # DDS counts them until they are taken


@dataclass(slots=True)
class _Stream:
    """A polled reader, what makes a sample of its messages, and when it is read next."""

    reader: LatestReader[Any]
    convert: Callable[[Sample], Iterable[object]]
    period_ns: int = 0
    due_ns: int = 0
    every: bool = False  # every sample counts, not only the newest
    latched: bool = False  # what was told last still holds


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
            _Stream(watch(topics.TASK_STATE), _task_state, latched=True),
            _Stream(watch(topics.WRENCH, profile=wrench, raw=True), _wrenches(), every=True),
            _Stream(watch(topics.EXECUTION_FEEDBACK, raw=True), _feedback(), _FEEDBACK_PERIOD_NS),
            _Stream(
                watch(topics.DRIVE_STATE, profile=drives, raw=True), _drives(), _DRIVE_PERIOD_NS
            ),
            _Stream(watch(topics.STOP), _stop, latched=True),
            _Stream(watch(topics.TASK_KEY, raw=True), _keys(), _KEY_PERIOD_NS),
            _Stream(watch(topics.OBSTACLE_SPHERES, raw=True), _obstacles(), _OBSTACLE_PERIOD_NS),
            _Stream(watch(topics.STATISTICS), _rates, _STATISTICS_PERIOD_NS),
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
            made = stream.convert(taken)
        except InputError as error:
            self._on_refused(error)
        else:
            samples.extend(made)
            if stream.latched:
                for sample in made:
                    self._latched[type(sample)] = sample
        return stream.every


def _task_state(sample: Sample) -> tuple[TaskState]:
    return (task_state_from_msg(sample.message),)


def _stop(sample: Sample) -> tuple[StopSample]:
    return (StopSample(sample.message.engaged, sample.message.source, sample.receipt_ns),)


def _feedback() -> Callable[[Sample], Iterable[object]]:
    reader = FeedbackReader()
    loop = FieldReader(topics.EXECUTION_FEEDBACK.type, ("missed_ticks", "lateness_p99_us"))
    left = 0

    def feedback(sample: Sample) -> Iterable[object]:
        nonlocal left
        read = reader.read(sample.message)
        left -= 1
        if left >= 0:
            return (read,)
        left = _LOOP_EVERY - 1
        values = loop.read(sample.message)
        assert values is not None  # a feedback holds no sequence of messages
        missed, lateness_us = values
        return read, LoopSample(missed, lateness_us * 1e-6, sample.receipt_ns)

    return feedback


def _wrenches() -> Callable[[Sample], Iterable[object]]:
    reader, topic = WrenchReader(), topics.WRENCH.name
    count = 0

    def wrench(sample: Sample) -> Iterable[object]:
        nonlocal count
        receipt_ns = sample.receipt_ns
        force = WrenchSample(reader.read(sample.message), receipt_ns)
        count += 1
        if count % _STAMPS_EVERY > 1:
            return (force,)
        return force, _stamp(topic, sample.message, receipt_ns)

    return wrench


def _drives() -> Callable[[Sample], Iterable[object]]:
    reader, topic = DriveReader(), topics.DRIVE_STATE.name

    def drives(sample: Sample) -> Iterable[object]:
        receipt_ns = sample.receipt_ns
        read = reader.read(sample.message, receipt_ns)
        return read, _stamp(topic, sample.message, receipt_ns)

    return drives


def _stamp(topic: str, data: bytes, receipt_ns: int) -> StampSample:
    """Return the header stamp of a message whose first field is its header."""
    # Behind the four bytes that tell the encoding; their second one says which end comes first.
    seconds, nanoseconds = _STAMP[data[1] & 1].unpack_from(data, 4)
    return StampSample(topic, seconds * 1_000_000_000 + nanoseconds, receipt_ns)


_STAMP = (struct.Struct(">iI"), struct.Struct("<iI"))


def _keys() -> Callable[[Sample], Iterable[object]]:
    names = ("scene_age", "target_age", "odometry_confidence", "image_sharpness")
    reader = FieldReader(topics.TASK_KEY.type, names)

    def key(sample: Sample) -> Iterable[object]:
        values = reader.read(sample.message)
        assert values is not None  # a key holds no sequence of messages
        scene_age, *seen = values
        return (KeySample(scene_age, sample.receipt_ns, *seen),)

    return key


def _obstacles() -> Callable[[Sample], Iterable[object]]:
    reader = ObstacleReader()

    def obstacles(sample: Sample) -> Iterable[object]:
        return (ObstacleSample(reader.read(sample.message).spheres, sample.receipt_ns),)

    return obstacles


def _rates(sample: Sample) -> tuple[RatesSample]:
    """Return decisions and hits of each layer, over all domains."""
    counts = dict.fromkeys(_LAYERS, (0, 0))
    for layer in sample.message.layers:
        if layer.layer in counts:
            decisions, hits = counts[layer.layer]
            counts[layer.layer] = decisions + layer.decisions, hits + layer.hits
    return (RatesSample(counts, sample.receipt_ns),)


def _heartbeats_of(node: str) -> Callable[[Sample], Iterable[object]]:
    reader = HeartbeatReader()

    def heartbeat(sample: Sample) -> Iterable[object]:
        state, _ = reader.read(sample.message)
        return (HeartbeatSample(node, state, sample.receipt_ns),)

    return heartbeat
