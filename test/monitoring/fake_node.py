"""A process that gives signs of life for one node, and does nothing else.

Arguments: name of the node, its lifecycle state.
"""

from __future__ import annotations

import sys
import time

import rclpy
from rclpy.node import Node

from kv_action_router.msg import Heartbeat
from kv_action_router.ros.topics import HEARTBEATS


def main(name: str, state: int) -> None:
    """Beat every 20 ms until somebody ends the process."""
    rclpy.init()
    node = Node(name)
    topic = HEARTBEATS[name]
    publisher = node.create_publisher(topic.type, topic.name, topic.profile())
    message = Heartbeat(node=name, lifecycle_state=state)
    while True:
        message.monotonic_ns = time.monotonic_ns()
        message.sequence += 1
        publisher.publish(message)
        time.sleep(0.020)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
