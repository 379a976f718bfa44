"""A simulated system into which faults are put while the arm moves, one after another.

    start -> ready -> (task -> arm is fast -> fault -> watch -> fault ends -> result -> release) ...

What the arm does is measured on the drives' own joint states, before any proxy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from action_msgs.msg import GoalStatus
from rclpy.node import Node

from kv_action_router.errors import RouterError
from kv_action_router.monitoring.config import MonitorConfig
from kv_action_router.msg import FailureEvent, Stop
from kv_action_router.reporting.faults import FaultRecord, Motion
from kv_action_router.robots.model import RobotModel
from kv_action_router.ros import qos, topics
from kv_action_router.ros.motion_recorder import MotionRecorder
from kv_action_router.ros.running_system import running_system
from kv_action_router.ros.supervisor import Supervisor
from kv_action_router.ros.system import System
from kv_action_router.ros.system_start import SystemStart
from kv_action_router.ros.task_client import TaskClient, TimeOutError
from kv_action_router.ros.topics import Topic

TASK = "touch_target"
TARGETS = ((0.365, 0.0), (0.42, 0.12), (0.42, -0.12))  # [m] all of them seconds away from home
JOINT_PERIOD = 0.002  # [s] of the simulated driver
_MOTION_S, _TASK_S, _RESULT_S, _START_S, _END_S = 10.0, 20.0, 25.0, 60.0, 6.0
_WATCH_S = 0.4  # behind the fault's end
_STARTS = 3  # of a task, until its arm is fast enough
_TOLD = 3  # newest reports that say why nothing moved
_MOVES = 0.02  # [rad/s] twice the speed at rest


@dataclass(frozen=True)
class Injection:
    """A fault to be put in.

    Attributes:
        name: for people and the report.
        source: that a report must name; empty = none has to.
        watchdog_ms: after which the fault can be known at all [ms].
        duration: of the fault [s].
        begin, end: put it in and take it out, on the bench.
        may_die: process that the fault kills.
        blow: time from its onset on in which steps are the fault's own [s].
    """

    name: str
    source: str
    watchdog_ms: float
    duration: float
    begin: Callable[[FaultBench], None]
    end: Callable[[FaultBench], None]
    may_die: str = ""
    blow: float = 0.0


class FaultBench:
    """A running system and what is heard of it. Made by :func:`running`.

    Attributes:
        supervisor: of its processes.
        node: that publishes and listens here.
        false_starts: why system or task were begun again, since the owner looked last.
    """

    def __init__(
        self,
        system: System,
        supervisor: Supervisor,
        node: Node,
        executor: Any,
        joint_states: Topic,
    ) -> None:
        model = RobotModel.load("ur5e")
        self.supervisor = supervisor
        self.node = node
        self._client = TaskClient(node, executor)
        self._start = SystemStart(node, self._client, supervisor)
        self._system = system
        self._limits = model.velocity_limit, model.acceleration_limit
        self._recorder = MotionRecorder(node, joint_states, model.joint_names)
        self._events: list[tuple[int, str, str]] = []  # (instant, source, text)
        self._stopped_ns = 0
        self._started_again = False
        self._turn = 0
        self.false_starts: list[str] = []
        self._fault = node.create_publisher(
            topics.FAULT.type, topics.FAULT.name, topics.FAULT.profile()
        )
        self._block = node.create_publisher(
            topics.BLOCKED_JOINT.type, topics.BLOCKED_JOINT.name, topics.BLOCKED_JOINT.profile()
        )
        node.create_subscription(
            FailureEvent, topics.FAILURE_EVENT.name, self._on_failure, qos.event()
        )
        node.create_subscription(Stop, topics.STOP.name, self._on_stop, qos.latched())
        self.stop_publisher = node.create_publisher(Stop, topics.STOP.name, qos.latched())

    def proxy(self, topic: str, fault: str) -> None:
        """Tell the fault proxy what to do to a topic."""
        self._fault.publish(topics.FAULT.type(data=f"{topic} {fault}"))

    def block(self, joint: str) -> None:
        """Let a joint be stuck; empty = none."""
        self._block.publish(topics.BLOCKED_JOINT.type(data=joint))

    def start_again(self, node: str) -> None:
        """Start a process that was asked to end, once it has."""
        self._wait(lambda: node not in self.supervisor.pids, _END_S, f"the end of {node}")
        process = next(p for p in self._system.processes if p.name == node)
        self.supervisor.start_process(self._system, process)
        self._started_again = True

    def prepare(self) -> None:
        """Wait until the system can run a task, and the monitor judges heartbeats."""
        self.false_starts += self._start.wait_until_ready()
        settled = time.monotonic() + MonitorConfig().settle + 0.5
        self._wait(lambda: time.monotonic() >= settled, _START_S, "the monitor to settle")

    def inject(self, injection: Injection, speed: float) -> FaultRecord:
        """Run a task, put a fault in once a joint is that fast [rad/s], and watch.

        Raises:
            RouterError: the arm did not move.
        """
        goal, result = self._set_in_motion(speed)
        onset_speed, self._stopped_ns = self._recorder.speed, 0
        self._events.clear()
        onset = time.monotonic_ns()
        injection.begin(self)
        self._spin(injection.duration)
        injection.end(self)
        self._spin(_WATCH_S)
        watched_ns = time.monotonic_ns()
        dead = [death.process for death in self.supervisor.deaths()]
        if not self._stopped_ns:
            with suppress(TimeOutError):
                self._wait(lambda: result.done() or self._stopped_ns > 0, _RESULT_S, "the result")
        motion = self._recorder.motion().since(onset)
        ended = self._ended(result)
        if not result.done():
            goal.cancel_goal_async()
        # What the task does later, such as to touch its target, is not the fault's doing.
        judged = motion.since(onset + round(injection.blow * 1e9)).until(watched_ns)
        speeds, accelerations = judged.steps(JOINT_PERIOD)
        rest_ns = motion.rest_ns()
        return FaultRecord(
            name=injection.name,
            source=injection.source,
            watchdog_ms=injection.watchdog_ms,
            speed=onset_speed,
            rest_ms=None if rest_ns is None else (rest_ns - onset) / 1e6,
            position_step=float((speeds / self._limits[0]).max()),
            velocity_step=float((accelerations / self._limits[1]).max()),
            ended=ended,
            reports=tuple(f"{source} {text}" for _, source, text in self._events),
            named=any(injection.source in f"{s} {text}" for _, s, text in self._events),
            moved_after_stop=self._moved_after_stop(motion, rest_ns),
            died=tuple(name for name in dead if name != injection.may_die),
            begun_again=len(self.false_starts),
        )

    def recover(self) -> None:
        """Release a stop and wait until the arm rests; what it can't, a fresh system must.

        Raises:
            RouterError: the stop was not released.
        """
        self._wait(lambda: self._recorder.speed <= _MOVES, _MOTION_S, "rest")
        if self._started_again:
            self._start.wait_for_nodes()  # as long as one is away the stop is engaged anew
        self._spin(0.5)
        if self._stopped_ns:
            self._client.release_stop()
            self._stopped_ns = 0
        if self._started_again:
            self._started_again = False
            self.prepare()
        self._spin(0.5)

    def close(self) -> None:
        """Stop to listen."""
        self._recorder.stop()
        self._client.close()

    def _set_in_motion(self, speed: float) -> tuple[Any, Any]:
        """Begin a task until a joint is that fast [rad/s]; return its goal and future result."""
        for _ in range(_STARTS):
            self._events.clear()
            goal, result, why = self._begin(speed)
            if not why:
                return goal, result
            told = [f"{source} {text}" for _, source, text in self._events[-_TOLD:]]
            self.false_starts.append("; ".join([why, *told]))
            if self._stopped_ns:
                break
            if not result.done():
                goal.cancel_goal_async()
                self._wait(result.done, _RESULT_S, "a task that was canceled")
        raise RouterError(self.false_starts.pop())

    def _begin(self, speed: float) -> tuple[Any, Any, str]:
        """Begin a task; return goal, future result, and why no joint became that fast."""
        self._turn += 1
        self._client.place_target(*TARGETS[self._turn % len(TARGETS)])
        self._recorder.clear()
        goal = self._client.begin(TASK, _TASK_S)
        result = goal.get_result_async()

        def over() -> bool:
            return bool(self._recorder.speed >= speed or result.done())

        try:
            self._wait(over, _MOTION_S, f"{speed} rad/s")
        except TimeOutError as error:
            return goal, result, str(error)
        ended = result.done()
        return goal, result, f"{speed} rad/s not reached: {self._ended(result)}" if ended else ""

    def _ended(self, result: Any) -> str:
        if result.done():
            answer = result.result()
            if answer.status == GoalStatus.STATUS_SUCCEEDED:
                return "succeeded"
            return f"failed: {answer.result.error_msg}"
        return "was stopped" if self._stopped_ns else "did not end"

    def _moved_after_stop(self, motion: Motion, rest_ns: int | None) -> bool:
        if not self._stopped_ns or rest_ns is None:
            return False
        after = motion.since(max(rest_ns, self._stopped_ns))
        rest = after.rest_ns()
        return rest is not None and bool((after.since(rest).speed > _MOVES).any())

    def _spin(self, duration: float) -> None:
        end = time.monotonic() + duration
        self._wait(lambda: time.monotonic() >= end, duration + _START_S, "time to pass")

    def _wait(self, done: Callable[[], bool], timeout: float, what: str) -> None:
        self._client.wait(done, timeout, lambda: what)

    def _on_failure(self, message: FailureEvent) -> None:
        text = f"[{message.error_code}] {message.error_msg}"
        self._events.append((time.monotonic_ns(), message.source, text))

    def _on_stop(self, message: Stop) -> None:
        if message.engaged:
            self._stopped_ns = time.monotonic_ns()
            self._events.append((self._stopped_ns, message.source, f"stop: {message.reason}"))


@contextmanager
def running(system: System, log_folder: Path) -> Iterator[FaultBench]:
    """Yield a bench whose system is ready; its processes have ended afterwards.

    Raises:
        RouterError: the system did not come up.
    """
    remaps = {k: v for process in system.processes for k, v in process.remaps.items()}
    name = remaps.get(topics.JOINT_STATES.name, topics.JOINT_STATES.name)
    joint_states = Topic(name, topics.JOINT_STATES.type, topics.JOINT_STATES.profile)
    with running_system(system, log_folder, "fault_bench") as (supervisor, node, executor):
        bench = FaultBench(system, supervisor, node, executor, joint_states)
        try:
            bench.prepare()
            yield bench
        finally:
            bench.close()
