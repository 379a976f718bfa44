"""The injector's command topic, written as bytes and published by the control loop."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from rclpy.node import Node

from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.outputs import Output, make_output
from kv_action_router.ros import qos
from kv_action_router.ros.bytes_publisher import BytesPublisher
from kv_action_router.ros.command_watch import CommandWatch
from kv_action_router.ros.stamping import stamp_clock
from kv_action_router.ros.topics import Topic
from kv_action_router.ros.wire import FieldWriter

_WRAP = 1 << 32
_STAMP = ("header.stamp.sec", "header.stamp.nanosec")


class CommandWriter:
    """Serializes the commands of one output.

    Attributes:
        kind: class of the messages.
    """

    def __init__(self, output: Output, clock: Callable[[], int] = time.time_ns) -> None:
        """Prepare; ``clock`` [ns] is what commands are stamped with, where they are."""
        self._clock = clock
        message = _new(output.message_type)
        output.prepare(message, _new)
        self.kind = type(message)
        self._stamped = output.stamped
        self._says_when = bool(output.sent_field)
        self._whole = len(output.fields) == 1
        names = (*_STAMP, *output.fields) if output.stamped else output.fields
        if self._says_when:
            names = (output.sent_field, *names)
        self._writer = FieldWriter(self.kind, names, message)

    def write(self, values: Sequence[float]) -> bytes:
        """Return the message of one command (n,)."""
        command = (values,) if self._whole else values
        if self._stamped:
            command = (*divmod(self._clock(), 1_000_000_000), *command)
        if self._says_when:
            command = (time.monotonic_ns() // 1000 % _WRAP or 1, *command)
        return self._writer.write(command)


class CommandSender:
    """Owns output adapter, writer and publisher.

    Attributes:
        topic: relative name of the command topic.
        watch: looks at who else is on it.
    """

    def __init__(self, node: Node, config: InjectionConfig, joints: Sequence[str]) -> None:
        """Create the publisher.

        Raises:
            OutputError: the output does not fit the joints, or nothing would brake the drives.
        """
        output = make_output(config, joints)
        self.topic = output.topic
        self._writer = CommandWriter(output, stamp_clock(node))
        self._publisher = BytesPublisher(node, Topic(self.topic, self._writer.kind, qos.command))
        self.watch = CommandWatch(node, self._publisher.publisher, output.message_type)

    def send(self, values: Sequence[float]) -> int:
        """Publish one command (n,); return CLOCK_MONOTONIC when it was handed over [ns]."""
        self._publisher.publish(self._writer.write(values))
        return time.monotonic_ns()

    def destroy(self) -> None:
        """Destroy the publisher."""
        self._publisher.close()


def _new(message_type: str) -> Any:
    package, _, name = message_type.split("/")
    return getattr(importlib.import_module(f"{package}.msg"), name)()
