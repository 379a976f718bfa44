"""The hops of a decision with nothing in them: one process for each role, or the soft ones in one.

    source -> encoder -> manager -> synthesizer -> injector -> source

Same topics, message sizes, profiles, transports, priorities, data planes and wake-ups as those of
the nodes; a callback copies times and publishes. Run by ``floor.py``.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from array import array
from collections.abc import Callable
from pathlib import Path

import rclpy
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from harness import messages, rows
from harness.phases import PERIOD_NS
from kv_action_router import realtime
from kv_action_router.contracts import Stage
from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.loop import DeadlineLoop
from kv_action_router.ros import qos, topics
from kv_action_router.ros.bytes_publisher import BytesPublisher
from kv_action_router.ros.streams import DataLoop, DataPlane, LatestReader

SOFT = ("encoder", "manager", "synthesizer")
ROLES = ("source", *SOFT, "injector")
WARM_UP = 100  # images after the first chunk was seen
_DISCOVERY_S = 20.0
_ENDS = (signal.SIGINT, signal.SIGTERM)


def forward(
    node: Node, source: topics.Topic, target: topics.Topic, stage: Stage
) -> Callable[[], None]:
    """Pass each message on as the next one, with the time of the stage; return what ends it."""
    plane = DataPlane(node)
    reader = plane.reader(source, raw=True)
    publisher = BytesPublisher(node, target)
    taken = messages.key() if stage is Stage.MATCH else messages.match()
    made = messages.match() if stage is Stage.MATCH else messages.chunk()

    def on_wake(_: int) -> None:
        if (sample := reader.take()) is not None:
            times = taken.read(sample.message)
            publisher.publish(made.write(_with(times, stage, time.monotonic_ns())))

    return _loop(plane, reader, on_wake, publisher)


def encode(node: Node) -> Callable[[], None]:
    """Answer each image pair with a key; return what ends it."""
    plane = DataPlane(node)
    color = plane.reader(topics.COLOR_IMAGE, profile=qos.sensor())
    depth = plane.reader(topics.DEPTH_IMAGE, profile=qos.sensor())
    publisher = BytesPublisher(node, topics.TASK_KEY)
    made = messages.key()

    def on_wake(_: int) -> None:
        depth.take()
        if (sample := color.take()) is not None:
            publisher.publish(made.write((sample.origin_ns, time.monotonic_ns(), 0, 0, 0)))

    return _loop(plane, color, on_wake, publisher)


def inject(node: Node, output: Path) -> Callable[[], None]:
    """Send a command each 2 ms and note the first one after each chunk; the end writes the rows."""
    config = InjectionConfig()
    plane = DataPlane(node)
    chunks = plane.reader(topics.TRAJECTORY_CHUNK, profile=qos.command(), raw=True)
    joints = plane.reader(topics.JOINT_STATES, profile=qos.sensor(), raw=True)
    publisher = BytesPublisher(node, topics.EFFORT_COMMAND)
    taken, command = messages.chunk(), messages.command()
    found = array("q")

    def tick(_: int) -> None:
        joints.take()
        sample = chunks.take()
        publisher.publish(command)
        if sample is not None:
            found.extend(_with(taken.read(sample.message), Stage.COMMAND, time.monotonic_ns()))

    loop = DeadlineLoop(config.period_ns, tick, _raise, priority=_above(config.loop_priority))
    loop.start()

    def end() -> None:
        loop.stop()
        rows.save(output, [found[at : at + 5] for at in range(0, len(found), 5)])
        publisher.close()
        plane.destroy()

    return end


def feed(node: Node, frames: int, mark: Path) -> None:
    """Publish image pairs, taking commands as a drive does; return when all are sent.

    Args:
        node: that publishes.
        frames: that count, after a warm-up that begins when the first chunk is seen.
        mark: file that tells from when on images count, CLOCK_MONOTONIC [ns].
    """
    depth = BytesPublisher(node, topics.DEPTH_IMAGE)
    color = BytesPublisher(node, topics.COLOR_IMAGE)
    plane, proof = DataPlane(node), DataPlane(node)
    commands = plane.reader(topics.EFFORT_COMMAND, raw=True)
    chunks = proof.reader(topics.TRAJECTORY_CHUNK, raw=True)
    pixels, distances = messages.color(), messages.depth()

    def send(count: int) -> None:
        due = time.monotonic_ns() + PERIOD_NS
        for _ in range(count):
            wait = due - time.monotonic_ns()
            if wait > 0:
                time.sleep(wait * 1e-9)
            depth.publish(distances)
            color.publish(pixels)
            while commands.take() is not None:
                pass
            due += PERIOD_NS

    until = time.monotonic() + _DISCOVERY_S
    while chunks.take() is None and time.monotonic() < until:
        send(10)
    proof.destroy()  # it must not cost the synthesizer anything while it counts
    send(WARM_UP)
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.write_text(str(time.monotonic_ns()))
    send(frames)
    time.sleep(0.1)  # what is under way arrives
    plane.destroy()


def _loop(
    plane: DataPlane,
    reader: LatestReader,
    on_wake: Callable[[int], None],
    publisher: BytesPublisher,
) -> Callable[[], None]:
    loop = DataLoop(plane, (reader,), on_wake, _raise)
    loop.start()

    def end() -> None:
        loop.stop()
        publisher.close()
        plane.destroy()

    return end


def _with(times: tuple[int, ...], stage: Stage, now_ns: int) -> tuple[int, ...]:
    return (*times[:stage], now_ns, *times[stage + 1 :])


def _above(steps: int) -> int:
    return os.sched_getparam(0).sched_priority + steps if realtime.is_realtime() else 0


def _raise(error: Exception) -> None:
    raise error


def main() -> int:
    """Run the roles of a command line until SIGINT or SIGTERM; the source until it has sent all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("roles", nargs="+", choices=ROLES)
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--priority", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("rows.npy"))
    options = parser.parse_args()
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)  # inherited by all threads; taken below
    realtime.schedule_process(options.priority)
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    started = []
    nodes = [rclpy.create_node(f"floor_{role}") for role in options.roles]
    for role, node in zip(options.roles, nodes, strict=True):
        if role == "source":
            realtime.rest_garbage()
            feed(node, options.frames, options.output.with_suffix(".begin"))
            return 0
        if role == "encoder":
            started.append(encode(node))
        elif role == "manager":
            started.append(forward(node, topics.TASK_KEY, topics.CACHE_MATCH, Stage.MATCH))
        elif role == "synthesizer":
            started.append(forward(node, topics.CACHE_MATCH, topics.TRAJECTORY_CHUNK, Stage.CHUNK))
        else:
            started.append(inject(node, options.output))
    realtime.rest_garbage()
    signal.sigwait(_ENDS)
    for end in started:
        end()
    for node in nodes:
        node.destroy_node()
    rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
