"""Fills the injector's feedback message in place, from the control loop."""

from __future__ import annotations

import dataclasses
import math
from array import array
from collections.abc import Callable
from typing import Any

from kv_action_router.contracts import Decision, InjectorEvent, Stage
from kv_action_router.injection.controller import InjectionController
from kv_action_router.injection.events import Event
from kv_action_router.injection.lateness import LatenessMeter

_ARRAYS = ("position", "velocity", "setpoint_position", "setpoint_velocity", "command")


class FeedbackWriter:
    """Owns one message of type ``ExecutionFeedback``.

    Invariant: after :meth:`periodic` the message describes the chunk in force, after :meth:`event`
    the chunk in question.
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
        for field in _ARRAYS:
            setattr(message, field, array("d", [0.0] * n))

    def periodic(self, now_ns: int, meter: LatenessMeter) -> Any:
        """Return the message as it is due 100 times a second."""
        if self._controller.modes.chunk is None:
            self._in_force = self._idle
        self._decide(self._in_force)
        message = self.message
        message.event = int(InjectorEvent.NONE)
        message.reason = ""
        self._state(now_ns, meter)
        return message

    def event(self, event: Event, meter: LatenessMeter) -> Any:
        """Return the message for an event."""
        decision = self._idle if event.chunk is None else event.chunk.decision
        if event.kind is InjectorEvent.CHUNK_ADOPTED:
            decision = _commanded(decision, event.command_ns)
            self._in_force = decision
        self._decide(decision)
        message = self.message
        message.event = int(event.kind)
        message.reason = event.reason
        self._state(event.now_ns, meter)
        message.epoch = event.epoch
        return message

    def _decide(self, decision: Decision) -> None:
        if decision is not self._written:
            self._write_decision(decision, self.message.decision)
            self._written = decision

    def _state(self, now_ns: int, meter: LatenessMeter) -> None:
        controller, message = self._controller, self.message
        modes, counters, limits = controller.modes, controller.counters, controller.drives.limits
        message.state = int(modes.state)
        message.monotonic_ns = now_ns
        message.epoch = modes.epoch
        chunk = modes.chunk
        message.chunk_sequence = 0 if chunk is None else chunk.decision.sequence
        message.phase = math.nan if chunk is None else chunk.phase
        _copy(controller.joints.position, message.position)
        _copy(controller.joints.velocity, message.velocity)
        _copy(controller.set_point.position, message.setpoint_position)
        _copy(controller.set_point.velocity, message.setpoint_velocity)
        _copy(controller.command.values, message.command)
        message.confident = limits.value.confident.tolist()
        message.execution_version = limits.value.version
        message.ticks = counters.ticks
        message.confident_ticks = counters.confident_ticks
        message.missed_ticks = meter.missed
        message.chunks_adopted = counters.chunks_adopted
        message.chunks_late = counters.chunks_late
        message.chunks_refused = counters.chunks_refused
        message.commands_sent = counters.commands_sent
        message.late_commands_sent = counters.late_commands_sent
        message.samples_refused = controller.joints.refused + counters.refused_ticks
        last = meter.last
        message.lateness_p50_us = last.p50_us
        message.lateness_p99_us = last.p99_us
        message.lateness_p999_us = last.p999_us
        message.lateness_max_us = last.max_us
        message.rate_hz = meter.rate_hz
        message.realtime = meter.realtime


def _copy(values: list[float], field: Any) -> None:
    for index, value in enumerate(values):
        field[index] = value


def _commanded(decision: Decision, command_ns: int) -> Decision:
    """Return the decision with the time of its first command."""
    return dataclasses.replace(decision, stage_ns=decision.at_stage(Stage.COMMAND, command_ns))
