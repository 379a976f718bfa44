"""Kills a node of a running, simulated system while the arm moves, and watches what happens.

    start -> wait until ready -> run a task -> wait until the arm is fast -> kill -9 -> watch

The time to rest is measured on ``joint_states`` as received here (CLOCK_MONOTONIC): what the drives
report, not what the injector believes.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from rclpy.node import Node

from kv_action_router.caching.store.location import IN_MEMORY
from kv_action_router.errors import RouterError
from kv_action_router.monitoring.config import MonitorConfig
from kv_action_router.msg import FailureEvent, Stop
from kv_action_router.reporting.kills import KillRecord, witnesses
from kv_action_router.reporting.records import RunRecord
from kv_action_router.reporting.rest import SpeedLog
from kv_action_router.ros import qos
from kv_action_router.ros.arguments import Arguments
from kv_action_router.ros.observer import RunObserver
from kv_action_router.ros.periodic import PeriodicThread
from kv_action_router.ros.readiness import wait_until_ready
from kv_action_router.ros.running_system import running_system
from kv_action_router.ros.streams import DataPlane
from kv_action_router.ros.supervisor import Supervisor
from kv_action_router.ros.system import SYSTEMS
from kv_action_router.ros.task_client import TaskClient, TimeOutError
from kv_action_router.ros.topics import FAILURE_EVENT, JOINT_STATES, STOP
from kv_action_router.ros.wire import JointReader

TASK = "touch_target"
# [m] The approach takes 3 s, and its fastest joint is the elbow, 0.87 rad: with the shoulder's the
# lowest acceleration limit, so that braking takes longest.
TARGET = (0.365, 0.0)
VELOCITY_SHARE = 0.265  # the elbow's speed rises to 0.49 rad/s
REST_SPEED = 0.01  # [rad/s]
_HELD_NS = 300_000_000  # that long at rest is at rest for good
_TASK_S = 30.0
_MOTION_S = 10.0
_START_S = 60.0
_REST_S = 5.0
_NAMED_S = 2.0
_MARGIN_S = 0.5
_POLL_S = 0.004
_ATTEMPTS = 3


class SpeedRecorder:
    """Writes down the speed of the fastest joint, on a thread of its own."""

    def __init__(self, node: Node) -> None:
        self.log = SpeedLog()
        self._plane = DataPlane(node)
        self._reader = self._plane.reader(JOINT_STATES, profile=qos.log_stream(), raw=True)
        self._decode = JointReader()
        self._thread = PeriodicThread(_POLL_S, self._take_all, _raise, name="speeds")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and let go of the stream."""
        self._thread.stop()
        self._plane.destroy()

    def _take_all(self) -> None:
        newest = self.log.newest
        last_ns = newest[0] if newest else 0
        while (sample := self._reader.take()) is not None:
            velocity = self._decode.read(sample.message, sample.receipt_ns).velocity
            last_ns = max(last_ns, sample.receipt_ns)
            self.log.add(last_ns, max(map(abs, velocity)))


def kill_while_moving(
    node: str, log_folder: Path, *, speed: float, controller: str = "effort"
) -> KillRecord:
    """Start a UR5e's system in simulation, kill a node while the arm moves, end the rest.

    On a busy machine the watchdogs may stop the arm before it is fast. That is not what is looked
    at here: the system is started anew then, twice at most.

    Args:
        node: name of its process, too.
        log_folder: where the processes' output goes.
        speed: of the fastest joint at which it is killed [rad/s], 0.48 at most.
        controller: command interface of the drives.

    Raises:
        RouterError: the system did not come up, or the arm did not move.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _kill_once(node, log_folder / f"attempt_{attempt}", speed, controller)
        except RouterError:
            if attempt == _ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def _kill_once(node: str, log_folder: Path, speed: float, controller: str) -> KillRecord:
    system = SYSTEMS["ur5e"](
        Arguments(controller=controller, store_path=IN_MEMORY)
    ).with_parameters("behavior_synthesizer", {"velocity_share": VELOCITY_SHARE})
    untidy: list[str] = []
    with running_system(system, log_folder, "node_kills") as (supervisor, client_node, executor):
        kill = _Kill(node, supervisor, client_node, executor)
        try:
            kill.prepare()
            kill.strike(speed)
            kill.watch()
            supervisor.stop(untidy.append)
            return kill.record(controller, untidy)
        finally:
            kill.end()


class _Kill:
    def __init__(self, victim: str, supervisor: Supervisor, node: Node, executor: Any) -> None:
        self._victim = victim
        self._supervisor = supervisor
        self._node = node
        self._client = TaskClient(node, executor)
        self._observer: RunObserver | None = RunObserver(node, RunRecord())
        self._recorder = SpeedRecorder(node)
        self._killed_ns = 0
        self._rest_ns: int | None = None
        self._speed = 0.0
        self._named_ms: dict[str, float] = {}
        self._died: list[str] = []
        self._stop_reason = ""
        self._subscriptions = (
            node.create_subscription(
                FailureEvent, FAILURE_EVENT.name, self._on_failure, qos.event()
            ),
            node.create_subscription(Stop, STOP.name, self._on_stop, qos.latched()),
        )
        self._observer.start()
        self._recorder.start()

    def prepare(self) -> None:
        """Wait until the system is ready, and put the target far away."""
        assert self._observer is not None
        wait_until_ready(self._observer, self._client, self._all_is_well)
        self._leave_observer()
        settled = time.monotonic() + MonitorConfig().settle + _MARGIN_S
        self._client.wait(  # the monitor judges no heartbeat before
            lambda: time.monotonic() >= settled,
            _START_S,
            lambda: "the monitor to settle",
            self._all_is_well,
        )
        self._client.place_target(*TARGET)

    def strike(self, speed: float) -> None:
        """Run a task and kill the victim once a joint is as fast as that [rad/s]."""
        log = self._recorder.log
        self._client.begin(TASK, _TASK_S, self._all_is_well)
        self._client.wait(
            lambda: log.newest is not None and log.newest[1] >= speed,
            _MOTION_S,
            lambda: f"a joint to reach {speed} rad/s, the fastest had {log.peak(0):.2f}",
            self._all_is_well,
        )
        assert log.newest is not None  # it was fast
        self._speed = log.newest[1]
        self._killed_ns = time.monotonic_ns()
        os.kill(self._supervisor.pids[self._victim], signal.SIGKILL)

    def watch(self) -> None:
        """Wait until the arm rests for good and all have named the victim; not for ever."""
        self._wait(self._rests, _REST_S, "rest")
        self._wait(self._is_named, _NAMED_S, "a name")
        self._rest_ns = self._recorder.log.rest_ns(self._killed_ns, REST_SPEED)

    def record(self, controller: str, untidy: list[str]) -> KillRecord:
        """Return what happened."""
        rest_ns = self._rest_ns
        return KillRecord(
            node=self._victim,
            controller=controller,
            speed=self._speed,
            peak_speed=self._recorder.log.peak(self._killed_ns),
            rest_ms=None if rest_ns is None else (rest_ns - self._killed_ns) / 1e6,
            named_ms=dict(self._named_ms),
            died=tuple(self._died),
            untidy=tuple(untidy),
        )

    def end(self) -> None:
        """Stop to listen."""
        self._leave_observer()
        self._recorder.stop()
        self._client.close()
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)

    def _leave_observer(self) -> None:
        if self._observer is not None:  # what it reads costs cores that the system needs
            self._observer.stop()
            self._observer = None

    def _rests(self) -> bool:
        return self._recorder.log.rested_ns(self._killed_ns, REST_SPEED) >= _HELD_NS

    def _is_named(self) -> bool:
        return bool(self._died) and witnesses(self._victim) <= self._named_ms.keys()

    def _wait(self, done: Callable[[], bool], timeout: float, what: str) -> None:
        with suppress(TimeOutError):  # the record tells
            self._client.wait(done, timeout, lambda: what, self._note_deaths)

    def _note_deaths(self) -> None:
        self._died += [death.process for death in self._supervisor.deaths()]

    def _all_is_well(self) -> None:
        for death in self._supervisor.deaths():
            raise RouterError(str(death))
        if self._stop_reason:
            raise RouterError(f"stopped before the kill: {self._stop_reason}")

    def _on_failure(self, message: FailureEvent) -> None:
        if self._killed_ns and message.source == self._victim:
            after_ms = (time.monotonic_ns() - self._killed_ns) / 1e6
            self._named_ms.setdefault(message.detector, after_ms)

    def _on_stop(self, message: Stop) -> None:
        if message.engaged:
            self._stop_reason = f"{message.source}: {message.reason}"


def _raise(error: Exception) -> None:
    raise error
