"""BehaviorValue <-> its message; no behavior is a message without knots."""

from __future__ import annotations

from kv_action_router import contracts
from kv_action_router.errors import InputError
from kv_action_router.msg import BehaviorValue
from kv_action_router.ros.conversions.fields import (
    doubles_from_field,
    fill_doubles,
    sized,
)
from kv_action_router.ros.conversions.geometry import pose_from_msg, pose_to_msg


def behavior_to_msg(
    behavior: contracts.BehaviorValue | None, msg: BehaviorValue | None = None
) -> BehaviorValue:
    """Write a behavior into ``msg`` (a new one when None) and return it; None empties it."""
    msg = BehaviorValue() if msg is None else msg
    if behavior is None:
        if len(msg.knots) or msg.subtask or msg.dimension:
            _clear(msg)
        pose_to_msg(None, msg.target)
        return msg
    msg.subtask = str(behavior.subtask)
    msg.dimension = [str(name) for name in behavior.dimensions]
    msg.degree = int(behavior.degree)
    fill_doubles(msg, "knots", behavior.knots)
    fill_doubles(msg, "coefficients", behavior.coefficients)
    msg.phase = float(behavior.phase)
    fill_doubles(msg, "decay", behavior.decay)
    pose_to_msg(behavior.target, msg.target)
    return msg


def behavior_from_msg(msg: BehaviorValue) -> contracts.BehaviorValue | None:
    """Return the behavior that a message carries, None when it has no knots.

    Raises:
        InputError: there are not n + degree + 1 knots, n * d coefficients and d decay factors, with
            n and d above 0.
    """
    if not len(msg.knots):
        return None
    columns = len(msg.dimension)
    if columns == 0:
        raise InputError("dimension", "at least one column", 0)
    rows = len(msg.knots) - msg.degree - 1
    if rows <= 0:
        raise InputError("knots", f"more than degree + 1 = {msg.degree + 1}", len(msg.knots))
    coefficients = doubles_from_field(msg.coefficients)
    return contracts.BehaviorValue(
        subtask=msg.subtask,
        dimensions=tuple(msg.dimension),
        degree=msg.degree,
        knots=doubles_from_field(msg.knots),
        coefficients=sized(coefficients, rows * columns, "coefficients").reshape(rows, columns),
        phase=msg.phase,
        decay=sized(doubles_from_field(msg.decay), columns, "decay"),
        target=pose_from_msg(msg.target),
    )


def _clear(msg: BehaviorValue) -> None:
    msg.subtask = ""
    msg.dimension = []
    msg.degree = 0
    msg.phase = 0.0
    fill_doubles(msg, "knots", ())
    fill_doubles(msg, "coefficients", ())
    fill_doubles(msg, "decay", ())
