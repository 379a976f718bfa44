"""Joint limits: every joint has all of them, finite and positive, or the model does not load."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import RobotModelError

_POSITIVE = ("velocity", "acceleration", "jerk", "effort")
_POSITION = ("lower", "upper")
_KNOWN = (*_POSITION, *_POSITIVE, "continuous")


@dataclass(frozen=True)
class JointLimits:
    """Limits of all joints, in the order of ``names``; arrays are (n,) and read-only.

    Invariant: lower < upper; velocity, acceleration, jerk and effort are finite and above 0.
    Continuous joints, and only they, have lower = -inf and upper = inf.

    Attributes:
        names: joints (n).
        lower: [rad].
        upper: [rad].
        velocity: [rad/s].
        acceleration: [rad/s^2].
        jerk: [rad/s^3].
        effort: [N m].
        continuous: joints that turn without end.
    """

    names: tuple[str, ...]
    lower: FloatArray
    upper: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    jerk: FloatArray
    effort: FloatArray
    continuous: npt.NDArray[np.bool_]


def parse_limits(names: Sequence[str], joints: Mapping[str, Any], source: str) -> JointLimits:
    """Return the limits of ``names`` from ``joints``: joint -> {limit: value}.

    Args:
        names: joints of the robot, in its order.
        joints: as read from YAML; ``continuous`` is optional, ``lower`` and ``upper`` are left out
            of a continuous joint, all else is required.
        source: where the mapping came from, for messages.

    Raises:
        RobotModelError: a limit is missing, 0, negative, not finite or inverted, or a joint or
            limit is not known; the message names the joint.
    """
    if not isinstance(joints, Mapping):
        raise RobotModelError(f"{source}: joints must be a mapping, got {joints!r}")
    unknown = sorted(set(joints) - set(names))
    if unknown:
        raise RobotModelError(
            f"{source}: limits for unknown joint {', '.join(unknown)}; "
            f"joints are {', '.join(names)}"
        )
    rows = [_parse_joint(name, joints.get(name), source) for name in names]
    columns = {key: np.array([row[key] for row in rows], dtype=float) for key in _KNOWN[:-1]}
    continuous = np.array([row["continuous"] for row in rows], dtype=bool)
    for array in (*columns.values(), continuous):
        array.flags.writeable = False
    return JointLimits(names=tuple(names), continuous=continuous, **columns)


def _parse_joint(name: str, entry: Any, source: str) -> dict[str, float]:
    if not isinstance(entry, Mapping):
        raise RobotModelError(f"{source}: {name} has no limits, got {entry!r}")
    unknown = sorted(str(key) for key in set(entry) - set(_KNOWN))
    if unknown:
        raise RobotModelError(
            f"{source}: {name} has unknown limit {', '.join(unknown)}; "
            f"limits are {', '.join(_KNOWN)}"
        )
    continuous = entry.get("continuous", False)
    if not isinstance(continuous, bool):
        raise RobotModelError(
            f"{source}: {name} continuous must be true or false, got {continuous!r}"
        )
    row: dict[str, float] = {"continuous": continuous}
    for key in _POSITIVE:
        value = _number(name, key, entry, source)
        if value <= 0.0:
            raise RobotModelError(f"{source}: {name} {key} must be above 0, got {value:g}")
        row[key] = value
    if continuous:
        given = [key for key in _POSITION if key in entry]
        if given:
            raise RobotModelError(
                f"{source}: {name} is continuous and has no {' and '.join(given)}"
            )
        row["lower"], row["upper"] = -math.inf, math.inf
        return row
    for key in _POSITION:
        row[key] = _number(name, key, entry, source)
    if row["lower"] >= row["upper"]:
        raise RobotModelError(
            f"{source}: {name} lower must be below upper, got {row['lower']:g} and {row['upper']:g}"
        )
    return row


def _number(name: str, key: str, entry: Mapping[str, Any], source: str) -> float:
    value = entry.get(key)
    if value is None:
        raise RobotModelError(f"{source}: {name} {key} is missing")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise RobotModelError(f"{source}: {name} {key} must be a number, got {value!r}")
    if not math.isfinite(value):
        raise RobotModelError(f"{source}: {name} {key} must be finite, got {value}")
    return float(value)
