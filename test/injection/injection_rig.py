"""Joint states, heartbeats and chunks for a real injector process, and what it answers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pinocchio as pin
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from kv_action_router import realtime
from kv_action_router.contracts import (
    CHUNK_PERIOD,
    CHUNK_SAMPLES,
    ChunkKind,
    Decision,
    TrajectoryChunk,
)
from kv_action_router.msg import ExecutionFeedback, FailureEvent, Heartbeat, Stop
from kv_action_router.robots.model import RobotModel
from kv_action_router.ros import qos, topics
from kv_action_router.ros.conversions import chunk_to_msg
from kv_action_router.ros.streams import DataPlane

MS = 1_000_000
WATCHED = ("task_key_encoder", "cache_manager", "behavior_synthesizer", "failure_monitor")
BRAKE_NS = 40 * MS
_LONGEST_STEP = 0.004  # [s] a rig that is held up simulates slowly instead of coarsely

Path = Callable[[float], tuple[np.ndarray, np.ndarray]]


class Rig:
    """The rest of the system, in one thread: call :meth:`run` and it is alive."""

    def __init__(self, context: Any, namespace: str = "", joint_prefix: str = "") -> None:
        # As the injector: a robot's driver is not held up by whatever else runs on the machine.
        realtime.schedule_thread(15)
        self.node = Node("rig", context=context, namespace=namespace)
        self.model = RobotModel.load("ur5e", prefix=joint_prefix)
        self.names = list(self.model.joint_names)
        self.q = self.model.home.copy()
        self.v = np.zeros(self.model.n)
        self.torque = np.zeros(self.model.n)
        self.feedback: list[ExecutionFeedback] = []
        self.failures: list[FailureEvent] = []
        self.commands = 0
        self.braked = True
        self.publishes_joints = True
        self.silent_nodes: set[str] = set()
        self.sequence = 0
        self._plane = DataPlane(self.node)
        self._command_reader = self._plane.reader(topics.EFFORT_COMMAND)
        self._feedback_reader = self._plane.reader(
            topics.EXECUTION_FEEDBACK, profile=qos.log_stream()
        )
        self._failure_reader = self._plane.reader(topics.FAILURE_EVENT)
        self._joints = self._publisher(topics.JOINT_STATES)
        self._chunks = self._publisher(topics.TRAJECTORY_CHUNK)
        self._stop = self._publisher(topics.STOP)
        self._beats = {name: self._publisher(topics.HEARTBEATS[name]) for name in WATCHED}
        self._release = self.node.create_client(Trigger, topics.RELEASE_STOP.name)
        self._message = JointState(name=self.names)
        self._last_ns = time.monotonic_ns()
        self._beat_ns = self._joint_ns = self._command_ns = 0

    def close(self) -> None:
        self._plane.destroy()
        self.node.destroy_node()
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))

    # --- time goes on ----------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        """Be alive for a while."""
        self.until(lambda: False, seconds)

    def until(self, condition: Callable[[], Any], seconds: float) -> bool:
        """Be alive until something is true; return whether it became true in time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.step()
            if condition():
                return True
            time.sleep(0.0005)
        return False

    def step(self) -> None:
        now = time.monotonic_ns()
        dt = min((now - self._last_ns) * 1e-9, _LONGEST_STEP)
        self._last_ns = now
        while (sample := self._command_reader.take()) is not None:
            labels = [dimension.label for dimension in sample.message.layout.dim]
            for name, value in zip(labels, sample.message.data, strict=True):
                self.torque[self.names.index(name)] = value
            self.commands += 1
            self._command_ns = now
        self.braked = now - self._command_ns > BRAKE_NS
        self._integrate(dt)
        if now - self._joint_ns >= 2 * MS and self.publishes_joints:
            self._joint_ns = now
            self.publish_joints(self.q, self.v)
        if now - self._beat_ns >= 20 * MS:
            self._beat_ns = now
            for name, publisher in self._beats.items():
                if name not in self.silent_nodes:
                    publisher.publish(Heartbeat(node=name, monotonic_ns=now, lifecycle_state=3))
        while (sample := self._feedback_reader.take()) is not None:
            self.feedback.append(sample.message)
        while (sample := self._failure_reader.take()) is not None:
            self.failures.append(sample.message)

    def publish_joints(self, position: Iterable[float], velocity: Iterable[float]) -> None:
        now = time.time_ns()
        stamp = self._message.header.stamp
        stamp.sec, stamp.nanosec = divmod(now, 1_000_000_000)
        self._message.position = list(position)
        self._message.velocity = list(velocity)
        self._joints.publish(self._message)

    def _integrate(self, dt: float) -> None:
        if self.braked:
            self.v[:] = 0.0
            return
        kinematics = self.model.kinematics
        for _ in range(2):
            rate = pin.aba(kinematics.model, kinematics.data, self.q, self.v, self.torque)
            self.v += rate * (0.5 * dt)
            self.q += self.v * (0.5 * dt)

    # --- what it sends -----------------------------------------------------------------------

    def send_chunk(
        self,
        path: Path,
        *,
        kind: ChunkKind = ChunkKind.CONTINUATION,
        delay_ns: int = 0,
        epoch: int | None = None,
        spoil: float | None = None,
        at_rest: bool = False,
    ) -> int:
        """Send one chunk of a path over absolute monotonic time [s]; return its sequence."""
        self.sequence += 1
        anchor = time.monotonic_ns()
        times = anchor * 1e-9 + np.arange(CHUNK_SAMPLES) * CHUNK_PERIOD
        rows = np.array([np.concatenate(path(t)) for t in times])
        if spoil is not None:
            rows[37, 3] = spoil
        columns = [f"{n}/position" for n in self.names] + [f"{n}/velocity" for n in self.names]
        chunk = TrajectoryChunk(
            decision=Decision(
                trace_id=self.sequence,
                trigger_monotonic_ns=anchor - delay_ns,
                sequence=self.sequence,
                epoch=self.epoch if epoch is None else epoch,
            ),
            kind=kind,
            anchor_ns=anchor - delay_ns,
            columns=tuple(columns),
            samples=rows,
            auxiliary=(),
            entry_id=0,
            entry_version=0,
            task="test",
            stage="test",
            phase=0.5,
            ends_at_rest=at_rest,
        )
        self._chunks.publish(chunk_to_msg(chunk))
        return self.sequence

    def stream(self, path: Path, seconds: float, **options: Any) -> None:
        """Send a chunk every 20 ms for a while."""
        due = time.monotonic()
        end = due + seconds
        while time.monotonic() < end:
            if time.monotonic() >= due:
                due += 0.02
                self.send_chunk(path, **options)
                options.pop("kind", None)
            self.step()
            time.sleep(0.0005)

    def decide(self, path: Path) -> bool:
        """Send decisions until one is followed; a busy machine makes single ones too late."""
        before = len(self.events(ExecutionFeedback.EVENT_CHUNK_ADOPTED))

        def followed() -> bool:
            return len(self.events(ExecutionFeedback.EVENT_CHUNK_ADOPTED)) > before

        for _ in range(50):
            self.send_chunk(path, kind=ChunkKind.DECISION)
            if self.until(followed, 0.1):
                return True
        return False

    def send_stop(self, *, engaged: bool, reason: str = "test") -> None:
        self._stop.publish(
            Stop(engaged=engaged, source="rig", reason=reason, monotonic_ns=time.monotonic_ns())
        )

    def release(self) -> Trigger.Response:
        """Call ``release_stop`` and wait for its answer, alive."""
        assert self.until(self._release.service_is_ready, 10.0)
        future = self._release.call_async(Trigger.Request())
        from rclpy.executors import SingleThreadedExecutor

        executor = SingleThreadedExecutor(context=self.node.context)
        executor.add_node(self.node)
        try:
            assert self.until(lambda: executor.spin_once(timeout_sec=0.0) or future.done(), 10.0), (
                "release_stop did not answer"
            )
        finally:
            executor.remove_node(self.node)
            executor.shutdown()
        return future.result()

    # --- what it knows -----------------------------------------------------------------------

    @property
    def last(self) -> ExecutionFeedback:
        return self.feedback[-1]

    @property
    def epoch(self) -> int:
        return self.last.epoch if self.feedback else 0

    @property
    def state(self) -> int:
        return self.last.state if self.feedback else ExecutionFeedback.STATE_INACTIVE

    def events(self, kind: int) -> list[ExecutionFeedback]:
        return [message for message in self.feedback if message.event == kind]

    def _publisher(self, topic: topics.Topic) -> Any:
        return self.node.create_publisher(topic.type, topic.name, topic.profile())


def holding(position: np.ndarray) -> Path:
    """Return the path that stands still."""
    still = np.array(position)
    return lambda t: (still, np.zeros_like(still))


def swinging(position: np.ndarray, start: float, amplitude: float = 0.1) -> Path:
    """Return a path of all joints from rest: a raised cosine, 0.16 rad/s at most."""
    origin = np.array(position)
    rate = np.pi

    def path(t: float) -> tuple[np.ndarray, np.ndarray]:
        s = max(0.0, t - start)
        moved = 0.5 * amplitude * (1.0 - np.cos(rate * s))
        speed = 0.5 * amplitude * rate * np.sin(rate * s)
        return origin + moved, np.full_like(origin, speed)

    return path
