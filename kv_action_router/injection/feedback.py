"""What the injector's feedback says, as values in the order of the message's fields."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from kv_action_router.contracts import Decision, InjectorEvent, InjectorState, Stage
from kv_action_router.injection.controller import InjectionController
from kv_action_router.injection.events import Event
from kv_action_router.injection.lateness import LatenessMeter

# of ``ExecutionFeedback``, behind its decision
FIELDS = (
    "state",
    "event",
    "reason",
    "monotonic_ns",
    "epoch",
    "chunk_sequence",
    "phase",
    "joint_monotonic_ns",
    "joint",
    "position",
    "velocity",
    "setpoint_position",
    "setpoint_velocity",
    "command",
    "command_interface",
    "confident",
    "execution_version",
    "ticks",
    "confident_ticks",
    "missed_ticks",
    "chunks_adopted",
    "chunks_late",
    "chunks_refused",
    "commands_sent",
    "late_commands_sent",
    "samples_refused",
    "lateness_p50_us",
    "lateness_p99_us",
    "lateness_p999_us",
    "lateness_max_us",
    "rate_hz",
    "realtime",
)

_TELLING = (InjectorState.STOPPED, InjectorState.FAIL_SAFE)


class FeedbackTeller:
    """Tells of a controller. The control loop's thread only.

    Invariant: :meth:`periodic` tells of the chunk in force, :meth:`event` of the chunk in question.
    """

    def __init__(self, controller: InjectionController, robot_id: str) -> None:
        """Prepare; ``robot_id`` goes into the decision while no chunk was followed."""
        self._controller = controller
        self._idle = Decision(robot_id=robot_id)
        self._in_force = self._idle

    def periodic(self, now_ns: int, meter: LatenessMeter) -> tuple[Decision, tuple[Any, ...]]:
        """Return decision and values of ``FIELDS`` as they are due 100 times a second."""
        modes = self._controller.modes
        if modes.chunk is None:
            self._in_force = self._idle
        # Who comes later must learn why nothing moves; the event that told it is gone.
        reason = modes.reason if modes.state in _TELLING else ""
        return self._in_force, self._values(now_ns, meter, InjectorEvent.NONE, reason, modes.epoch)

    def event(self, event: Event, meter: LatenessMeter) -> tuple[Decision, tuple[Any, ...]]:
        """Return decision and values of ``FIELDS`` for an event."""
        decision = self._idle if event.chunk is None else event.chunk.decision
        if event.kind is InjectorEvent.CHUNK_ADOPTED:
            decision = _commanded(decision, event.command_ns)
            self._in_force = decision
        values = self._values(event.now_ns, meter, event.kind, event.reason, event.epoch)
        return decision, values

    def _values(
        self, now_ns: int, meter: LatenessMeter, event: int, reason: str, epoch: int
    ) -> tuple[Any, ...]:
        controller = self._controller
        joints, point = controller.joints, controller.set_point
        counters, limits, last = controller.counters, controller.drives.limits, meter.last
        chunk = controller.modes.chunk
        return (
            controller.modes.state,
            event,
            reason,
            now_ns,
            epoch,
            0 if chunk is None else chunk.decision.sequence,
            math.nan if chunk is None else chunk.phase,
            joints.oldest_ns() if joints.complete else 0,
            joints.names,
            joints.position,
            joints.velocity,
            point.position,
            point.velocity,
            controller.command.values,
            controller.config.command_interface,
            limits.value.confident,
            limits.value.version,
            counters.ticks,
            counters.confident_ticks,
            meter.missed,
            counters.chunks_adopted,
            counters.chunks_late,
            counters.chunks_refused,
            counters.commands_sent,
            counters.late_commands_sent,
            joints.refused + counters.refused_ticks,
            last.p50_us,
            last.p99_us,
            last.p999_us,
            last.max_us,
            meter.rate_hz,
            meter.realtime,
        )


def _commanded(decision: Decision, command_ns: int) -> Decision:
    """Return the decision with the time of its first command."""
    return dataclasses.replace(decision, stage_ns=decision.at_stage(Stage.COMMAND, command_ns))
