"""DDS events of polled readers: missed deadlines, lost leases, profiles that don't match."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from rclpy.event_handler import QoSSubscriptionEventType
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.qos import qos_policy_name_from_kind

from kv_action_router.monitoring.samples import TransportFault, TransportSample
from kv_action_router.ros.streams import LatestReader

_DEADLINE = QoSSubscriptionEventType.RCL_SUBSCRIPTION_REQUESTED_DEADLINE_MISSED
_LIVELINESS = QoSSubscriptionEventType.RCL_SUBSCRIPTION_LIVELINESS_CHANGED
_INCOMPATIBLE = QoSSubscriptionEventType.RCL_SUBSCRIPTION_REQUESTED_INCOMPATIBLE_QOS


class _Watched(NamedTuple):
    """One kind of event of one reader."""

    topic: str
    fault: TransportFault
    handle: Any


class TransportEvents:
    """Polls the DDS events of readers that stand in no wait set.

    A pending event would end every wait on its subscription at once. On the events executor such
    handlers are no use either: when one is removed while an event of it is queued, rclpy frees a
    Python object without holding the GIL, and the process dies.

    Used by one thread at a time.
    """

    def __init__(self) -> None:
        self._watched: list[_Watched] = []

    def watch(self, reader: LatestReader[Any], topic: str, *, timed: bool) -> None:
        """Look at a reader's events from now on.

        Args:
            reader: that is polled.
            topic: name that its events carry.
            timed: whether its profile has a deadline or a lease to watch.
        """
        kinds = [(TransportFault.INCOMPATIBLE, _INCOMPATIBLE)]
        if timed:
            kinds += [(TransportFault.DEADLINE, _DEADLINE), (TransportFault.LEASE, _LIVELINESS)]
        subscription = reader.subscription.handle
        for fault, kind in kinds:
            with subscription:
                handle = _rclpy.EventHandle(subscription, kind)
            self._watched.append(_Watched(topic, fault, handle))

    def take(self) -> Iterator[TransportSample]:
        """Hand out what happened since the last call."""
        for topic, fault, handle in self._watched:
            with handle:
                info = handle.take_event()
            if info is None:
                continue
            if fault is TransportFault.LEASE:
                count, detail = info.not_alive_count_change, ""
            elif fault is TransportFault.DEADLINE:
                count, detail = info.total_count_change, ""
            else:
                count = info.total_count_change
                if count > 0:
                    detail = f"policy {qos_policy_name_from_kind(info.last_policy_kind)}"
            if count > 0:
                yield TransportSample(fault, topic, count, detail, time.monotonic_ns())

    def destroy(self) -> None:
        """Let go of the events; the readers must still be there."""
        for watched in self._watched:
            watched.handle.destroy_when_not_in_use()
        self._watched.clear()
