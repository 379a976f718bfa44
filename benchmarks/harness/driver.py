"""The stimulus of ``pipeline.py``: image pairs at a steady rate, and the wish for decisions.

It takes the place of the camera, and asks for a decision as soon as the one before is in force: it
tells the synthesizer that the stage has ended, as the monitor would. What the injector's feedback
tells of each decision is written down.
"""

from __future__ import annotations

import argparse
import math
import signal
import time
from pathlib import Path
from typing import Any

import rclpy
from rclpy.node import Node
from std_srvs.srv import Trigger

from harness import pictures, rows
from harness.counting import PhaseCount
from harness.load import busy_cores, busy_memory
from harness.phases import Phase, PhaseRecord, read_plan, write_record, write_task
from kv_action_router.contracts import InjectorEvent, InjectorState, TaskStatus
from kv_action_router.errors import RouterError
from kv_action_router.msg import (
    ExecutionFeedback,
    FailureEvent,
    StageCondition,
    Stop,
    TaskState,
    TrajectoryChunk,
)
from kv_action_router.realtime import rest_garbage, schedule_process
from kv_action_router.reporting.records import RunRecord
from kv_action_router.ros import qos, topics
from kv_action_router.ros.observer import RunObserver
from kv_action_router.ros.process import make_executor
from kv_action_router.ros.readiness import wait_until_ready
from kv_action_router.ros.streams import DataLoop, DataPlane
from kv_action_router.ros.task_client import TaskClient
from kv_action_router.ros.wire import FieldReader
from kv_action_router.srv import InvalidateCache

_PICTURES = 16
_TASK_S = 3600.0
_AGAIN_NS = 100_000_000
_PATIENCE_S = 1.0  # between a stop and its release
_START_S = 60.0
_CONDITION = "asked"  # of the tasks that write_task writes
_COUNTERS = (
    "ticks",
    "missed_ticks",
    "chunks_adopted",
    "chunks_late",
    "chunks_refused",
    "commands_sent",
    "late_commands_sent",
)


class Driver:
    """Stimulus and count of one system.

    Threads: ``images`` sends them, ``wishes`` listens and asks, the executor runs tasks.

    Attributes:
        pictures: that are sent in turn; may be replaced at any time.
        error: what a thread has raised; None = nothing.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self.pictures = pictures.render(_PICTURES)
        self._images = pictures.publishers(node)
        self._conditions = node.create_publisher(
            StageCondition, topics.CONDITION.name, topics.CONDITION.profile()
        )
        self._invalidate = node.create_client(InvalidateCache, topics.INVALIDATE.name)
        self._release = node.create_client(Trigger, topics.RELEASE_STOP.name)
        self._release_due = math.inf
        self._plane = DataPlane(node)
        self._feedback = self._plane.reader(
            topics.EXECUTION_FEEDBACK, profile=qos.log_stream(), raw=True
        )
        self._chunks = self._plane.reader(
            topics.TRAJECTORY_CHUNK, profile=qos.log_stream(), raw=True
        )
        self._states = self._plane.reader(topics.TASK_STATE)
        header = ("decision.decision_id", "decision.trace_id", "decision.stage_monotonic_ns")
        self._feedback_fields = FieldReader(ExecutionFeedback, (*header, "event", *_COUNTERS))
        self._chunk_fields = FieldReader(TrajectoryChunk, ("kind", "entry_id", "decision.trace_id"))
        self._state: TaskState | None = None
        self._count = PhaseCount(Phase("none", "hit", 1))
        self._image_number = 0
        self._ask_due_ns = 0
        self.error: Exception | None = None
        node.create_subscription(
            FailureEvent, topics.FAILURE_EVENT.name, self._on_failure, qos.event()
        )
        node.create_subscription(Stop, topics.STOP.name, self._on_stop, qos.latched())

    def run(self, phase: Phase, folder: Path, client: TaskClient) -> PhaseRecord:
        """Run one phase; return what came of it. Rows are written beside it."""
        self._count = count = PhaseCount(phase)
        readers = (self._feedback, self._states)
        wishes = DataLoop(self._plane, readers, self._on_wake, self._on_error, name="wishes")
        images = DataLoop(
            self._plane,
            (),
            self._send_image,
            self._on_error,
            period_ns=phase.period_ns,
            name="images",
        )
        with busy_cores(phase.busy_cores), busy_memory(phase.busy_memory):
            wishes.start()
            images.start()
            until = time.monotonic() + phase.timeout
            turn = 0
            while not count.done and not count.trouble:
                turn += 1
                self._run_task(folder / f"{phase.name}.yaml", turn, client, until)
            images.stop()
            wishes.stop()
        rows.save(folder / f"{phase.name}.npy", count.rows)
        return count.record()

    def _run_task(self, path: Path, turn: int, client: TaskClient, until: float) -> None:
        count = self._count
        write_task(path, count.phase, turn)
        count.begin_task()
        handle = client.begin(str(path), _TASK_S)
        ended = handle.get_result_async()
        asked_to_end = False

        def look() -> None:
            nonlocal asked_to_end
            if self.error is not None:
                count.trouble = f"{type(self.error).__name__}: {self.error}"
            self.release_stop()
            if time.monotonic() > until:
                count.trouble = count.trouble or f"not done within {count.phase.timeout:.0f} s"
            if (count.done or count.trouble) and not asked_to_end:
                asked_to_end = True
                handle.cancel_goal_async()

        client.wait(ended.done, count.phase.timeout + 60.0, lambda: "the end of the task", look)
        result = ended.result().result
        if not result.success and not asked_to_end:
            count.on_task_failed(result.error_msg)
            # the task may have been refused: the injector is in its fail-safe, or stopped
            again = time.monotonic() + _PATIENCE_S
            self._release_due = min(self._release_due, again)
            client.wait(lambda: time.monotonic() > again, 2.0 * _PATIENCE_S, str, self.release_stop)
            self.release_stop()

    def finish(self) -> None:
        """End the phase under way; any thread may call this."""
        self._count.ended = True

    def release_stop(self) -> None:
        """Release a stop some time after it was engaged: the run goes on, and is told of."""
        if time.monotonic() >= self._release_due and self._release.service_is_ready():
            self._release_due = time.monotonic() + _PATIENCE_S  # until it is granted
            self._release.call_async(Trigger.Request()).add_done_callback(self._on_released)

    def close(self) -> None:
        """Leave all streams."""
        self._images.close()
        self._plane.destroy()

    # --- the thread of images -----------------------------------------------------------------

    def _send_image(self, _: int) -> None:
        self._image_number += 1
        # a stride that shares no factor with the number of pictures: neighbors are far apart
        picture = self.pictures[self._image_number * 7 % len(self.pictures)]
        self._images.publish(time.time_ns(), picture.color, picture.depth)

    # --- the thread of wishes -----------------------------------------------------------------

    def _on_wake(self, now_ns: int) -> None:
        count = self._count
        while (sample := self._chunks.take()) is not None:
            fields = self._chunk_fields.read(sample.message)
            if fields is not None and fields[0] == TrajectoryChunk.KIND_DECISION:
                count.on_chunk(fields[2], fields[1])
        while (sample := self._states.take()) is not None:
            self._state = sample.message
        while (sample := self._feedback.take()) is not None:
            fields = self._feedback_fields.read(sample.message)
            assert fields is not None  # a feedback holds no sequence of messages
            decision_id, trace_id, times, event, *counters = fields
            count.counters = dict(zip(_COUNTERS, counters, strict=True))
            if event == InjectorEvent.CHUNK_LATE:
                count.on_late(trace_id)
            adopted = event == InjectorEvent.CHUNK_ADOPTED
            if adopted and count.on_adopted(decision_id, trace_id, times):
                self._ask_due_ns = now_ns + round(count.phase.hold_s * 1e9)
        if count.in_force and now_ns >= self._ask_due_ns:
            self._ask_due_ns = now_ns + _AGAIN_NS  # a wish that came to nothing is said again
            self._ask(now_ns)

    def _ask(self, now_ns: int) -> None:
        """Ask for the next decision: in the same stage by an invalidation, else in the next."""
        count, state = self._count, self._state
        if state is None or state.status != TaskStatus.RUNNING or count.done:
            return
        if state.decision.decision_id != count.in_force:
            return
        if (entry := count.entry_to_invalidate()) and self._invalidate.service_is_ready():
            count.invalidated_ns = time.monotonic_ns()
            request = InvalidateCache.Request(
                scope=InvalidateCache.Request.SCOPE_ENTRY, entry_id=entry, reason="benchmark"
            )
            self._invalidate.call_async(request)
            return
        message = StageCondition(
            task=state.task,
            goal_id=state.goal_id,
            stage=state.stage,
            decision_id=state.decision.decision_id,
            condition=_CONDITION,
            kind=StageCondition.END,
            signal="wrench_force",
            value=1001.0,
            limit=1000.0,
            monotonic_ns=now_ns,
        )
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._conditions.publish(message)

    def _on_error(self, error: Exception) -> None:
        self.error = error

    # --- the executor's thread ------------------------------------------------------------------

    def _on_failure(self, message: FailureEvent) -> None:
        self._count.on_failure(message.source, message.error_msg)

    def _on_released(self, answered: Any) -> None:
        if answered.result().success:
            self._release_due = math.inf

    def _on_stop(self, message: Stop) -> None:
        self._release_due = time.monotonic() + _PATIENCE_S if message.engaged else math.inf
        if message.engaged:
            self._count.on_stop(f"{message.source}: {message.reason}")


def wait_until_driven(node: Node, client: TaskClient, driver: Driver) -> None:
    """Wait until a task can be run; a stop from the start of the nodes is released.

    Raises:
        RouterError: what was waited for did not happen.
    """
    observer = RunObserver(node, RunRecord())
    observer.start()
    until = time.monotonic() + _START_S
    try:
        while True:
            try:
                return wait_until_ready(observer, client, driver.release_stop)
            except RouterError:  # a stop while the nodes started; it is released
                if time.monotonic() > until:
                    raise
            client.wait(
                lambda: observer.injector_state is not InjectorState.STOPPED,
                _START_S,
                lambda: "the stop to be released",
                driver.release_stop,
            )
    finally:
        observer.stop()


def main() -> int:
    """Run the phases of a plan; write a record and rows for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plan", type=Path)
    parser.add_argument("--priority", type=int, default=0)
    parser.add_argument("--namespace", default="", help="of the robot")
    options = parser.parse_args()
    schedule_process(options.priority)
    rclpy.init(args=[])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    node = rclpy.create_node("driver", namespace=options.namespace)
    executor = make_executor()
    executor.add_node(node)
    client = TaskClient(node, executor)
    driver = Driver(node)
    wait_until_driven(node, client, driver)
    rest_garbage()
    folder = options.plan.parent
    for phase in read_plan(options.plan):
        record = driver.run(phase, folder, client)
        write_record(folder / f"{phase.name}.json", record)
        if not record.decisions_in_all:  # the next one would not find out more
            break
    driver.close()
    rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
