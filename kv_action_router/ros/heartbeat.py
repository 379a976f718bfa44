"""Signs of life of a managed node."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from rclpy.node import Node

from kv_action_router.msg import Heartbeat as HeartbeatMessage
from kv_action_router.ros.bytes_publisher import BytesPublisher
from kv_action_router.ros.periodic import PeriodicThread
from kv_action_router.ros.qos import HEARTBEAT_PERIOD_MS
from kv_action_router.ros.topics import Topic
from kv_action_router.ros.wire import FieldWriter

_BEAT_NS = (HEARTBEAT_PERIOD_MS - 6) * 1_000_000  # rounds come when they come: rather too soon
_SILENT_NS = (HEARTBEAT_PERIOD_MS + 5) * 1_000_000  # after it the heartbeat's own thread steps in
_FIELDS = ("node", "monotonic_ns", "sequence", "lifecycle_state", "epoch")


class Heartbeat:
    """Sends a sign of life every 20 ms.

    The loop that does the node's work sends it behind its rounds (:meth:`beat`): a thread that
    wakes up for a heartbeat alone costs three times as much. Such a thread steps in while no loop
    runs, or when a round takes long.

    Invariant: nothing is sent while a loop of the node hangs.
    """

    def __init__(
        self,
        node: Node,
        topic: Topic,
        *,
        state: Callable[[], tuple[int, int]],
        has_loops: Callable[[], bool],
        hangs: Callable[[int], bool],
        on_error: Callable[[Exception], None],
        priority: int,
    ) -> None:
        """Create publisher and thread, and begin.

        Args:
            node: whose life it is.
            topic: of its heartbeats.
            state: returns lifecycle state and epoch.
            has_loops: whether a loop runs that sends the heartbeats.
            hangs: whether a loop hangs, at CLOCK_MONOTONIC [ns].
            on_error: receives what went wrong.
            priority: SCHED_FIFO priority of the thread; 0 = the process's.
        """
        self._name = node.get_name()
        self._state = state
        self._has_loops = has_loops
        self._hangs = hangs
        self._on_error = on_error
        self._count = 0
        self._beat_ns = 0
        self._beating = threading.Lock()
        self._writer = FieldWriter(HeartbeatMessage, _FIELDS)
        self._publisher = BytesPublisher(node, topic)
        self._thread = PeriodicThread(
            HEARTBEAT_PERIOD_MS / 1e3,
            self._beat_if_silent,
            on_error,
            name="heartbeat",
            priority=priority,
        )
        self._thread.start()

    def stop(self) -> None:
        """Leave the thread and destroy the publisher; the node's loops must have been joined."""
        self._thread.stop()
        self._publisher.close()

    def beat(self, now_ns: int) -> None:
        """Send a sign of life when one is due; any thread may call this. Never raises."""
        if now_ns - self._beat_ns < _BEAT_NS or not self._beating.acquire(blocking=False):
            return  # the other one is at it
        try:
            if not self._hangs(now_ns):
                self._beat_ns = now_ns
                self._count += 1
                values = (self._name, now_ns, self._count, *self._state())
                self._publisher.publish(self._writer.write(values))
        except Exception as error:
            self._on_error(error)
        finally:
            self._beating.release()

    def _beat_if_silent(self) -> None:
        now = time.monotonic_ns()
        if not self._has_loops() or now - self._beat_ns > _SILENT_NS:
            self.beat(now)
