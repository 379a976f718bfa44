"""DDS events of polled readers reach the monitor without an executor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

rclpy = pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from rclpy.node import Node  # noqa: E402

from kv_action_router.monitoring.samples import TransportFault, TransportSample  # noqa: E402
from kv_action_router.ros import qos, topics  # noqa: E402
from kv_action_router.ros.streams import DataPlane  # noqa: E402
from kv_action_router.ros.transport import TransportEvents  # noqa: E402

pytestmark = pytest.mark.dds

HEARTBEAT = topics.HEARTBEATS["cache_manager"]


class Bench:
    def __init__(self, context: Any) -> None:
        self.node = Node("bench", context=context)
        self.plane = DataPlane(self.node)
        self.events = TransportEvents()
        self.seen: list[TransportSample] = []

    def watch(self, topic: topics.Topic) -> Any:
        reader = self.plane.reader(topic, profile=topic.profile())
        self.events.watch(reader, topic.name, timed=True)
        return reader

    def publisher(self, topic: topics.Topic, profile: Any = None) -> Any:
        return self.node.create_publisher(topic.type, topic.name, profile or topic.profile())

    def count(self, fault: TransportFault) -> int:
        self.seen += self.events.take()
        return sum(sample.count for sample in self.seen if sample.fault is fault)


@pytest.fixture
def bench(ros: Any) -> Iterator[Bench]:
    made = Bench(ros)
    yield made
    made.events.destroy()
    made.plane.destroy()
    made.node.destroy_node()


def feed(publisher: Any, reader: Any, topic: topics.Topic, wait_until: Any) -> None:
    """Publish until a sample has arrived: only then does DDS watch the writer."""

    def arrived() -> bool:
        publisher.publish(topic.type())
        return reader.take() is not None

    wait_until(arrived, 10.0, f"a sample on {topic.name}")


def test_a_silent_writer_misses_its_deadline(bench: Bench, wait_until: Callable[..., Any]) -> None:
    reader = bench.watch(topics.TASK_KEY)
    publisher = bench.publisher(topics.TASK_KEY)
    feed(publisher, reader, topics.TASK_KEY, wait_until)
    wait_until(lambda: bench.count(TransportFault.DEADLINE) >= 5, 5.0, "five missed deadlines")
    assert {sample.topic for sample in bench.seen} == {"task_key"}
    assert all(sample.receipt_ns <= time.monotonic_ns() for sample in bench.seen)
    assert bench.count(TransportFault.LEASE) == 0


def test_a_silent_writer_loses_its_lease_once(bench: Bench, wait_until: Callable[..., Any]) -> None:
    reader = bench.watch(HEARTBEAT)
    publisher = bench.publisher(HEARTBEAT)
    feed(publisher, reader, HEARTBEAT, wait_until)
    wait_until(lambda: bench.count(TransportFault.LEASE) == 1, 5.0, "the lost lease")
    # It is back, which is no second loss.
    feed(publisher, reader, HEARTBEAT, wait_until)
    wait_until(lambda: bench.count(TransportFault.LEASE) == 2, 5.0, "the second lost lease")
    assert bench.count(TransportFault.DEADLINE) == 0


def test_a_profile_that_does_not_match_is_named(
    bench: Bench, wait_until: Callable[..., Any]
) -> None:
    bench.watch(topics.TASK_KEY)
    bench.publisher(topics.TASK_KEY, qos.sensor())  # offers no deadline
    wait_until(lambda: bench.count(TransportFault.INCOMPATIBLE) == 1, 10.0, "the mismatch")
    assert "DEADLINE" in bench.seen[0].detail.upper()


def test_destroyed_events_are_quiet(bench: Bench, wait_until: Callable[..., Any]) -> None:
    reader = bench.watch(topics.TASK_KEY)
    publisher = bench.publisher(topics.TASK_KEY)
    feed(publisher, reader, topics.TASK_KEY, wait_until)
    bench.events.destroy()
    assert list(bench.events.take()) == []
    assert reader.take() is None  # the reader itself still works
