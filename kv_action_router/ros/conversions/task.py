"""TaskState and StageCondition <-> their messages."""

from __future__ import annotations

from kv_action_router import contracts
from kv_action_router.contracts import INTENT_SIZE, DecisionReason, TaskStatus
from kv_action_router.errors import InputError
from kv_action_router.msg import StageCondition, TaskState
from kv_action_router.ros.conversions.decision import decision_from_msg, decision_to_msg
from kv_action_router.ros.conversions.fields import (
    enum_from_field,
    fill_floats,
    floats_from_field,
)


def task_state_to_msg(state: contracts.TaskState, msg: TaskState | None = None) -> TaskState:
    """Write a task state into ``msg`` (a new one when None) and return it.

    Raises:
        InputError: the intent is neither (128,) nor empty.
    """
    msg = TaskState() if msg is None else msg
    _check_intent(state.intent.size)
    decision_to_msg(state.decision, msg.decision)
    msg.status = int(state.status)
    msg.task = str(state.task)
    msg.goal_id = str(state.goal_id)
    msg.stage = str(state.stage)
    msg.stage_index = int(state.stage_index)
    msg.stage_count = int(state.stage_count)
    msg.subtask = str(state.subtask)
    msg.phase = float(state.phase)
    fill_floats(msg, "intent", state.intent)
    msg.decision_reason = int(state.decision_reason)
    msg.needs_target = bool(state.needs_target)
    msg.needs_image = bool(state.needs_image)
    msg.requested_monotonic_ns = int(state.requested_monotonic_ns)
    msg.allowed_contact = str(state.allowed_contact)
    msg.target = str(state.target)
    msg.needs_sharpness = bool(state.needs_sharpness)
    return msg


def task_state_from_msg(msg: TaskState) -> contracts.TaskState:
    """Return the task state that a message carries.

    Raises:
        InputError: unknown status or reason, or an intent that is neither (128,) nor empty.
    """
    _check_intent(len(msg.intent))
    return contracts.TaskState(
        decision=decision_from_msg(msg.decision),
        status=enum_from_field(TaskStatus, msg.status, "status"),
        task=msg.task,
        goal_id=msg.goal_id,
        stage=msg.stage,
        stage_index=msg.stage_index,
        stage_count=msg.stage_count,
        subtask=msg.subtask,
        phase=msg.phase,
        intent=floats_from_field(msg.intent),
        decision_reason=enum_from_field(DecisionReason, msg.decision_reason, "decision_reason"),
        needs_target=msg.needs_target,
        needs_image=msg.needs_image,
        requested_monotonic_ns=msg.requested_monotonic_ns,
        allowed_contact=msg.allowed_contact,
        target=msg.target,
        needs_sharpness=msg.needs_sharpness,
    )


def condition_to_msg(
    condition: contracts.StageCondition, msg: StageCondition | None = None
) -> StageCondition:
    """Write a condition into ``msg`` (a new one when None) and return it; the header is not set."""
    msg = StageCondition() if msg is None else msg
    msg.task = str(condition.task)
    msg.goal_id = str(condition.goal_id)
    msg.stage = str(condition.stage)
    msg.decision_id = int(condition.decision_id)
    msg.condition = str(condition.condition)
    msg.kind = StageCondition.FAILURE if condition.is_failure else StageCondition.END
    msg.signal = str(condition.signal)
    msg.value = float(condition.value)
    msg.limit = float(condition.limit)
    msg.held = float(condition.held)
    msg.monotonic_ns = int(condition.monotonic_ns)
    return msg


def condition_from_msg(msg: StageCondition) -> contracts.StageCondition:
    """Return the condition that a message carries.

    Raises:
        InputError: unknown kind.
    """
    if msg.kind not in (StageCondition.END, StageCondition.FAILURE):
        raise InputError("kind", f"{StageCondition.END} or {StageCondition.FAILURE}", msg.kind)
    return contracts.StageCondition(
        task=msg.task,
        goal_id=msg.goal_id,
        stage=msg.stage,
        decision_id=msg.decision_id,
        condition=msg.condition,
        is_failure=msg.kind == StageCondition.FAILURE,
        signal=msg.signal,
        value=msg.value,
        limit=msg.limit,
        held=msg.held,
        monotonic_ns=msg.monotonic_ns,
    )


def _check_intent(size: int) -> None:
    if size not in (0, INTENT_SIZE):
        raise InputError("intent", f"of size {INTENT_SIZE} or empty", size)
