"""Samples for the monitor's tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kv_action_router.contracts import (
    Decision,
    DecisionReason,
    DriveSample,
    ExecutionFeedback,
    InjectorEvent,
    InjectorState,
    TaskState,
    TaskStatus,
)
from kv_action_router.monitoring.samples import WrenchSample

MS = 1_000_000
JOINTS = ("elbow", "wrist")


def task_state(
    stage: str = "touch",
    decision_id: int = 7,
    *,
    status: TaskStatus = TaskStatus.RUNNING,
    index: int = 1,
    goal: str = "goal-1",
    allowed_contact: str = "",
) -> TaskState:
    """Return a task state as the synthesizer would publish it."""
    return TaskState(
        decision=Decision(decision_id=decision_id),
        status=status,
        task="touch_target",
        goal_id=goal,
        stage=stage,
        stage_index=index,
        stage_count=3,
        subtask="touch_v1",
        phase=0.0,
        intent=np.zeros(0, dtype=np.float32),
        decision_reason=DecisionReason.STAGE_ENTRY,
        needs_target=True,
        needs_image=False,
        requested_monotonic_ns=0,
        allowed_contact=allowed_contact,
    )


def feedback(
    ms: float,
    decision_id: int = 7,
    *,
    state: InjectorState = InjectorState.FOLLOW,
    event: InjectorEvent = InjectorEvent.NONE,
    phase: float = 0.5,
    position: Sequence[float] = (0.0, 0.0),
    velocity: Sequence[float] = (0.0, 0.0),
    setpoint: Sequence[float] = (0.0, 0.0),
) -> ExecutionFeedback:
    """Return a feedback of a two-joint injector."""
    return ExecutionFeedback(
        decision=Decision(decision_id=decision_id, trace_id=decision_id * 100),
        state=state,
        event=event,
        reason="",
        monotonic_ns=int(ms * MS),
        epoch=1,
        chunk_sequence=1,
        phase=phase,
        joints=JOINTS,
        position=np.array(position, dtype=float),
        velocity=np.array(velocity, dtype=float),
        setpoint_position=np.array(setpoint, dtype=float),
        setpoint_velocity=np.zeros(2),
        command=np.zeros(2),
        command_interface="effort",
        confident=np.ones(2, dtype=np.bool_),
        execution_version=1,
    )


def wrench(ms: float, z: float, x: float = 0.0) -> WrenchSample:
    """Return a wrench sample with a force along two axes."""
    return WrenchSample((x, 0.0, z, 0.0, 0.0, 0.0), int(ms * MS))


def drives(ms: float, temperature: Sequence[float]) -> DriveSample:
    """Return drive feedback with temperatures only."""
    empty = np.zeros(0)
    return DriveSample(
        JOINTS, np.array(temperature, dtype=float), empty, empty, empty, empty,
        np.zeros(0, dtype=np.bool_), int(ms * MS),
    )  # fmt: skip
