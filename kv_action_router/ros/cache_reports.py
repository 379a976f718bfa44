"""What ``cache_manager`` tells of itself now and then: statistics, and the same in diagnostics."""

from __future__ import annotations

import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.serialization import deserialize_message

from kv_action_router.caching.manager import CacheManager
from kv_action_router.caching.statistics import CacheReport, LayerReport
from kv_action_router.caching.store.report import NOT_STORED, StoreReport
from kv_action_router.claims import Claims, new_instance
from kv_action_router.errors import IdentityError
from kv_action_router.msg import FailureEvent
from kv_action_router.ros import qos, topics
from kv_action_router.ros.conversions.statistics import cache_report_to_msg
from kv_action_router.ros.lifecycle import StageNode

STATISTICS_PERIOD_S = 0.5
_DIAGNOSTICS_EVERY = 2  # publications of the statistics
_INSTANCE = "instance"  # key of the value by which cache managers know each other
_SUMS = ("keys", "keys_refused", "updates_refused")
_TIMES = ("match_time_p50_us", "match_time_p99_us", "match_time_max_us")
_STORE = ("loaded", "quarantined", "lost", "unsaved", "saves", "saves_failed")
_OCCUPANCY = ("entries", "capacity", "entries_not_confident")


class CacheReports:
    """Publishes statistics (2 Hz) and diagnostics (1 Hz). Belongs to the executor's thread.

    Diagnostics are the one topic that all robots of a network share, so this is also where two of
    one identity meet: each cache manager says there who it is, and looks for others that say the
    same. While there are any, nothing can be shared.
    """

    def __init__(self, node: StageNode[Any], manager: CacheManager) -> None:
        """Create publishers and the reader of diagnostics; the reader goes with the data plane."""
        self._node = node
        self._manager = manager
        robot_id = node.config.robot_id
        self._claims = Claims(robot_id, new_instance())
        self._marks = (f"{robot_id}\0".encode(), f"{_INSTANCE}\0".encode())
        self._own_mark = self._claims.instance.encode()
        self._statistics = _publisher(node, topics.STATISTICS)
        self._diagnostics = _publisher(node, topics.DIAGNOSTICS)
        self._heard = node.plane.reader(topics.DIAGNOSTICS, profile=qos.log_stream(), raw=True)
        self._board = _Board(node.get_fully_qualified_name(), robot_id, self._claims.instance)
        self._count = 0

    def destroy(self) -> None:
        """Destroy the publishers."""
        for publisher in (self._statistics, self._diagnostics):
            self._node.destroy_publisher(publisher)

    def publish(self) -> None:
        """Publish what is due; called every ``STATISTICS_PERIOD_S``."""
        report = self._manager.statistics()
        stamp = self._node.get_clock().now().to_msg()
        message = cache_report_to_msg(report, self._claims.robot_id)
        message.header.stamp = stamp
        self._statistics.publish(message)
        if self._count % _DIAGNOSTICS_EVERY == 0:
            self._listen(time.monotonic_ns())
            array = self._board.filled(report, self._manager.domains.sharing_refused)
            array.header.stamp = stamp
            self._diagnostics.publish(array)
        self._count += 1

    def _listen(self, now_ns: int) -> None:
        """Look for others of this robot's identity; messages without it are not even parsed."""
        while (sample := self._heard.take()) is not None:
            data = sample.message
            if self._own_mark not in data and all(mark in data for mark in self._marks):
                self._hear(deserialize_message(data, DiagnosticArray), now_ns)
        conflict, before = self._claims.conflict(now_ns), self._manager.domains.sharing_refused
        self._manager.domains.sharing_refused = conflict
        if conflict and conflict != before:
            self._node.report(
                IdentityError.error_code,
                f"{conflict}: nothing is shared until each robot has its own",
                severity=FailureEvent.SEVERITY_ERROR,
                detector="identity",
            )
        elif before and not conflict:
            self._node.get_logger().info(
                f"robot_id {self._claims.robot_id!r} is this robot's alone"
            )

    def _hear(self, array: DiagnosticArray, now_ns: int) -> None:
        for status in array.status:
            for value in status.values:
                if value.key == _INSTANCE:
                    name = "/" + status.name.partition(":")[0]
                    self._claims.hear(status.hardware_id, value.value, name, now_ns)


class _Board:
    """The diagnostics of a cache, kept between publications: only the numbers are written anew."""

    def __init__(self, node: str, robot_id: str, instance: str) -> None:
        self._node = node.lstrip("/")
        self._robot_id = robot_id
        self._whole = self._status("cache", ("robot_id", _INSTANCE, *_SUMS, *_TIMES))
        self._whole.values[0].value = robot_id
        self._whole.values[1].value = instance
        self._store = self._status("cache store", _STORE)
        self._layers: dict[tuple[str, str], DiagnosticStatus] = {}
        self._array = DiagnosticArray()

    def filled(self, report: CacheReport, conflict: str) -> DiagnosticArray:
        """Return the array with a report's numbers; the header is not set."""
        whole = self._whole
        whole.level = DiagnosticStatus.ERROR if conflict else DiagnosticStatus.OK
        whole.message = conflict or f"{report.keys} keys answered"
        numbers = [str(getattr(report, name)) for name in _SUMS]
        numbers += [f"{getattr(report, name):.1f}" for name in _TIMES]
        _fill(whole.values[2:], numbers)
        for layer in report.layers:
            self._fill_layer(layer)
        store = report.store
        self._store.level = _level(store)
        self._store.message = store.where
        _fill(self._store.values, [str(getattr(store, name)) for name in _STORE])
        self._array.status = [whole, self._store, *self._layers.values()]
        return self._array

    def _fill_layer(self, report: LayerReport) -> None:
        counters = report.counters
        key = (report.layer, report.domain)
        status = self._layers.get(key)
        if status is None:
            name = f"cache {report.layer} {report.domain}"
            status = self._status(name, (*_OCCUPANCY, *counters.__slots__))
            self._layers[key] = status
        status.message = (
            f"{counters.hits} hits in {counters.decisions}, "
            f"{report.entries} of {report.capacity} entries"
        )
        numbers = [str(getattr(report, name)) for name in _OCCUPANCY]
        numbers += [str(getattr(counters, name)) for name in counters.__slots__]
        _fill(status.values, numbers)

    def _status(self, name: str, keys: tuple[str, ...]) -> DiagnosticStatus:
        return DiagnosticStatus(
            name=f"{self._node}: {name}",
            hardware_id=self._robot_id,
            level=DiagnosticStatus.OK,
            values=[KeyValue(key=key) for key in keys],
        )


def _level(store: StoreReport) -> bytes:
    well = store.stored or store == NOT_STORED  # which somebody asked for
    return DiagnosticStatus.OK if well else DiagnosticStatus.WARN


def _fill(values: list[KeyValue], numbers: list[str]) -> None:
    for value, number in zip(values, numbers, strict=True):
        value.value = number


def _publisher(node: StageNode[Any], topic: topics.Topic) -> Any:
    return node.create_publisher(topic.type, topic.name, topic.profile())
