"""The injector's command topic: one message, filled in place and published by the control loop."""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from typing import Any

from rclpy.node import Node

from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.outputs import make_output
from kv_action_router.ros import qos
from kv_action_router.ros.command_watch import CommandWatch


class CommandSender:
    """Owns output adapter, message and publisher.

    Attributes:
        topic: relative name of the command topic.
        watch: looks at who else is on it.
    """

    def __init__(self, node: Node, config: InjectionConfig, joints: Sequence[str]) -> None:
        """Create the publisher.

        Raises:
            OutputError: the output does not fit the joints, or nothing would brake the drives.
        """
        self._node = node
        self._output = make_output(config, joints)
        self.topic = self._output.topic
        self._message = _new(self._output.message_type)
        self._output.prepare(self._message, _new)
        self._publisher = node.create_publisher(
            type(self._message), self._output.topic, qos.command()
        )
        self.watch = CommandWatch(node, self._publisher, self._output.message_type)

    def send(self, values: Sequence[float]) -> int:
        """Publish one command (n,); return CLOCK_MONOTONIC when it was handed over [ns]."""
        message = self._message
        self._output.fill(message, values)
        if self._output.stamped:
            stamp = message.header.stamp
            stamp.sec, stamp.nanosec = divmod(time.time_ns(), 1_000_000_000)
        self._publisher.publish(message)
        return time.monotonic_ns()

    def destroy(self) -> None:
        """Destroy the publisher."""
        self._node.destroy_publisher(self._publisher)


def _new(message_type: str) -> Any:
    package, _, name = message_type.split("/")
    return getattr(importlib.import_module(f"{package}.msg"), name)()
