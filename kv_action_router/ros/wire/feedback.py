"""ExecutionFeedback: what stage 4 tells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kv_action_router import contracts
from kv_action_router.contracts import InjectorEvent, InjectorState
from kv_action_router.errors import InputError
from kv_action_router.msg import ExecutionFeedback
from kv_action_router.ros.conversions.fields import enum_from_field
from kv_action_router.ros.wire import decisions
from kv_action_router.ros.wire.reader import FieldReader

_ROWS = ("position", "velocity", "setpoint_position", "setpoint_velocity", "command")
_NAMES = (
    *decisions.NAMES,
    "state",
    "event",
    "reason",
    "monotonic_ns",
    "epoch",
    "chunk_sequence",
    "phase",
    "joint",
    *_ROWS,
    "command_interface",
    "confident",
    "execution_version",
    "joint_monotonic_ns",
)
_STATES = {int(state): state for state in InjectorState}
_EVENTS = {int(event): event for event in InjectorEvent}


class FeedbackReader:
    """Reads execution feedback. One thread may use it."""

    def __init__(self) -> None:
        self._reader = FieldReader(ExecutionFeedback, _NAMES, _ROWS)

    def read(self, data: bytes) -> contracts.ExecutionFeedback:
        """Return the feedback of a serialized message.

        Raises:
            InputError: not complete, unknown state or event, or an array that is not (n_joints,).
        """
        v = self._reader.read(data)
        assert v is not None  # the message holds no sequence of messages
        state_id, event_id, reason, now_ns, epoch, sequence, phase, joints, *rest = v[
            decisions.SIZE :
        ]
        *rows, interface, confident, version, joint_ns = rest
        size = len(joints)
        for name, row in zip((*_ROWS, "confident"), (*rows, confident), strict=True):
            if len(row) != size:
                raise InputError(name, f"of size {size}", len(row))
        state, event = _STATES.get(state_id), _EVENTS.get(event_id)
        if state is None:
            state = enum_from_field(InjectorState, state_id, "state")
        if event is None:
            event = enum_from_field(InjectorEvent, event_id, "event")
        return contracts.ExecutionFeedback(
            decisions.decision(v),
            state,
            event,
            reason,
            now_ns,
            epoch,
            sequence,
            phase,
            joints,
            *rows,
            interface,
            np.array(confident, dtype=np.bool_),
            version,
            joint_ns,
        )


class FeedbackGlance(NamedTuple):
    """What the cache manager needs of a feedback."""

    epoch: int
    ticks: int
    confident_ticks: int

    @classmethod
    def reader(cls) -> FieldReader:
        """Return the reader whose values make a glance."""
        return FieldReader(ExecutionFeedback, cls._fields)
