"""Fits all drives of an arm and makes their next execution value."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from kv_action_router.contracts import SLOT, ExecutionValue, FloatArray
from kv_action_router.errors import InputError
from kv_action_router.monitoring.calibration.limits import NEWS, UNITS, Refusal
from kv_action_router.monitoring.calibration.rows import Column
from kv_action_router.monitoring.calibration.torque import fit_torque
from kv_action_router.monitoring.calibration.winding import fit_winding
from kv_action_router.robots.execution_values import check_slots
from kv_action_router.robots.model import RobotModel


@dataclass(frozen=True, slots=True)
class DriveFit:
    """What became of one drive.

    Attributes:
        drive: name.
        slots: that a new value has for it, by name; empty = nothing was taken over.
        changes: what is new in them, for people; empty = nothing.
        refusals: what was not taken over, and why.
    """

    drive: str
    slots: dict[str, float]
    changes: tuple[str, ...]
    refusals: tuple[Refusal, ...]

    def __str__(self) -> str:
        said = [*self.changes] or ["nothing new" if self.slots else "as it was"]
        said += [f"refused: {refusal}" for refusal in self.refusals]
        return f"{self.drive}: {', '.join(said)}"


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """What a calibration came to.

    Attributes:
        fits: one a drive.
        value: next execution value; None = there is nothing new.
        rows: that were fitted.
    """

    fits: tuple[DriveFit, ...]
    value: ExecutionValue | None
    rows: int

    @property
    def fitted(self) -> int:
        """Number of drives of which something was taken over, or found unchanged."""
        return sum(bool(fit.slots) for fit in self.fits)

    def __str__(self) -> str:
        return "; ".join(map(str, self.fits))


class DriveCalibration:
    """Fits rows without load. One thread may use it: the model keeps its last computation.

    Invariant: what is refused stays as it is in force. A value that is made is finite, inside its
    bounds, and made from the one that was given.
    """

    def __init__(self, robot: RobotModel, data_sheet: ExecutionValue) -> None:
        """Prepare.

        Args:
            robot: whose inverse dynamics tell the torques.
            data_sheet: what its drives begin with.

        Raises:
            InputError: the data sheet lacks a joint.
        """
        self._robot = robot
        self._data_sheet = self._rows_of(data_sheet)[:, SLOT["torque_constant"]].tolist()

    def fit(self, rows: FloatArray, value: ExecutionValue) -> CalibrationReport:
        """Fit rows (k, len(Column), n) against the execution value in force.

        Raises:
            InputError: the value lacks a joint.
        """
        slots = self._rows_of(value).copy()
        torque = self._torques(rows)
        fits = []
        for index, drive in enumerate(self._robot.joint_names):
            row = slots[index]
            measured = rows[:, :, index]
            velocity, current = measured[:, Column.VELOCITY], measured[:, Column.CURRENT]
            winding = fit_winding(
                row, measured[:, Column.VOLTAGE], current, velocity,
                measured[:, Column.TEMPERATURE],
            )  # fmt: skip
            moving = fit_torque(
                row, self._data_sheet[index], torque[:, index], velocity, current, winding.back_emf
            )
            new = {**winding.slots, **moving.slots}
            refusals = (*winding.refusals, *moving.refusals)
            changes = []
            for name, after in new.items():
                before = float(row[SLOT[name]])
                if abs(after - before) > NEWS[name] * abs(before):
                    changes.append(f"{name} {before:.4g} -> {after:.4g} {UNITS[name]}")
                    row[SLOT[name]] = after
            fits.append(DriveFit(drive, new, tuple(changes), refusals))
        return CalibrationReport(tuple(fits), self._next(value, slots, fits), len(rows))

    def _next(
        self, value: ExecutionValue, rows: FloatArray, fits: list[DriveFit]
    ) -> ExecutionValue | None:
        changed = [fit for fit in fits if fit.changes]
        if not changed:
            return None
        slots = value.slots.copy()
        for row, drive in zip(rows, self._robot.joint_names, strict=True):
            slots[value.drives.index(drive)] = row
        check_slots(value.drives, slots)
        slots.flags.writeable = False
        said = "; ".join(f"{fit.drive}: {', '.join(fit.changes)}" for fit in changed)
        return dataclasses.replace(
            value,
            slots=slots,
            version=value.version + 1,
            base_version=value.version,
            provenance=f"calibration: {said}",
        )

    def _rows_of(self, value: ExecutionValue) -> FloatArray:
        """Return a value's slots in the order of the arm's joints (n, 32)."""
        missing = [name for name in self._robot.joint_names if name not in value.drives]
        if missing:
            raise InputError("drives", f"with {', '.join(missing)}", ", ".join(value.drives))
        order = [value.drives.index(name) for name in self._robot.joint_names]
        return np.asarray(value.slots[order])

    def _torques(self, rows: FloatArray) -> FloatArray:
        """Return what gravity and inertia ask for in each row [N m] (k, n)."""
        torques = np.empty((len(rows), self._robot.n))
        motions = rows[:, [Column.POSITION, Column.VELOCITY, Column.ACCELERATION]]
        for torque, (position, velocity, acceleration) in zip(torques, motions, strict=True):
            torque[:] = self._robot.inverse_dynamics(position, velocity, acceleration)
        return torques
