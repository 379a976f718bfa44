"""The execution layer inside the control loop: live values, their faults, and what they report."""

from __future__ import annotations

from collections.abc import Sequence

from kv_action_router.contracts import DriveSample, ExecutionValue, InjectorEvent
from kv_action_router.errors import InputError, StaleVersionError
from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.drive_watch import DriveWatch
from kv_action_router.injection.events import Event
from kv_action_router.injection.execution_conditions import ExecutionConditions
from kv_action_router.injection.execution_layer import (
    DriveFault,
    ExecutionLayer,
    acceleration_trim,
)
from kv_action_router.injection.execution_table import ExecutionTable, Snapshot
from kv_action_router.injection.robot import JointModel
from kv_action_router.injection.signals import Inputs
from kv_action_router.tasks.rules import Response, Rule


class Drives:
    """Execution values in force.

    Invariant: what a drive's sample says is in force in the tick that takes the sample.

    Attributes:
        table: the values; other threads may read ``table.current``.
        hazard: drive that asks for the fail-safe; empty = none.
        hazard_reason: why, for people.
    """

    def __init__(
        self,
        model: JointModel,
        config: InjectionConfig,
        values: ExecutionValue,
        rules: Sequence[Rule] = (),
    ) -> None:
        self._names = model.joint_names
        self.table = ExecutionTable(model, values)
        self._layer = ExecutionLayer(self.table.current.value, config.temperature_hysteresis)
        self._conditions = ExecutionConditions(rules)
        self._watch = DriveWatch(len(self._names), config.protective_hold)
        self.limits: Snapshot = self.table.current
        self.hazard = self.hazard_reason = ""

    def reset(self) -> None:
        """Forget hazards and half-counted faults; the values stay."""
        self._watch.reset()
        self._conditions.reset()
        self.hazard = self.hazard_reason = ""

    def update(self, inputs: Inputs, now_ns: int, epoch: int) -> list[Event]:
        """Take drive feedback, IMU and a new value; return what must be told."""
        events: list[Event] = []
        if inputs.execution is not None:
            try:
                last = self.limits
                self.limits = self.table.apply(inputs.execution)
                if self.limits is not last:
                    self._layer.reset(self.limits.value)
                    self._watch.reset()
                    self._conditions.reset()
            except (StaleVersionError, InputError) as error:
                reason = f"execution value refused: {error}"
                events.append(
                    Event(InjectorEvent.DRIVE, reason, now_ns, epoch, source="cache_manager")
                )
        if inputs.drives is not None:
            if not self._uneventful(inputs.drives):
                self._judge_limits(inputs.drives, now_ns, epoch, events)
            if not self._conditions.quiet(inputs.drives):
                self._judge_rows(inputs.drives, now_ns, epoch, events)
        if inputs.imu is not None:
            self.table.acceleration_trim = acceleration_trim(
                inputs.imu, self.table.acceleration_trim
            )
        return events

    def _judge_limits(
        self, sample: DriveSample, now_ns: int, epoch: int, events: list[Event]
    ) -> None:
        before = self.limits.value
        after = self._layer.on_drives(sample, before)
        if after is before:
            return
        events.append(self._swap(after, now_ns, epoch))
        for name in self._names:
            if self._layer.fault(name) & DriveFault.WHEEL_JUMP and not self.hazard:
                self.hazard, self.hazard_reason = name, f"wheel speed of {name} jumped"

    def _judge_rows(
        self, sample: DriveSample, now_ns: int, epoch: int, events: list[Event]
    ) -> None:
        for finding in self._conditions.update(sample):
            before = self.limits.value
            after = self._layer.on_finding(finding, before)
            if after is not before:
                events.append(self._swap(after, now_ns, epoch))
            stops = finding.holds and Response.FAIL_SAFE in finding.rule.responses
            if stops and finding.drive in self._names and not self.hazard:
                self.hazard = finding.drive
                self.hazard_reason = finding.rule.describe(finding.drive, finding.value)

    def _uneventful(self, sample: DriveSample) -> bool:
        """Return whether a sample can change nothing: all drives confident, cool, and no wheels."""
        limits = self.limits
        if not limits.all_confident or limits.derated or limits.wheels:
            return False
        coolest = min(limits.temperature_limit)
        return not any(temperature > coolest for temperature in sample.temperature.tolist())

    def watch(
        self,
        dt: float,
        wanted: Sequence[float],
        sent: Sequence[float],
        velocity: Sequence[float],
        now_ns: int,
        epoch: int,
    ) -> Event | None:
        """Look for clamp and stall in this tick's efforts; return what must be told."""
        joint, fault = self._watch.update(dt, wanted, sent, velocity, self.limits)
        if joint < 0:  # the usual case
            return None
        if self._layer.fault(self._names[joint]) & fault:
            return None
        value = self._layer.raise_fault(self._names[joint], fault, self.limits.value)
        return self._swap(value, now_ns, epoch)

    def _swap(self, value: ExecutionValue, now_ns: int, epoch: int) -> Event:
        self.limits = self.table.swap(value)
        return Event(
            InjectorEvent.DRIVE,
            value.provenance,
            now_ns,
            epoch,
            source=value.provenance.partition(":")[0],
            execution=value,
        )
