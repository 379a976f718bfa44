"""DDS events of polled readers: missed deadlines, lost leases, profiles that don't match."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from typing import Any

from rclpy.event_handler import EventHandler, QoSSubscriptionEventType
from rclpy.node import Node
from rclpy.qos import qos_policy_name_from_kind

from kv_action_router.monitoring.samples import TransportFault, TransportSample
from kv_action_router.ros.streams import LatestReader

_CAPACITY = 1000  # events; older ones are dropped


class _Handler(EventHandler):
    """A handler that may be destroyed while the executor still has an event of it in its queue."""

    closed = False

    def take_data(self) -> Any:
        """Return the event; None once the handler is closed."""
        return None if self.closed else super().take_data()


class TransportEvents:
    """Collects DDS events on the executor for a thread that polls the readers.

    The readers must not stand in a wait set: a pending event would end every wait on its
    subscription at once.

    Invariant: a handler is served by the node's executor from :meth:`watch` to :meth:`destroy`.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._handlers: list[_Handler] = []
        self._queue: deque[TransportSample] = deque(maxlen=_CAPACITY)

    def watch(self, reader: LatestReader[Any], topic: str, *, timed: bool) -> None:
        """Listen to a reader's events.

        Args:
            reader: that is polled.
            topic: name that its events carry.
            timed: whether its profile has a deadline or a lease to watch.
        """

        def deadline(info: Any) -> None:
            self._add(TransportFault.DEADLINE, topic, info.total_count_change)

        def liveliness(info: Any) -> None:
            self._add(TransportFault.LEASE, topic, info.not_alive_count_change)

        def incompatible(info: Any) -> None:
            policy = qos_policy_name_from_kind(info.last_policy_kind)
            self._add(
                TransportFault.INCOMPATIBLE, topic, info.total_count_change, f"policy {policy}"
            )

        kind = QoSSubscriptionEventType
        callbacks = {kind.RCL_SUBSCRIPTION_REQUESTED_INCOMPATIBLE_QOS: incompatible}
        if timed:
            callbacks[kind.RCL_SUBSCRIPTION_REQUESTED_DEADLINE_MISSED] = deadline
            callbacks[kind.RCL_SUBSCRIPTION_LIVELINESS_CHANGED] = liveliness
        for event_type, callback in callbacks.items():
            handler = _Handler(
                callback_group=self._node.default_callback_group,
                callback=callback,
                event_type=event_type,
                parent_impl=reader.subscription.handle,
            )
            self._node.add_waitable(handler)
            self._handlers.append(handler)

    def take(self) -> Iterator[TransportSample]:
        """Hand out the events since the last call, in order."""
        while self._queue:
            yield self._queue.popleft()

    def destroy(self) -> None:
        """Destroy the handlers; their readers must still be there."""
        for handler in self._handlers:
            self._node.remove_waitable(handler)
            handler.closed = True
            handler.destroy()
        self._handlers.clear()
        self._queue.clear()

    def _add(self, fault: TransportFault, topic: str, count: int, detail: str = "") -> None:
        self._queue.append(TransportSample(fault, topic, count, detail, time.monotonic_ns()))
