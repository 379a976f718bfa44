"""The node ``fault_proxy``: stands between the writer of a topic and its readers, and breaks it.

A bring-up puts it on any topic: the writer's process publishes on ``<topic>/unfaulted`` by a remap,
the proxy passes that on under the topic's own name (:func:`behind_proxy`). What it does to the
messages is said on ``fault_proxy/fault``: ``<topic> <fault>``, the faults of
``simulation/faulty_link.py``.

Subscriptions: ``fault_proxy/fault``, ``<topic>/unfaulted``. Publishers: the topics.
Parameters: :class:`ProxyConfig`.
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import Any

from rclpy.node import Node
from std_msgs.msg import String

from kv_action_router import realtime
from kv_action_router.configuration import Configuration, parameter
from kv_action_router.errors import ConfigError, InputError
from kv_action_router.ros import parameters, topics
from kv_action_router.ros.altered_messages import altered
from kv_action_router.ros.bytes_publisher import BytesPublisher
from kv_action_router.ros.process import run
from kv_action_router.ros.streams import DataLoop, DataPlane, LatestReader
from kv_action_router.ros.system import CAMERA, SIMULATION, Process, System
from kv_action_router.ros.topics import Topic
from kv_action_router.simulation.faulty_link import FaultyLink, fault_of

NAME = "fault_proxy"
UNFAULTED = "unfaulted"
_PERIOD_NS = 2_000_000  # a delayed message is at most that much later
_QUEUE = 50

# Topics with one writer whose process does not read them itself: those can be remapped.
WRITERS = {
    topic.name: (topic, writer)
    for topic, writer in (
        (topics.JOINT_STATES, SIMULATION),
        (topics.WRENCH, SIMULATION),
        (topics.IMU, SIMULATION),
        (topics.DRIVE_STATE, SIMULATION),
        (topics.COLOR_IMAGE, CAMERA),
        (topics.DEPTH_IMAGE, CAMERA),
        (topics.TASK_KEY, "task_key_encoder"),
        (topics.OBSTACLE_SPHERES, "task_key_encoder"),
        (topics.CACHE_MATCH, "cache_manager"),
        (topics.EXECUTION_VALUE, "cache_manager"),
        (topics.TRAJECTORY_CHUNK, "behavior_synthesizer"),
        (topics.TASK_STATE, "behavior_synthesizer"),
        (topics.EXECUTION_FEEDBACK, "actuator_injector"),
        (topics.EFFORT_COMMAND, "actuator_injector"),
        (topics.CONDITION, "failure_monitor"),
        *((topic, node) for node, topic in topics.HEARTBEATS.items()),
    )
}


@dataclass(frozen=True)
class ProxyConfig(Configuration):
    """Parameters of the proxy."""

    topics: tuple[str, ...] = parameter(("joint_states",), "topics that it stands before")
    scheduling_priority: int = parameter(
        45, "SCHED_FIFO priority of the process; 0 = normal", minimum=0, maximum=99
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.topics:
            if name not in WRITERS:
                raise ConfigError("topics", f"of {', '.join(WRITERS)}", name)


def behind_proxy(system: System, *names: str) -> System:
    """Return a system of separate processes, with some topics behind a fault proxy.

    Raises:
        ConfigError: a topic cannot be put behind one, or its writer is no process of the system.
    """
    config = ProxyConfig(topics=names)
    for name in names:
        _, writer = WRITERS[name]
        system = system.with_remaps(writer, {name: f"{name}/{UNFAULTED}"})
    values = {**dataclasses.asdict(config), "topics": list(names)}
    return system.with_process(
        Process(NAME, NAME, (NAME,), values, namespace=system.processes[0].namespace)
    )


class FaultProxy(Node):
    """One data thread passes everything on; faults are told by the executor.

    Invariant: the executor replaces the fault of a link, nobody but the data thread uses the link.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(NAME, **arguments)
        parameters.declare(self, ProxyConfig)
        config = parameters.load(self, ProxyConfig)
        if refusal := realtime.schedule_process(config.scheduling_priority):
            self.get_logger().warning(refusal)
        self._plane = DataPlane(self)
        self._links: dict[str, FaultyLink[bytes]] = {}
        self._ways: list[tuple[LatestReader[Any], FaultyLink[bytes], BytesPublisher]] = []
        for name in config.topics:
            self._add(WRITERS[name][0])
        self.create_subscription(String, topics.FAULT.name, self._on_fault, topics.FAULT.profile())
        self._loop = DataLoop(
            self._plane,
            [reader for reader, _, _ in self._ways],
            self._pass_on,
            self._failed,
            period_ns=_PERIOD_NS,
            name="proxy",
        )
        self._loop.start()

    def _add(self, topic: Topic) -> None:
        profile = topic.profile()
        deep = dataclasses.replace(topic, name=f"{topic.name}/{UNFAULTED}")
        profile.depth = max(profile.depth, _QUEUE)
        reader = self._plane.reader(deep, profile=profile, raw=True)
        link: FaultyLink[bytes] = FaultyLink(lambda fault, data: altered(fault, topic.type, data))
        self._links[topic.name] = link
        self._ways.append((reader, link, BytesPublisher(self, topic)))

    def shut_down(self, reason: str) -> None:
        """Pass nothing on any more."""
        self._loop.stop()
        for _, _, publisher in self._ways:
            publisher.close()
        self._plane.destroy()

    def _pass_on(self, now_ns: int) -> None:
        for reader, link, publisher in self._ways:
            for message in link.due(now_ns):
                publisher.publish(message)
            while (sample := reader.take()) is not None:
                for message in link.take(sample.message, time.monotonic_ns()):
                    publisher.publish(message)

    def _on_fault(self, message: String) -> None:
        name, _, kind = message.data.partition(" ")
        try:
            if name not in self._links:
                raise InputError("topic", f"one of {', '.join(self._links)}", name)
            self._links[name].fault = fault_of(kind)
        except InputError as error:
            self.get_logger().error(f"fault refused: {error}")
            return
        self.get_logger().info(f"{name}: {kind}")

    def _failed(self, error: Exception) -> None:
        self.get_logger().error(f"not passed on: {type(error).__name__}: {error}")


def main(arguments: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM; return the exit code."""
    return run(lambda: [FaultProxy()], arguments)


if __name__ == "__main__":
    raise SystemExit(main())
