"""Execution layer: what a drive's own feedback does to its execution value. No ROS, no loop.

A value *dies* only through a physical predicate: temperature, protective clamp, stall, a jump of
the wheel speed, or a row of the response table that hits the execution layer. Then its confidence
bit falls; a hot drive also switches to its stored derated share. A drive's own limits are slots of
its value, the rows hold for all drives; whatever is crossed first counts. What stays of stall, slip
and heat when they are over is in ``adjustment``.
"""

from __future__ import annotations

import dataclasses
import math
from enum import IntFlag

import numpy as np

from kv_action_router.contracts import (
    SLOT,
    DriveSample,
    ExecutionValue,
    ImuSample,
    JointSample,
)
from kv_action_router.injection.adjustment import Lesson, adjust
from kv_action_router.injection.execution_conditions import Finding
from kv_action_router.tasks.rules import Response

GRAVITY = 9.80665  # [m/s^2] standard acceleration of free fall
TRIM_SMOOTHING = 0.05  # share of a new IMU sample in the trim
TEMPERATURE_HYSTERESIS = 5.0  # [K]

_DERATING = SLOT["derating"]
_DERATED_SHARE = SLOT["derated_share"]
_TEMPERATURE_LIMIT = SLOT["temperature_limit"]
_WHEEL_JUMP_LIMIT = SLOT["wheel_jump_limit"]
_TRIM = SLOT["acceleration_trim_x"]


class DriveFault(IntFlag):
    """Why a drive's value is not confident."""

    NONE = 0
    TEMPERATURE = 1
    CLAMP = 2
    STALL = 4
    WHEEL_JUMP = 8
    DERATED = 16  # by a row of the response table, for as long as it holds
    CONDITION = 32  # by a row that invalidates


_HOT = DriveFault.TEMPERATURE | DriveFault.DERATED


def update_cache(
    sample: DriveSample | JointSample | ImuSample, value: ExecutionValue
) -> ExecutionValue:
    """Return the execution value after one sample of a robot's feedback.

    Drive temperatures over their limit lower the confidence bit and the derating, and raise them
    again 5 K below it. A joint state that shows a protective effort, or a stall, lowers the bit;
    only a new value raises it then. An IMU sample moves the three trims.

    Args:
        sample: drive feedback, joint state or IMU sample; what is not measured is left out.
        value: in force until now; never written into.

    Returns:
        The same object when nothing changed, else a new value with the next version.
    """
    if isinstance(sample, ImuSample):
        old = value.slots[0, _TRIM : _TRIM + 3].tolist() if len(value.drives) else [0.0, 0.0, 0.0]
        trim = acceleration_trim(sample, (old[0], old[1], old[2]))
        slots = value.slots.copy()
        slots[:, _TRIM : _TRIM + 3] = trim
        if np.array_equal(slots, value.slots):
            return value
        return _next(value, slots, value.confident, "acceleration trim")
    layer = ExecutionLayer(value)
    if isinstance(sample, DriveSample):
        return layer.on_drives(sample, value)
    return layer.on_joints(sample, value)


class ExecutionLayer:
    """Remembers why each drive lost its confidence, and the last wheel speeds.

    Invariant: a drive's confidence bit is set exactly when no fault stands against it.
    """

    def __init__(
        self, value: ExecutionValue, temperature_hysteresis: float = TEMPERATURE_HYSTERESIS
    ) -> None:
        self._hysteresis = temperature_hysteresis
        self._faults: dict[str, DriveFault] = {}
        self._derated_by: dict[str, set[str]] = {}  # drive -> rows
        self._wheel_speed: dict[str, float] = {}
        self.reset(value)

    def reset(self, value: ExecutionValue) -> None:
        """Take the faults from a value that came from outside."""
        self._faults = {}
        self._derated_by.clear()
        for drive, confident, row in zip(value.drives, value.confident, value.slots, strict=True):
            if confident:
                continue
            hot = row[_DERATING] <= row[_DERATED_SHARE] < 1.0
            self._faults[drive] = DriveFault.TEMPERATURE if hot else DriveFault.CLAMP

    def fault(self, drive: str) -> DriveFault:
        """Return what stands against a drive."""
        return self._faults.get(drive, DriveFault.NONE)

    def on_drives(self, sample: DriveSample, value: ExecutionValue) -> ExecutionValue:
        """Return the value after temperatures and wheel speeds were seen."""
        for index, drive in enumerate(sample.names):
            if drive not in value.drives:
                continue
            row = value.slots[value.drives.index(drive)]
            if index < len(sample.temperature):
                value = self._heat(drive, float(sample.temperature[index]), row, value)
            if index < len(sample.wheel_speed):
                value = self._wheel(drive, float(sample.wheel_speed[index]), row, value)
        return value

    def on_joints(self, sample: JointSample, value: ExecutionValue) -> ExecutionValue:
        """Return the value after measured efforts were seen; NaN = not measured."""
        for index, drive in enumerate(sample.names):
            if drive not in value.drives or index >= len(sample.effort):
                continue
            row = value.slots[value.drives.index(drive)]
            effort = abs(float(sample.effort[index]))
            speed = abs(float(sample.velocity[index])) if index < len(sample.velocity) else math.nan
            if effort > row[SLOT["protective_effort_limit"]]:
                value = self.raise_fault(drive, DriveFault.CLAMP, value)
            elif effort > row[SLOT["stall_effort"]] and speed < row[SLOT["stall_velocity"]]:
                value = self.raise_fault(drive, DriveFault.STALL, value)
        return value

    def on_finding(self, finding: Finding, value: ExecutionValue) -> ExecutionValue:
        """Return the value after a row of the response table began to hold, or no longer does."""
        rule, drive = finding.rule, finding.drive
        if drive not in value.drives:
            return value
        faults = self.fault(drive)
        reason = f"{drive}: {rule.describe(drive, finding.value)}"
        if Response.DERATE in rule.responses:
            rows = self._derated_by.setdefault(drive, set())
            if finding.holds:
                rows.add(rule.name)
            else:
                rows.discard(rule.name)
                reason = f"{drive}: {rule.name} is over at {finding.value:.4g}"
            faults = faults | DriveFault.DERATED if rows else faults & ~DriveFault.DERATED
        if Response.INVALIDATE in rule.responses and finding.holds:
            faults |= DriveFault.CONDITION
        return self._set(drive, faults, value, reason)

    def raise_fault(self, drive: str, fault: DriveFault, value: ExecutionValue) -> ExecutionValue:
        """Return the value after something was seen against a drive."""
        return self._set(drive, self.fault(drive) | fault, value, f"{drive}: {fault.name}")

    def _heat(
        self, drive: str, temperature: float, row: np.ndarray, value: ExecutionValue
    ) -> ExecutionValue:
        limit = float(row[_TEMPERATURE_LIMIT])
        faults = self.fault(drive)
        hot = bool(faults & DriveFault.TEMPERATURE)
        if not hot and temperature > limit:  # NaN compares false: not measured changes nothing
            reason = f"{drive}: {temperature:.1f} degC above {limit:.1f}"
            return self._set(drive, faults | DriveFault.TEMPERATURE, value, reason)
        if hot and temperature < limit - self._hysteresis:
            reason = f"{drive}: cooled down to {temperature:.1f} degC"
            return self._set(drive, faults & ~DriveFault.TEMPERATURE, value, reason)
        return value

    def _wheel(
        self, drive: str, speed: float, row: np.ndarray, value: ExecutionValue
    ) -> ExecutionValue:
        if not math.isfinite(speed):
            return value
        last = self._wheel_speed.get(drive, speed)
        self._wheel_speed[drive] = speed
        limit = float(row[_WHEEL_JUMP_LIMIT])
        if limit > 0.0 and abs(speed - last) > limit:
            return self.raise_fault(drive, DriveFault.WHEEL_JUMP, value)
        return value

    def _set(
        self, drive: str, faults: DriveFault, value: ExecutionValue, reason: str
    ) -> ExecutionValue:
        before = self.fault(drive)
        if faults == before:
            return value
        self._faults[drive] = faults
        index = value.drives.index(drive)
        slots = value.slots.copy()
        row = slots[index]
        row[_DERATING] = row[_DERATED_SHARE] if faults & _HOT else 1.0
        steps = [step for lesson in _lessons(before, faults) if (step := adjust(row, lesson))]
        trusted = faults == DriveFault.NONE
        if value.confident[index] == trusted and np.array_equal(row, value.slots[index]):
            return value  # another fault stands against the drive already
        confident = value.confident.copy()
        confident[index] = trusted
        return _next(value, slots, confident, "; ".join([reason, *steps]))


def _lessons(before: DriveFault, after: DriveFault) -> list[Lesson]:
    """Return what the change of a drive's faults teaches."""
    begun = after & ~before
    lessons = []
    if begun & DriveFault.STALL:
        lessons.append(Lesson.STALL)
    if begun & DriveFault.WHEEL_JUMP:
        lessons.append(Lesson.SLIP)
    if before & _HOT and not after & _HOT:
        lessons.append(Lesson.HEAT)
    return lessons


def acceleration_trim(
    sample: ImuSample, trim: tuple[float, float, float]
) -> tuple[float, float, float]:
    """Return the trim after one IMU sample: smoothed acceleration without gravity [m/s^2], bounded.

    Gravity is taken out along the measured orientation, else along the acceleration itself. A
    sample without a finite acceleration leaves the trim as it is.
    """
    x, y, z = (float(value) for value in sample.linear_acceleration)
    length = math.sqrt(x * x + y * y + z * z)
    if not math.isfinite(length) or length < 1e-9:
        return trim
    qx, qy, qz, qw = (float(value) for value in sample.orientation)
    norm = qx * qx + qy * qy + qz * qz + qw * qw
    if math.isfinite(norm) and abs(norm - 1.0) < 0.1:
        up = (2.0 * (qx * qz - qw * qy), 2.0 * (qy * qz + qw * qx), 1.0 - 2.0 * (qx * qx + qy * qy))
    else:
        up = (x / length, y / length, z / length)
    share = TRIM_SMOOTHING
    moved = [
        old + share * (measured - GRAVITY * axis - old)
        for old, measured, axis in zip(trim, (x, y, z), up, strict=True)
    ]
    return tuple(min(50.0, max(-50.0, value)) for value in moved)  # type: ignore[return-value]


def _next(
    value: ExecutionValue, slots: np.ndarray, confident: np.ndarray, provenance: str
) -> ExecutionValue:
    slots.flags.writeable = False
    confident = np.asarray(confident)
    return dataclasses.replace(
        value,
        slots=slots,
        confident=confident,
        version=value.version + 1,
        base_version=value.version,
        provenance=provenance,
    )
