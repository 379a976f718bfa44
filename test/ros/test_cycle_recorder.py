"""A cycle is written down from topics: stages, contact, looks at the target, forces."""

from __future__ import annotations

import math
from typing import Any

import pytest

rclpy = pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from geometry_msgs.msg import WrenchStamped  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.node import Node  # noqa: E402

from kv_action_router.contracts import InjectorEvent, TaskStatus, Trigger  # noqa: E402
from kv_action_router.msg import (  # noqa: E402
    CacheMatch,
    ExecutionFeedback,
    SimulationTruth,
    TaskState,
)
from kv_action_router.reporting.records import CycleRecord, RunRecord  # noqa: E402
from kv_action_router.ros import topics  # noqa: E402
from kv_action_router.ros.observer import RunObserver  # noqa: E402

pytestmark = pytest.mark.dds
PLACED_S, SEQUENCE = 1_000, 7
LOOKING, TARGET = "touch_approach_v1", (0.5, 0.1, 0.01)


def truth(event: str, **values: Any) -> SimulationTruth:
    message = SimulationTruth(event=event, sequence=SEQUENCE, real_time_factor=0.99, **values)
    message.header.stamp.sec = PLACED_S
    message.target.position.x, message.target.position.y, message.target.position.z = TARGET
    message.target.orientation.z, message.target.orientation.w = math.sin(0.2), math.cos(0.2)
    return message


def match(seconds: int, off: float, subtask: str = LOOKING, *, valid: bool = True) -> CacheMatch:
    """Return the answer to an image taken at an instant, with the target seen beside its place."""
    message = CacheMatch(trigger=int(Trigger.IMAGE), subtask=subtask, target_valid=valid)
    message.decision.header.stamp.sec = seconds
    message.decision.stage_monotonic_ns = [1, 2, 3, 0, 0]
    at = message.target.pose.position
    at.x, at.y, at.z = TARGET[0] + off, TARGET[1], TARGET[2]
    return message


def test_a_cycle_is_written_down(ros: Any, wait_until: Any) -> None:
    node, run = Node("bench", context=ros), RunRecord()
    executor = SingleThreadedExecutor(context=ros)
    executor.add_node(node)
    observer = RunObserver(node, run)
    recorder = observer.record_cycles([LOOKING])
    publish = {
        topic: node.create_publisher(topic.type, topic.name, topic.profile()).publish
        for topic in (
            topics.TASK_STATE,
            topics.SIMULATION_TRUTH,
            topics.CACHE_MATCH,
            topics.EXECUTION_FEEDBACK,
            topics.WRENCH,
        )
    }
    recorder.begin(3)
    observer.start()
    try:
        cycle = CycleRecord(3)

        def heard(done: Any, **messages: Any) -> None:
            """Publish until it was heard: topics are discovered one after the other."""

            def asked() -> bool:
                for name, message in messages.items():
                    publish[getattr(topics, name)](message)
                executor.spin_once(timeout_sec=0.02)
                recorder.end(cycle, SEQUENCE)
                return bool(done())

            wait_until(asked, 20.0, f"{', '.join(messages)} to be written down")

        heard(lambda: recorder.trace.placements, SIMULATION_TRUTH=truth("placed"))
        heard(
            lambda: math.isfinite(cycle.touch_error),
            SIMULATION_TRUTH=truth("contact", error=0.0004, force=6.0),
        )
        heard(
            lambda: math.isfinite(cycle.search),
            SIMULATION_TRUTH=truth("screw", final_torque=3.49, advance=0.0026, search=0.002),
        )
        state = {"task": "touch_target", "goal_id": "a"}
        running, done = int(TaskStatus.RUNNING), int(TaskStatus.SUCCEEDED)
        heard(
            lambda: not recorder.at_rest,
            TASK_STATE=TaskState(**state, status=running, stage="approach", stage_index=0),
        )
        heard(
            lambda: cycle.spans,
            TASK_STATE=TaskState(**state, status=running, stage="touch", stage_index=1),
        )
        heard(
            lambda: recorder.at_rest,
            TASK_STATE=TaskState(**state, status=done, stage="touch", stage_index=1),
        )
        for unfit in (match(PLACED_S - 1, 1.0), match(PLACED_S + 1, 1.0, "another_v1"),
                      match(PLACED_S + 1, 1.0, valid=False)):  # fmt: skip
            publish[topics.CACHE_MATCH](unfit)
        heard(lambda: cycle.target_errors, CACHE_MATCH=match(PLACED_S + 1, 0.002))
        wrench = WrenchStamped()
        wrench.wrench.force.x, wrench.wrench.force.z = 1.5, 3.0
        heard(lambda: recorder.trace.forces, WRENCH=wrench)
        told = ExecutionFeedback(event=int(InjectorEvent.CHUNK_ADOPTED), joint=["elbow_joint"])
        told.position, told.setpoint_position, told.command = [0.1], [0.2], [0.3]
        heard(lambda: recorder.trace.motion, EXECUTION_FEEDBACK=told)
    finally:
        observer.stop()
        executor.shutdown()
        node.destroy_node()
    assert [(span.stage, span.completed) for span in cycle.spans] == [
        ("approach", True),
        ("touch", True),
    ]
    assert (cycle.touch_error, cycle.contact_force) == (0.0004, 6.0)
    assert (cycle.final_torque, cycle.advance, cycle.search) == (3.49, 0.0026, 0.002)
    assert set(map(round, (1e6 * error for error in cycle.target_errors))) == {2000}
    assert recorder.trace.forces[0][1:] == (1.5, 0.0, 3.0)
    sample = recorder.trace.motion[0]
    assert (sample.measured[0], sample.setpoint[0], sample.command[0]) == (0.1, 0.2, 0.3)
    placement = recorder.trace.placements[0]
    assert (placement.x, placement.y, placement.z) == TARGET
    assert placement.yaw == pytest.approx(0.4)
    assert set(run.real_time_factors) == {0.99}
    other = CycleRecord(4)  # contact and screw are of an earlier placement
    recorder.end(other, SEQUENCE + 1)
    assert math.isnan(other.touch_error) and math.isnan(other.search)
    assert other.target_errors == []
