"""Execution values in force: an immutable snapshot that is swapped as a whole.

The control loop is the only writer; any thread may read. A reader takes ``table.current`` once and
uses that object: a swap is one reference assignment, so that no reader ever sees half of an old and
half of a new value. Writing into a snapshot in place would break that (and raises, its arrays are
read-only).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kv_action_router.contracts import SLOT, ExecutionValue, FloatArray
from kv_action_router.errors import InputError, StaleVersionError
from kv_action_router.injection.robot import JointModel
from kv_action_router.robots.execution_values import TORQUE_CONSTANT_BAND, check_slots

Row = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One execution value in the model's joint order, unpacked for the control loop; rows are (n,).

    Attributes:
        value: what it was made from, in the model's joint order.
        effort_limit: smaller of the stage's, the protective and the model's limit, derated [N m].
        protective_effort: [N m], not derated.
        velocity_limit: smallest of the stage's, the protective and the model's [rad/s].
        acceleration_limit: smaller of the value's and the model's [rad/s^2].
        slowest: smallest velocity limit [rad/s].
        gentlest: smallest acceleration limit [rad/s^2].
        alarming: a drive below this effort is neither clamped nor stalled [N m].
        effort_scale: effort that a drive is to be sent over the one that it should give: drives
            turn efforts into currents with the torque constant of their data sheet.
        rated_torque: effort that a drive is sent at rated current [N m].
        true_to_name: whether all effort scales are 1.
        derated: whether any drive's effort is derated now.
        plain_gravity: whether all gravity scales are 1.
        wheels: whether any drive has a limit of its wheel's jumps.
    """

    value: ExecutionValue
    proportional: Row
    integral: Row
    derivative: Row
    integral_limit: Row
    gravity_scale: Row
    effort_limit: Row
    protective_effort: Row
    velocity_limit: Row
    acceleration_limit: Row
    coulomb_friction: Row
    viscous_friction: Row
    friction_velocity: Row
    stall_velocity: Row
    stall_effort: Row
    rated_torque: Row
    effort_scale: Row
    temperature_limit: Row
    slowest: float
    gentlest: float
    alarming: Row
    true_to_name: bool
    derated: bool
    all_confident: bool
    plain_gravity: bool
    wheels: bool


class ExecutionTable:
    """Holds the execution value in force.

    Invariant: ``current`` is complete, finite, inside its bounds, and its version only rises. No
    torque constant leaves the ``TORQUE_CONSTANT_BAND`` around the data sheet's, which is that of
    the value that the table began with.
    """

    def __init__(self, model: JointModel, initial: ExecutionValue) -> None:
        """Begin with what the robot's file says; its torque constants are the data sheet's."""
        self._model = model
        self._pristine = True
        self._untold = False  # the control loop has changed it, and nobody has confirmed that
        self._data_sheet: FloatArray | None = None  # torque constants [N m/A] (n,)
        self.acceleration_trim = (0.0, 0.0, 0.0)  # [m/s^2] live, swapped as one tuple
        self.current = self._snapshot(initial)

    def apply(self, value: ExecutionValue) -> Snapshot:
        """Put a value from outside in force; the one that is in force already is no news.

        Versions between the two may be missing: the stream holds the newest one only, and what is
        not heard of is in the newest.

        Raises:
            StaleVersionError: it was made from a version that is no longer in force, or without
                what the control loop has changed since.
            InputError: it is incomplete, not finite or out of bounds.
        """
        present = self.current.value
        version = present.version
        if value.version == version and value.base_version == present.base_version:
            self._untold = False
            return self.current
        # What was read from the file at start gives way to whatever the durable copy has become.
        first = self._pristine and value.version > version
        missed = value.base_version > version and not self._untold
        if value.base_version != version and not (first or missed):
            raise StaleVersionError(
                f"execution value {value.version} was made from version {value.base_version}, "
                f"version {version} is in force"
            )
        if value.version <= version:
            raise StaleVersionError(
                f"execution value {value.version} is not newer than version {version}"
            )
        self.current = self._snapshot(value)
        self._pristine = self._untold = False
        return self.current

    def swap(self, value: ExecutionValue) -> Snapshot:
        """Put the control loop's own change of the value in force."""
        self.current = self._snapshot(value)
        self._pristine, self._untold = False, True
        return self.current

    def published(self) -> ExecutionValue:
        """Return the value in force with the live trims written into it."""
        value = self.current.value
        slots = value.slots.copy()
        slots[:, :3] = self.acceleration_trim
        slots.flags.writeable = False
        return dataclasses.replace(value, slots=slots)

    def _snapshot(self, value: ExecutionValue) -> Snapshot:
        names = self._model.joint_names
        if sorted(value.drives) != sorted(names):
            raise InputError("drives", f"{', '.join(names)}, each once", ", ".join(value.drives))
        if len(value.confident) != len(names):
            raise InputError("confident", f"of size {len(names)}", len(value.confident))
        check_slots(value.drives, value.slots)
        order = [value.drives.index(name) for name in names]
        slots = np.array(value.slots[order], dtype=np.float32)
        confident = np.array(value.confident, dtype=np.bool_)[order]
        slots.flags.writeable = False
        confident.flags.writeable = False
        ordered = dataclasses.replace(value, drives=names, slots=slots, confident=confident)
        constant = slots[:, SLOT["torque_constant"]].astype(float)
        if self._data_sheet is None:
            self._data_sheet = constant
        _check_constants(names, constant, self._data_sheet)
        return _unpack(ordered, self._model, self._data_sheet)


def _check_constants(drives: Sequence[str], constant: FloatArray, data_sheet: FloatArray) -> None:
    low, high = TORQUE_CONSTANT_BAND
    for drive, present, new in zip(drives, constant.tolist(), data_sheet.tolist(), strict=True):
        if not low * new <= present <= high * new:
            limit = f"{low * new:g} to {high * new:g} N m/A ({low:g} to {high:g} of its data sheet)"
            raise InputError(f"{drive}.torque_constant", limit, present)


def _unpack(value: ExecutionValue, model: JointModel, data_sheet: FloatArray) -> Snapshot:
    columns = value.slots.astype(float)

    def row(name: str) -> Row:
        return tuple(columns[:, SLOT[name]].tolist())

    def smallest(*arrays: np.ndarray) -> Row:
        return tuple(np.minimum.reduce(arrays).tolist())

    derating = columns[:, SLOT["derating"]]
    protective = columns[:, SLOT["protective_effort_limit"]]
    stage = columns[:, SLOT["stage_effort_limit"]]
    rated = data_sheet * columns[:, SLOT["rated_current"]]
    scale = data_sheet / columns[:, SLOT["torque_constant"]]
    most = model.effort_limit / np.maximum(scale, 1.0)  # that the drive can give
    velocity_limit = smallest(
        columns[:, SLOT["stage_velocity_limit"]],
        columns[:, SLOT["protective_velocity_limit"]],
        model.velocity_limit,
    )
    acceleration_limit = smallest(columns[:, SLOT["acceleration_limit"]], model.acceleration_limit)
    return Snapshot(
        value=value,
        proportional=row("proportional_gain"),
        integral=row("integral_gain"),
        derivative=row("derivative_gain"),
        integral_limit=row("integral_limit"),
        gravity_scale=row("gravity_scale"),
        effort_limit=smallest(stage * derating, protective * derating, most * derating),
        protective_effort=smallest(protective, model.effort_limit),
        velocity_limit=velocity_limit,
        acceleration_limit=acceleration_limit,
        coulomb_friction=row("coulomb_friction"),
        viscous_friction=row("viscous_friction"),
        friction_velocity=row("friction_velocity"),
        stall_velocity=row("stall_velocity"),
        stall_effort=row("stall_effort"),
        rated_torque=tuple(rated.tolist()),
        effort_scale=tuple(scale.tolist()),
        true_to_name=bool((scale == 1.0).all()),
        derated=bool((derating < 1.0).any()),
        temperature_limit=row("temperature_limit"),
        slowest=min(velocity_limit),
        gentlest=min(acceleration_limit),
        alarming=smallest(protective, model.effort_limit, columns[:, SLOT["stall_effort"]]),
        all_confident=bool(value.confident.all()),
        plain_gravity=bool((columns[:, SLOT["gravity_scale"]] == 1.0).all()),
        wheels=bool((columns[:, SLOT["wheel_jump_limit"]] > 0.0).any()),
    )
