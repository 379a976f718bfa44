"""Joint states as they come, written down for a program that looks at a system's motion."""

from __future__ import annotations

import numpy as np
from rclpy.node import Node

from kv_action_router.reporting.faults import Motion
from kv_action_router.ros import qos
from kv_action_router.ros.periodic import PeriodicThread
from kv_action_router.ros.streams import DataPlane
from kv_action_router.ros.topics import Topic
from kv_action_router.ros.wire import JointReader

_POLL_S = 0.004


class MotionRecorder:
    """Writes joint states down, on a thread of its own."""

    def __init__(self, node: Node, topic: Topic, joints: tuple[str, ...]) -> None:
        self._plane = DataPlane(node)
        self._reader = self._plane.reader(topic, profile=qos.log_stream(), raw=True)
        self._decode = JointReader()
        self._joints = joints
        self._rows: list[tuple[int, int, list[float], list[float]]] = []
        self._thread = PeriodicThread(_POLL_S, self._take_all, _raise, name="motion")
        self._thread.start()

    @property
    def speed(self) -> float:
        """Speed of the fastest joint in the newest sample [rad/s]."""
        return max(map(abs, self._rows[-1][3])) if self._rows else 0.0

    def clear(self) -> None:
        """Forget what was written down."""
        self._rows = []

    def motion(self) -> Motion:
        """Return what was written down since the last :meth:`clear`."""
        rows, n = list(self._rows), len(self._joints)
        return Motion(
            np.array([row[0] for row in rows], dtype=float),
            np.array([row[1] for row in rows], dtype=float),
            np.array([row[2] for row in rows], dtype=float).reshape(-1, n),
            np.array([row[3] for row in rows], dtype=float).reshape(-1, n),
        )

    def stop(self) -> None:
        """End."""
        self._thread.stop()
        self._plane.destroy()

    def _take_all(self) -> None:
        while (sample := self._reader.take()) is not None:
            reading = self._decode.read(sample.message, sample.receipt_ns)
            places = [reading.names.index(name) for name in self._joints]
            position = [reading.position[place] for place in places]
            velocity = [reading.velocity[place] for place in places]
            self._rows.append((sample.receipt_ns, sample.number, position, velocity))


def _raise(error: Exception) -> None:
    raise error
