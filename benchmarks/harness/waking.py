"""From the start of a system to five active nodes."""

from __future__ import annotations

import time
from pathlib import Path

import rclpy
from lifecycle_msgs.msg import State
from rclpy.node import Node

from harness.domain import in_domain
from kv_action_router.errors import RouterError
from kv_action_router.msg import Heartbeat
from kv_action_router.ros import qos
from kv_action_router.ros.process import make_executor
from kv_action_router.ros.supervisor import Supervisor
from kv_action_router.ros.system import System
from kv_action_router.ros.topics import HEARTBEATS

_LONGEST_S = 120.0
_SPIN_S = 0.02


class Wakening:
    """Notes when each node's heartbeat first says that it is active."""

    def __init__(self, node: Node) -> None:
        self.seen: dict[str, float] = {}
        self._subscriptions_kept = [
            node.create_subscription(Heartbeat, topic.name, self._on_heartbeat, qos.heartbeat())
            for topic in HEARTBEATS.values()
        ]

    def _on_heartbeat(self, message: Heartbeat) -> None:
        if message.lifecycle_state == State.PRIMARY_STATE_ACTIVE:
            self.seen.setdefault(message.node, time.monotonic())


def wake(system: System, logs: Path) -> dict[str, float]:
    """Start a system, end it when all nodes are active; return when each was, from the start [s].

    Raises:
        RouterError: something died, or they were not active in time.
    """
    with in_domain():
        context = rclpy.Context()
        rclpy.init(args=[], context=context)
        node = rclpy.create_node("waking", context=context)
        executor = make_executor(context)
        executor.add_node(node)
        wakening = Wakening(node)
        supervisor = Supervisor([system], logs)
        begin = time.monotonic()
        supervisor.start()
        try:
            while len(wakening.seen) < len(HEARTBEATS):
                executor.spin_once(timeout_sec=_SPIN_S)
                for death in supervisor.deaths():
                    raise RouterError(str(death))
                if time.monotonic() - begin > _LONGEST_S:
                    missing = sorted(HEARTBEATS.keys() - wakening.seen.keys())
                    raise RouterError(f"not active after {_LONGEST_S:g} s: {', '.join(missing)}")
        finally:
            supervisor.stop()
            executor.shutdown()
            node.destroy_node()
            context.try_shutdown()
    return {name: seen - begin for name, seen in wakening.seen.items()}
