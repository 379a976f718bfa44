"""The faults that a campaign puts into a moving system, made ready for the bench."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from typing import Any

from kv_action_router.msg import Stop
from kv_action_router.ros import topics
from kv_action_router.ros.fault_bench import FaultBench, Injection
from kv_action_router.simulation.faulty_link import Fault

DURATION = 0.6  # [s]
FROZEN_S = 2.0
JOINT = "shoulder_lift_joint"  # moves on the way to every target
HEARTBEAT_MS = 60.0
MATCHES_MS = 140.0  # a motion goes on 80 ms without a match, and its last chunk 60 ms

# topic -> (after how long its silence can be known [ms], what a report must name)
SILENCES = {
    "joint_states": (20.0, "joint_states"),
    "imu": (50.0, "imu"),
    "wrench": (1e4, ""),
    "drive_state": (1e4, ""),
    "camera/color/image_raw": (300.0, "image"),
    "camera/depth/image_rect_raw": (300.0, "image"),
    "task_key": (MATCHES_MS, "chunk"),
    "cache_match": (MATCHES_MS, "chunk"),
    "trajectory_chunk": (60.0, "chunk"),
    "execution_feedback": (MATCHES_MS, ""),
    "effort_controller/commands": (40.0, "drives"),
    "obstacle_spheres": (1e4, ""),
    "heartbeat/cache_manager": (HEARTBEAT_MS, "cache_manager"),
}
LINK_FAULTS = (Fault.SILENCE, Fault.DELAY, Fault.REORDER, Fault.DUPLICATE, Fault.NAN)
OTHER_FAULTS = {  # of one topic; what each report must name
    "joint_states": ((Fault.FROZEN, "joint_states"), (Fault.SET_BACK, "")),
    "camera/color/image_raw": ((Fault.BLACK, "target"), (Fault.SET_BACK, "")),
    "drive_state": ((Fault.HOT, "joint"),),
}
HEAT_MS = 1000.0  # heat is slow, and its row is held
LOST_TARGET_MS = 300.0  # as of images that do not come
STUCK_MS = 400.0  # the set-point must have gone on by 0.05 rad, at 0.3 rad/s, for 40 ms


def on_link(topic: str, fault: Fault) -> Injection:
    """Return a fault of the proxy before a topic."""
    watchdog_ms, source = SILENCES[topic]
    special = dict(OTHER_FAULTS.get(topic, ()))
    if fault in special:
        source = special[fault]
    elif fault not in (Fault.SILENCE, Fault.DELAY):
        source = ""
    if fault is Fault.BLACK:
        watchdog_ms = LOST_TARGET_MS
    if fault is Fault.HOT:
        watchdog_ms = HEAT_MS
    return Injection(
        f"{topic} {fault}",
        source,
        watchdog_ms,
        FROZEN_S if fault is Fault.FROZEN else DURATION,
        lambda bench: bench.proxy(topic, fault),
        lambda bench: bench.proxy(topic, Fault.NONE),
    )


def together(first: Injection, second: Injection) -> Injection:
    """Return two faults that come and go at the same time."""

    def begin(bench: FaultBench) -> None:
        first.begin(bench)
        second.begin(bench)

    def end(bench: FaultBench) -> None:
        first.end(bench)
        second.end(bench)

    return Injection(
        f"{first.name} + {second.name}",
        "",  # either may hide the other
        max(first.watchdog_ms, second.watchdog_ms),
        max(first.duration, second.duration),
        begin,
        end,
    )


def stuck_joint() -> Injection:
    """Return a joint that no torque moves for a while."""
    return Injection(
        "stuck joint",
        JOINT,
        STUCK_MS,
        DURATION,
        lambda bench: bench.block(JOINT),
        lambda bench: bench.block(""),
        blow=0.05,  # a joint that jams shakes the whole arm
    )


def on_node(node: str, number: signal.Signals) -> Injection:
    """Return a node's being killed, or stopped for half a second."""

    def send(bench: FaultBench, number: signal.Signals) -> None:
        os.kill(bench.supervisor.pids[node], number)

    def end(bench: FaultBench) -> None:
        if number is signal.SIGSTOP:
            send(bench, signal.SIGCONT)

    return Injection(
        f"{node} {number.name}",
        node,
        HEARTBEAT_MS,
        DURATION,
        lambda bench: send(bench, number),
        end,
        node if number is signal.SIGKILL else "",
    )


def restarted(node: str) -> Injection:
    """Return a node's orderly end, and its start behind that."""
    return Injection(
        f"{node} restarted",
        node,
        HEARTBEAT_MS,
        DURATION,
        lambda bench: os.kill(bench.supervisor.pids[node], signal.SIGTERM),
        lambda bench: bench.start_again(node),
        node,
    )


def second_commander() -> Injection:
    """Return a foreign publisher on the command topic."""
    made: list[Any] = []

    def begin(bench: FaultBench) -> None:
        topic = topics.EFFORT_COMMAND
        made.append(bench.node.create_publisher(topic.type, topic.name, topic.profile()))

    def end(bench: FaultBench) -> None:
        bench.node.destroy_publisher(made.pop())

    # 200 ms to be detected, and then the arm comes to rest
    return Injection("second commander", "fault_bench", 200.0, 1.0, begin, end)


def stop_by_anybody() -> Injection:
    """Return a stop that a person engages."""
    message = Stop(engaged=True, source="person", reason="tried out")
    return Injection(
        "stop", "person", 0.0, DURATION, lambda b: b.stop_publisher.publish(message), _nothing
    )


def load_on_all_cores() -> Injection:
    """Return busy processes, twice as many as cores; no report has to name them."""
    busy: list[multiprocessing.Process] = []

    def begin(_: FaultBench) -> None:
        context = multiprocessing.get_context("spawn")
        count = 2 * (os.cpu_count() or 1)
        busy.extend(context.Process(target=_spin, args=(2.0,)) for _ in range(count))
        for process in busy:
            process.start()

    def end(_: FaultBench) -> None:
        for process in busy:
            process.join()

    return Injection("all cores loaded", "", HEARTBEAT_MS, 2.0, begin, end)


def _spin(duration: float) -> None:
    end = time.monotonic() + duration
    while time.monotonic() < end:
        pass


def _nothing(_: FaultBench) -> None:
    pass
