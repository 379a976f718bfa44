"""ExecutionValue, EntryUpdate and ExecutionFeedback <-> their messages."""

from __future__ import annotations

from kv_action_router import contracts
from kv_action_router.contracts import (
    EXECUTION_SLOTS,
    InjectorEvent,
    InjectorState,
    UpdateOperation,
)
from kv_action_router.errors import InputError
from kv_action_router.msg import EntryUpdate, ExecutionFeedback, ExecutionValue
from kv_action_router.ros.conversions.behavior import behavior_from_msg, behavior_to_msg
from kv_action_router.ros.conversions.decision import decision_from_msg, decision_to_msg
from kv_action_router.ros.conversions.fields import (
    bools_from_field,
    bools_to_field,
    copy_vector,
    doubles_from_field,
    enum_from_field,
    fill_doubles,
    fill_floats,
    floats_from_field,
    sized,
)


def execution_value_to_msg(
    value: contracts.ExecutionValue | None, msg: ExecutionValue | None = None
) -> ExecutionValue:
    """Write an execution value into ``msg`` and return it; None becomes one without drives.

    Raises:
        InputError: the slots are not (n_drives, 32).
    """
    if value is None:
        return ExecutionValue()
    msg = ExecutionValue() if msg is None else msg
    if value.slots.shape != (len(value.drives), EXECUTION_SLOTS):
        raise InputError(
            "slots", f"of shape {(len(value.drives), EXECUTION_SLOTS)}", value.slots.shape
        )
    decision_to_msg(value.decision, msg.decision)
    msg.drive = [str(name) for name in value.drives]
    msg.version = int(value.version)
    msg.base_version = int(value.base_version)
    msg.confident = bools_to_field(value.confident)
    fill_floats(msg, "slots", value.slots)
    msg.provenance = str(value.provenance)
    return msg


def execution_value_from_msg(msg: ExecutionValue) -> contracts.ExecutionValue | None:
    """Return the execution value that a message carries, None when it has no drives.

    Raises:
        InputError: not 32 slots and one confidence bit a drive.
    """
    drives = tuple(msg.drive)
    if not drives:
        return None
    slots = sized(floats_from_field(msg.slots), len(drives) * EXECUTION_SLOTS, "slots")
    return contracts.ExecutionValue(
        drives=drives,
        slots=slots.reshape(len(drives), EXECUTION_SLOTS),
        confident=sized(bools_from_field(msg.confident), len(drives), "confident"),
        version=msg.version,
        base_version=msg.base_version,
        provenance=msg.provenance,
        decision=decision_from_msg(msg.decision),
    )


def entry_update_to_msg(
    update: contracts.EntryUpdate, msg: EntryUpdate | None = None
) -> EntryUpdate:
    """Write an entry update into ``msg`` (a new one when None) and return it."""
    msg = EntryUpdate() if msg is None else msg
    decision_to_msg(update.decision, msg.decision)
    msg.operation = int(update.operation)
    msg.entry_id = int(update.entry_id)
    msg.entry_version = int(update.entry_version)
    copy_vector(update.vector, msg.key, "key")
    behavior_to_msg(update.behavior, msg.behavior)
    msg.execution = execution_value_to_msg(update.execution, msg.execution)
    msg.error = float(update.error)
    msg.false_hit = bool(update.false_hit)
    msg.reason = str(update.reason)
    return msg


def entry_update_from_msg(msg: EntryUpdate) -> contracts.EntryUpdate:
    """Return the entry update that a message carries.

    Raises:
        InputError: unknown operation, or arrays of unequal size.
    """
    return contracts.EntryUpdate(
        decision=decision_from_msg(msg.decision),
        operation=enum_from_field(UpdateOperation, msg.operation, "operation"),
        entry_id=msg.entry_id,
        entry_version=msg.entry_version,
        vector=msg.key.copy(),
        behavior=behavior_from_msg(msg.behavior),
        execution=execution_value_from_msg(msg.execution),
        error=msg.error,
        false_hit=msg.false_hit,
        reason=msg.reason,
    )


def feedback_to_msg(
    feedback: contracts.ExecutionFeedback, msg: ExecutionFeedback | None = None
) -> ExecutionFeedback:
    """Write a feedback into ``msg`` (a new one when None) and return it.

    The message's counters and lateness are not part of the contract and stay as they are.
    """
    msg = ExecutionFeedback() if msg is None else msg
    decision_to_msg(feedback.decision, msg.decision)
    msg.state = int(feedback.state)
    msg.event = int(feedback.event)
    msg.reason = str(feedback.reason)
    msg.monotonic_ns = int(feedback.monotonic_ns)
    msg.epoch = int(feedback.epoch)
    msg.chunk_sequence = int(feedback.chunk_sequence)
    msg.phase = float(feedback.phase)
    msg.joint = list(feedback.joints)
    fill_doubles(msg, "position", feedback.position)
    fill_doubles(msg, "velocity", feedback.velocity)
    fill_doubles(msg, "setpoint_position", feedback.setpoint_position)
    fill_doubles(msg, "setpoint_velocity", feedback.setpoint_velocity)
    fill_doubles(msg, "command", feedback.command)
    msg.command_interface = str(feedback.command_interface)
    msg.confident = bools_to_field(feedback.confident)
    msg.execution_version = int(feedback.execution_version)
    msg.joint_monotonic_ns = int(feedback.joint_monotonic_ns)
    return msg


def feedback_from_msg(msg: ExecutionFeedback) -> contracts.ExecutionFeedback:
    """Return the feedback that a message carries.

    Raises:
        InputError: unknown state or event, or an array that is not (n_joints,).
    """
    joints = tuple(msg.joint)
    size = len(joints)

    def row(field: str) -> contracts.FloatArray:
        return sized(doubles_from_field(getattr(msg, field)), size, field)

    return contracts.ExecutionFeedback(
        decision=decision_from_msg(msg.decision),
        state=enum_from_field(InjectorState, msg.state, "state"),
        event=enum_from_field(InjectorEvent, msg.event, "event"),
        reason=msg.reason,
        monotonic_ns=msg.monotonic_ns,
        epoch=msg.epoch,
        chunk_sequence=msg.chunk_sequence,
        phase=msg.phase,
        joints=joints,
        position=row("position"),
        velocity=row("velocity"),
        setpoint_position=row("setpoint_position"),
        setpoint_velocity=row("setpoint_velocity"),
        command=row("command"),
        command_interface=msg.command_interface,
        confident=sized(bools_from_field(msg.confident), size, "confident"),
        execution_version=msg.execution_version,
        joint_monotonic_ns=msg.joint_monotonic_ns,
    )
