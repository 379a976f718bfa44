"""The injector's command topic: one message, filled in place and published by the control loop.

Where nothing but the numbers changes, the message is serialized once and the numbers are written
into its bytes: a third of what publishing the message costs.
"""

from __future__ import annotations

import importlib
import struct
import sys
import time
from collections.abc import Sequence
from typing import Any

from rclpy.node import Node
from rclpy.serialization import serialize_message

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
        self._bytes = self._serialize(len(joints))
        self._numbers = struct.Struct(f"<{len(joints)}d")

    def send(self, values: Sequence[float]) -> int:
        """Publish one command (n,); return CLOCK_MONOTONIC when it was handed over [ns]."""
        if self._bytes is not None:
            data, offset = self._bytes
            self._numbers.pack_into(data, offset, *values)
            self._publisher.publish(bytes(data))
            return time.monotonic_ns()
        message = self._message
        self._output.fill(message, values)
        if self._output.stamped:
            stamp = message.header.stamp
            stamp.sec, stamp.nanosec = divmod(time.time_ns(), 1_000_000_000)
        self._publisher.publish(message)
        return time.monotonic_ns()

    def _serialize(self, n: int) -> tuple[bytearray, int] | None:
        """Return the serialized message and where its numbers begin, or None if that varies."""
        if self._output.stamped or sys.byteorder != "little":
            return None
        marks = [1.5e300 * (1.0 + index * 2.0**-20) for index in range(n)]  # no command is like it
        self._output.fill(self._message, marks)
        data = bytearray(serialize_message(self._message))
        pattern = struct.pack(f"<{n}d", *marks)
        if data.count(pattern) != 1:
            return None  # not side by side, or big-endian
        return data, data.find(pattern)

    def destroy(self) -> None:
        """Destroy the publisher."""
        self._node.destroy_publisher(self._publisher)


def _new(message_type: str) -> Any:
    package, _, name = message_type.split("/")
    return getattr(importlib.import_module(f"{package}.msg"), name)()
