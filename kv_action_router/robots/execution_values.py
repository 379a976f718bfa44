"""The YAML file of execution values: slots of every drive, by name, inside bounds."""

from __future__ import annotations

import math
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from kv_action_router.contracts import SLOT, SLOT_NAMES, ExecutionValue
from kv_action_router.errors import ConfigError, InputError

# Smallest and largest value of each slot, inclusive; units as in contracts.SLOT_NAMES.
SLOT_BOUNDS: dict[str, tuple[float, float]] = {
    "acceleration_trim_x": (-50.0, 50.0),
    "acceleration_trim_y": (-50.0, 50.0),
    "acceleration_trim_z": (-50.0, 50.0),
    "proportional_gain": (0.0, 1e5),
    "integral_gain": (0.0, 1e6),
    "derivative_gain": (0.0, 1e4),
    "integral_limit": (0.0, 1e3),
    "gravity_scale": (0.0, 2.0),
    "stage_effort_limit": (0.01, 1e4),
    "stage_velocity_limit": (0.001, 100.0),
    "stage_force_limit": (0.01, 1e5),
    "protective_effort_limit": (0.01, 1e4),
    "protective_velocity_limit": (0.001, 100.0),
    "protective_force_limit": (0.01, 1e5),
    "torque_constant": (1e-6, 1e3),
    "winding_resistance": (0.0, 1e3),
    "temperature_coefficient": (0.0, 0.1),
    "temperature_limit": (0.0, 200.0),
    "derating": (0.0, 1.0),
    "derated_share": (0.0, 1.0),
    "coulomb_friction": (0.0, 1e3),
    "viscous_friction": (0.0, 1e3),
    "friction_velocity": (1e-4, 10.0),
    "backlash": (0.0, 1.0),
    "rated_current": (1e-3, 1e3),
    "stall_velocity": (0.0, 10.0),
    "stall_effort": (0.01, 1e4),
    "wheel_jump_limit": (0.0, 1e3),
    "search_offset_x": (-1.0, 1.0),
    "search_offset_y": (-1.0, 1.0),
    "search_offset_z": (-1.0, 1.0),
    "acceleration_limit": (0.01, 1e3),
}
# Smallest and largest torque constant that calibration may find, in shares of the data sheet's.
TORQUE_CONSTANT_BAND = (0.5, 1.5)
_LOWER = np.array([SLOT_BOUNDS[name][0] for name in SLOT_NAMES], dtype=np.float32)
_UPPER = np.array([SLOT_BOUNDS[name][1] for name in SLOT_NAMES], dtype=np.float32)


def check_slots(drives: Sequence[str], slots: npt.NDArray[np.floating[Any]]) -> None:
    """Refuse slots that are not (len(drives), 32), not finite, or out of bounds.

    Raises:
        InputError: naming drive and slot, its limits and the value received.
    """
    shape = (len(drives), len(SLOT_NAMES))
    if slots.shape != shape:
        raise InputError("slots", f"of shape {shape}", slots.shape)
    good = np.isfinite(slots) & (slots >= _LOWER) & (slots <= _UPPER)  # NaN compares false
    if good.all():
        return
    row, column = (int(index) for index in np.argwhere(~good)[0])
    name = SLOT_NAMES[column]
    low, high = SLOT_BOUNDS[name]
    raise InputError(
        f"{drives[row]}.{name}", f"finite, {low:g} to {high:g}", float(slots[row, column])
    )


def load_execution_value(name_or_path: str = "ur5e", prefix: str = "") -> ExecutionValue:
    """Read the execution values that a robot starts with.

    Args:
        name_or_path: robot in ``config/execution_values.yaml``, or the path of such a file
            (with one robot in it, or the only one is taken).
        prefix: of the joint names.

    Returns:
        Version 1, all drives confident.

    Raises:
        ConfigError: the file or the robot is missing, or a slot is missing, unknown or out of
            bounds; the message names it.
    """
    is_path = name_or_path.endswith((".yaml", ".yml"))
    path = Path(name_or_path) if is_path else _packaged_file()
    if not path.is_file():
        raise ConfigError("execution_values", "an existing YAML file", str(path))
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(content, Mapping) or not content:
        raise ConfigError("execution_values", "a mapping of robots", content)
    robot = next(iter(content)) if is_path and len(content) == 1 else name_or_path
    if robot not in content:
        raise ConfigError("execution_values", f"one of {', '.join(map(str, content))}", robot)
    entry = content[robot]
    if not isinstance(entry, Mapping) or not isinstance(entry.get("drives"), Mapping):
        raise ConfigError(f"execution_values.{robot}", "a mapping with drives", entry)
    common = entry.get("common", {})
    drives = tuple(prefix + str(drive) for drive in entry["drives"])
    slots = np.array(
        [_row(str(drive), {**common, **own}) for drive, own in entry["drives"].items()],
        dtype=np.float32,
    )
    try:
        check_slots(drives, slots)
    except InputError as error:
        raise ConfigError(error.field, error.limit, error.value) from error
    slots.flags.writeable = False
    confident = np.ones(len(drives), dtype=np.bool_)
    confident.flags.writeable = False
    return ExecutionValue(drives, slots, confident, 1, 0, f"{path.name}: {robot}")


def _row(drive: str, given: Mapping[str, Any]) -> list[float]:
    unknown = sorted(set(given) - set(SLOT))
    if unknown:
        raise ConfigError(f"{drive}.{unknown[0]}", f"one of {', '.join(SLOT_NAMES)}", unknown[0])
    row = []
    for name in SLOT_NAMES:
        value = given.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ConfigError(f"{drive}.{name}", "a number", value)
        if not math.isfinite(value):
            raise ConfigError(f"{drive}.{name}", "finite", value)
        row.append(float(value))
    return row


def _packaged_file() -> Path:
    for folder in _folders():
        path = folder / "execution_values.yaml"
        if path.is_file():
            return path
    raise ConfigError("execution_values", "a file that exists", "config/execution_values.yaml")


def _folders() -> Iterator[Path]:
    """Yield where ``config/`` may be: the source tree, then the installation's share folder."""
    here = Path(__file__).resolve()
    yield here.parents[2] / "config"
    for parent in here.parents:
        yield parent / "share" / "kv_action_router" / "config"
    yield Path(sysconfig.get_path("data")) / "share" / "kv_action_router" / "config"
