"""A publisher of messages that are serialized already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node

from kv_action_router.ros.topics import Topic


class BytesPublisher:
    """Publishes serialized messages. One thread at a time may use it.

    Invariant: the publisher's handle is held until :meth:`close`.
    """

    def __init__(self, node: Node, topic: Topic) -> None:
        self._node = node
        self._publisher = node.create_publisher(topic.type, topic.name, topic.profile())
        self._handle = self._publisher.handle
        self._handle.__enter__()
        self.publish: Callable[[bytes], None] = self._handle.publish_raw

    @property
    def publisher(self) -> Any:
        """The node's publisher, for questions about its topic."""
        return self._publisher

    def close(self) -> None:
        """Destroy the publisher."""
        self._handle.__exit__(None, None, None)
        self._node.destroy_publisher(self._publisher)
