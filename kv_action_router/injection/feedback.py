"""Fills the injector's feedback message in place, from the control loop."""

from __future__ import annotations

import dataclasses
import math
import struct
from array import array
from collections.abc import Callable
from typing import Any

from kv_action_router.contracts import Decision, InjectorEvent, Stage, TrajectoryChunk
from kv_action_router.injection.controller import InjectionController
from kv_action_router.injection.events import Event
from kv_action_router.injection.execution_table import Snapshot
from kv_action_router.injection.lateness import Lateness, LatenessMeter

_NO_EVENT = int(InjectorEvent.NONE)


class FeedbackWriter:
    """Owns one message of type ``ExecutionFeedback``.

    Invariant: after :meth:`periodic` the message describes the chunk in force, after :meth:`event`
    the chunk in question.

    Most fields stay as they are for long, and each assignment of one is a call: what belongs
    together is only written when any of it has changed.
    """

    def __init__(
        self,
        message: Any,
        controller: InjectionController,
        write_decision: Callable[[Decision, Any], Any],
        robot_id: str,
    ) -> None:
        """Size the message.

        Args:
            message: to fill.
            controller: whose state it tells.
            write_decision: writes a decision into the message's header.
            robot_id: of the header while no chunk was followed.
        """
        n = len(controller.joints.names)
        self.message = message
        self._controller = controller
        self._write_decision = write_decision
        self._idle = Decision(robot_id=robot_id)
        self._in_force = self._idle
        self._written: Decision | None = None
        message.joint = list(controller.joints.names)
        message.command_interface = controller.config.command_interface
        self._pack = struct.Struct(f"{n}d").pack_into
        point = controller.set_point
        self._arrays: list[tuple[array[float], list[float]]] = []  # and what they tell
        for field, values in (
            ("position", controller.joints.position),
            ("velocity", controller.joints.velocity),
            ("setpoint_position", point.position),
            ("setpoint_velocity", point.velocity),
            ("command", controller.command.values),
        ):
            numbers = array("d", [0.0] * n)
            setattr(message, field, numbers)
            self._arrays.append((numbers, values))
        self._limits: Snapshot | None = None  # what was written last
        self._lateness: Lateness | None = None
        self._mode: tuple[object, ...] = ()
        self._rare: tuple[object, ...] = ()
        self._chunk: TrajectoryChunk | None = None
        message.chunk_sequence, message.phase = 0, math.nan

    def periodic(self, now_ns: int, meter: LatenessMeter) -> Any:
        """Return the message as it is due 100 times a second."""
        if self._controller.modes.chunk is None:
            self._in_force = self._idle
        self._decide(self._in_force)
        self._state(now_ns, meter, _NO_EVENT, "", self._controller.modes.epoch)
        return self.message

    def event(self, event: Event, meter: LatenessMeter) -> Any:
        """Return the message for an event."""
        decision = self._idle if event.chunk is None else event.chunk.decision
        if event.kind is InjectorEvent.CHUNK_ADOPTED:
            decision = _commanded(decision, event.command_ns)
            self._in_force = decision
        self._decide(decision)
        self._state(event.now_ns, meter, int(event.kind), event.reason, event.epoch)
        return self.message

    def _decide(self, decision: Decision) -> None:
        if decision is not self._written:
            self._write_decision(decision, self.message.decision)
            self._written = decision

    def _state(
        self, now_ns: int, meter: LatenessMeter, event: int, reason: str, epoch: int
    ) -> None:
        controller, message = self._controller, self.message
        counters, limits = controller.counters, controller.drives.limits
        message.monotonic_ns = now_ns
        message.ticks = counters.ticks
        message.confident_ticks = counters.confident_ticks
        message.commands_sent = counters.commands_sent
        for numbers, values in self._arrays:
            self._pack(numbers, 0, *values)
        state, chunk = controller.modes.state, controller.modes.chunk
        mode = (state, event, reason, epoch)
        if mode != self._mode:
            self._mode = mode
            message.state = int(state)
            message.event = event
            message.reason = reason
            message.epoch = epoch
        if chunk is not self._chunk:
            self._chunk = chunk
            message.chunk_sequence = 0 if chunk is None else chunk.decision.sequence
            message.phase = math.nan if chunk is None else chunk.phase
        rare = (
            meter.missed,
            meter.realtime,
            counters.chunks_adopted,
            counters.chunks_late,
            counters.chunks_refused,
            counters.late_commands_sent,
            controller.joints.refused + counters.refused_ticks,
        )
        if rare != self._rare:
            self._rare = rare
            message.missed_ticks = meter.missed
            message.realtime = meter.realtime
            message.chunks_adopted = counters.chunks_adopted
            message.chunks_late = counters.chunks_late
            message.chunks_refused = counters.chunks_refused
            message.late_commands_sent = counters.late_commands_sent
            message.samples_refused = controller.joints.refused + counters.refused_ticks
        if limits is not self._limits:
            self._limits = limits
            message.confident = limits.value.confident.tolist()
            message.execution_version = limits.value.version
        if meter.last is not self._lateness:
            last = self._lateness = meter.last
            message.lateness_p50_us = last.p50_us
            message.lateness_p99_us = last.p99_us
            message.lateness_p999_us = last.p999_us
            message.lateness_max_us = last.max_us
            message.rate_hz = meter.rate_hz


def _commanded(decision: Decision, command_ns: int) -> Decision:
    """Return the decision with the time of its first command."""
    return dataclasses.replace(decision, stage_ns=decision.at_stage(Stage.COMMAND, command_ns))
