"""Stage 4 in an episode: a command a step, feedback 100 times a second and on events."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kv_action_router.contracts import (
    KEY_SIZE,
    Decision,
    EntryUpdate,
    ExecutionFeedback,
    ExecutionValue,
    FloatArray,
    InjectorEvent,
    JointReading,
    TrajectoryChunk,
    UpdateOperation,
)
from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.controller import InjectionController
from kv_action_router.injection.events import Event
from kv_action_router.injection.signals import Inputs
from kv_action_router.injection.stop_latch import StopRequest
from kv_action_router.monitoring.events import FailureReport
from kv_action_router.robots.execution_values import load_execution_value
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.cell import Samples
from kv_action_router.simulation.stopwatch import Stopwatch
from kv_action_router.tasks.rule_file import default_table, load_rules
from kv_action_router.tasks.rules import STOPPING, Response, execution_rules

_FEEDBACK_NS = 10_000_000


class Injection:
    """Stage 4: a command a step, feedback 100 times a second and on events."""

    def __init__(
        self, config: InjectionConfig, robot: RobotModel, now_ns: int, times: Stopwatch
    ) -> None:
        self.controller = InjectionController(
            robot,
            config,
            load_execution_value(robot.name),
            rules=execution_rules(load_rules(config.conditions_file or default_table())),
        )
        self.controller.activate(now_ns)
        self.feedback: ExecutionFeedback | None = None  # newest
        self.events: list[Event] = []  # all but adoptions
        self.tracking_error = 0.0  # [rad] largest since the owner set it to 0
        self._updates: list[EntryUpdate] = []
        self._stops: list[StopRequest] = []
        self._execution: ExecutionValue | None = None
        self._led = ~robot.spindles  # joints whose distance from the set-point says something
        self._inputs = Inputs()
        self._times = times
        self._due_ns = 0

    def hear(
        self, reports: Sequence[FailureReport], execution: ExecutionValue | None = None
    ) -> None:
        """Engage the stop that the monitor's reports ask for; take a new execution value."""
        self._execution = execution or self._execution
        for report in reports:
            if not STOPPING.isdisjoint(report.responses):
                fail_safe = Response.FAIL_SAFE in report.responses
                self._stops.append(
                    StopRequest(
                        True, "failure_monitor", report.message, report.monotonic_ns, fail_safe
                    )
                )

    def __call__(self, samples: Samples, chunk: TrajectoryChunk | None) -> FloatArray | None:
        """Return the command (n,); None = silence."""
        controller, inputs, now_ns = self.controller, self._inputs, samples.now_ns
        inputs.clear()
        inputs.joints = JointReading.of(samples.joints)
        inputs.chunk, inputs.imu, inputs.drives = chunk, samples.imu, samples.drives
        inputs.stops += self._stops
        self._stops.clear()
        inputs.execution, self._execution = self._execution, None
        with self._times.measure("injector tick"):
            command = controller.tick(now_ns, inputs)
        if command.send:
            controller.sent(now_ns)
        self._tell(now_ns)
        return np.array(command.values) if command.send else None

    def taught(self) -> list[EntryUpdate]:
        """Return changed execution values, oldest first, once."""
        updates, self._updates = self._updates, []
        return updates

    def _tell(self, now_ns: int) -> None:
        controller = self.controller
        if controller.modes.chunk is not None:
            error = np.subtract(controller.set_point.position, controller.joints.position)
            self.tracking_error = max(self.tracking_error, float(np.abs(error[self._led]).max()))
        events = controller.modes.events
        while events:
            event = events.popleft()
            self.feedback = self._feedback(now_ns, event)
            if event.kind is not InjectorEvent.CHUNK_ADOPTED:
                self.events.append(event)
            if event.execution is not None:
                decision = None if event.chunk is None else event.chunk.decision
                self._updates.append(execution_update(event.execution, event.reason, decision))
        if now_ns >= self._due_ns:
            self._due_ns = now_ns + _FEEDBACK_NS
            self.feedback = self._feedback(now_ns, None)

    def _feedback(self, now_ns: int, event: Event | None) -> ExecutionFeedback:
        controller = self.controller
        modes, limits = controller.modes, controller.drives.limits
        chunk = modes.chunk
        told = chunk if event is None else event.chunk
        return ExecutionFeedback(
            decision=Decision() if told is None else told.decision,
            state=modes.state,
            event=InjectorEvent.NONE if event is None else event.kind,
            reason=modes.reason if event is None else event.reason,
            monotonic_ns=now_ns,
            epoch=modes.epoch,
            chunk_sequence=0 if chunk is None else chunk.decision.sequence,
            phase=math.nan if chunk is None else chunk.phase,
            joints=controller.joints.names,
            position=np.array(controller.joints.position),
            velocity=np.array(controller.joints.velocity),
            setpoint_position=np.array(controller.set_point.position),
            setpoint_velocity=np.array(controller.set_point.velocity),
            command=np.array(controller.command.values),
            command_interface=controller.config.command_interface,
            confident=limits.value.confident,
            execution_version=limits.value.version,
        )


def execution_update(
    value: ExecutionValue, reason: str, decision: Decision | None = None
) -> EntryUpdate:
    """Return the update that carries a changed execution value to the cache."""
    return EntryUpdate(
        decision=decision or Decision(),
        operation=UpdateOperation.EXECUTION,
        entry_id=0,
        entry_version=0,
        vector=np.zeros(KEY_SIZE, np.float32),
        behavior=None,
        execution=value,
        error=math.nan,
        false_hit=False,
        reason=reason,
    )
