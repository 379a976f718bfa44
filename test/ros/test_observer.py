"""A passage is told apart by the chunk that it ended in, whichever match that was made from."""

from __future__ import annotations

from typing import Any

import pytest

rclpy = pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from rclpy.node import Node  # noqa: E402

from kv_action_router.contracts import ChunkKind, InjectorEvent, InjectorState  # noqa: E402
from kv_action_router.msg import (  # noqa: E402
    AuxiliaryOutput,
    ExecutionFeedback,
    TrajectoryChunk,
)
from kv_action_router.reporting.records import RunRecord  # noqa: E402
from kv_action_router.ros import topics  # noqa: E402
from kv_action_router.ros.observer import RunObserver  # noqa: E402

pytestmark = pytest.mark.dds

CASES = {
    # trace id: (kind, entry, timed output, what it is)
    11: (ChunkKind.DECISION, 5, False, "hit"),
    12: (ChunkKind.DECISION, 0, False, "miss"),
    13: (ChunkKind.REFRESH, 5, False, "refresh"),
    14: (ChunkKind.DECISION, 7, True, "hit"),
}


def test_kinds_come_from_the_chunks(ros: Any, wait_until: Any) -> None:
    node, run = Node("bench", context=ros), RunRecord()
    observer = RunObserver(node, run)
    chunks, feedback = (
        node.create_publisher(topic.type, topic.name, topic.profile())
        for topic in (topics.TRAJECTORY_CHUNK, topics.EXECUTION_FEEDBACK)
    )
    observer.start()
    try:
        for trace_id, (kind, entry, output, what) in CASES.items():
            chunk = TrajectoryChunk(kind=int(kind), entry_id=entry)
            chunk.auxiliary = [AuxiliaryOutput(name="horn")] * output
            chunk.decision.trace_id = trace_id
            told = ExecutionFeedback(
                event=int(InjectorEvent.CHUNK_ADOPTED), state=int(InjectorState.FOLLOW)
            )
            told.decision.trace_id = trace_id
            told.decision.stage_monotonic_ns = [1, 2, 3, 4, 5]

            def seen(chunk=chunk, told=told, trace_id=trace_id, what=what) -> bool:
                chunks.publish(chunk)
                feedback.publish(told)
                # the two topics are discovered one after the other: the first chunks may be lost
                return any((p.trace_id, p.kind) == (trace_id, what) for p in run.passages)

            wait_until(seen, 20.0, f"the passage of chunk {trace_id} as a {what}")
    finally:
        observer.stop()
        node.destroy_node()


def test_who_comes_late_learns_the_state_without_an_event(ros: Any, wait_until: Any) -> None:
    """An injector that has held still since before the observer came tells no event any more."""
    node = Node("bench", context=ros)
    observer = RunObserver(node, RunRecord())
    topic = topics.EXECUTION_FEEDBACK
    feedback = node.create_publisher(topic.type, topic.name, topic.profile())
    told = ExecutionFeedback(state=int(InjectorState.HOLD), monotonic_ns=7)
    observer.start()
    try:

        def seen() -> bool:
            feedback.publish(told)
            return observer.injector_state is InjectorState.HOLD

        wait_until(seen, 20.0, "the state of a quiet injector")
        assert observer.injector_since_ns == 7
    finally:
        observer.stop()
        node.destroy_node()
