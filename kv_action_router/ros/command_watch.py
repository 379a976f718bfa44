"""Who else is on the command topic: foreign publishers, missing or mismatched subscribers.

Runs on the executor thread; asks the graph, which costs the control loop nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rclpy.node import Node

UNKNOWN_NODE = "_NODE_NAME_UNKNOWN_"  # rcl's name while the node is unheard of


@dataclass(frozen=True)
class Finding:
    """What is wrong with the command topic.

    Attributes:
        foreign: publisher that does not belong to us; empty = none.
        trouble: why our commands do not arrive; empty = they can.
    """

    foreign: str = ""
    trouble: str = ""


class CommandWatch:
    """Looks at the command topic's endpoints.

    Invariant: our own publisher is never called foreign, nor an endpoint whose node is not known
    yet.
    """

    def __init__(self, node: Node, publisher: Any, message_type: str) -> None:
        self._node = node
        self._publisher = publisher
        self._topic: str = publisher.topic_name
        self._type = message_type
        self._own = _full_name(node.get_namespace(), node.get_name())

    def look(self) -> Finding:
        """Return what is wrong now."""
        return Finding(self._foreign(), self._trouble())

    def _foreign(self) -> str:
        if self._node.count_publishers(self._topic) < 2:
            return ""
        for endpoint in self._node.get_publishers_info_by_topic(self._topic):
            name = _full_name(endpoint.node_namespace, endpoint.node_name)
            if name != self._own and endpoint.node_name != UNKNOWN_NODE:
                return name
        return ""

    def _trouble(self) -> str:
        if self._publisher.get_subscription_count() > 0:
            return ""
        listeners = self._node.get_subscriptions_info_by_topic(self._topic)
        for endpoint in listeners:
            who = _full_name(endpoint.node_namespace, endpoint.node_name)
            if endpoint.topic_type != self._type:
                return (
                    f"{who} wants {endpoint.topic_type} on {self._topic}, commands are "
                    f"{self._type}: choose another output"
                )
        if listeners:
            return f"the subscriber of {self._topic} asks for another quality of service"
        return f"nobody subscribes to {self._topic}: is the robot's controller running?"


def _full_name(namespace: str, name: str) -> str:
    return f"{namespace.rstrip('/')}/{name}"
