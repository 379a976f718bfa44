"""Reading a stage's goal, and the execution values that it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kv_action_router.contracts import SLOT
from kv_action_router.errors import TaskDefinitionError
from kv_action_router.tasks.conditions import near_names
from kv_action_router.tasks.fields import flag, number, refuse_unknown, text, vector
from kv_action_router.tasks.stages import (
    ConfigurationGoal,
    Goal,
    PressGoal,
    SearchGoal,
    TargetGoal,
    TipGoal,
    TurnGoal,
)

_OFFSETS: dict[str, type[TargetGoal]] = {"target_offset": TargetGoal, "tip_offset": TipGoal}
_TARGET_FIELDS = (*_OFFSETS, "line", "speed_limit", "press")
_ALONG = {"press": 1.0, "pull": -1.0}  # along the tool
_PRESSES = ("search", "turn")
_STRONGEST = 200.0  # [N]
# Slots that a stage may set: limits and gains; not what is measured, learned or protects.
STAGE_SLOTS = (
    "proportional_gain",
    "integral_gain",
    "derivative_gain",
    "integral_limit",
    "stage_effort_limit",
    "stage_velocity_limit",
)


def parse_goal(data: Any, place: str) -> Goal:
    """Read a goal.

    Raises:
        TaskDefinitionError: naming the place, the field, its limit and the value received.
    """
    place = f"{place}: goal"
    if not isinstance(data, Mapping):
        raise TaskDefinitionError(
            f"{place}: must be {{target_offset: [x, y, z]}}, {{tip_offset: [x, y, z]}},"
            f" {{press: force}}, {{pull: force}}, {{search: ...}}, {{turn: ...}} or"
            f" {{configuration: home}},"
            f" got {data!r}"
        )
    given = [name for name in _OFFSETS if name in data]
    for name, sign in _ALONG.items():
        if name in data and not given:
            refuse_unknown(data, (name, "rate"), place)
            force = number(data, name, place, 0.0, _STRONGEST)
            rate = number(data, "rate", place, 0.1, 1.0e4) if "rate" in data else 0.0
            return PressGoal(np.zeros(3), press=sign * force, rate=rate)
    for name in _PRESSES:
        if name in data:
            refuse_unknown(data, (name,), place)
            return _press(name, data[name], f"{place}: {name}")
    if "configuration" in data:
        refuse_unknown(data, ("configuration",), place)
        value = data["configuration"]
        if isinstance(value, str) and value:
            return ConfigurationGoal(name=value)
        return ConfigurationGoal(positions=vector(value, None, place, "configuration"))
    refuse_unknown(data, _TARGET_FIELDS, place)
    if len(given) != 1:
        raise TaskDefinitionError(
            f"{place}: must hold one of target_offset, tip_offset, press, pull, search, turn and"
            f" configuration,"
            f" got {dict(data)!r}"
        )
    line = flag(data, "line", place, False)
    speed = None
    if "speed_limit" in data:
        speed = number(data, "speed_limit", place, 0.001, 5.0)
        if not line:
            raise TaskDefinitionError(f"{place}: speed_limit must be left out unless line is true")
    press = number(data, "press", place, 0.0, _STRONGEST, default=0.0)
    if press and not (line and given == ["target_offset"]):
        raise TaskDefinitionError(
            f"{place}: press must be left out unless a line leads to a target_offset"
        )
    offset = np.array(vector(data[given[0]], 3, place, given[0]))
    return _OFFSETS[given[0]](offset=offset, line=line, speed_limit=speed, press=press)


def _press(name: str, data: Any, place: str) -> PressGoal:
    if not isinstance(data, Mapping):
        raise TaskDefinitionError(f"{place}: must be a mapping, got {data!r}")
    still = np.zeros(3)
    press = number(data, "press", place, 0.0, _STRONGEST, default=0.0)
    if name == "search":
        refuse_unknown(data, ("press", "radius", "pitch", "speed"), place)
        radius = number(data, "radius", place, 1.0e-4, 0.05)
        return SearchGoal(
            still,
            press=press,
            radius=radius,
            pitch=number(data, "pitch", place, radius / 20.0, radius),
            speed=number(data, "speed", place, 1.0e-4, 0.1),
        )
    refuse_unknown(data, ("press", "joint", "turns", "speed", "pitch"), place)
    turns = number(data, "turns", place, -200.0, 200.0)
    return TurnGoal(
        still,
        press=press,
        joint=text(data, "joint", place),
        turns=turns,
        speed=number(data, "speed", place, 0.01, 500.0),
        pitch=number(data, "pitch", place, 0.0, 0.01, default=0.0),
    )


def parse_execution(data: Any, place: str) -> dict[str, dict[str, float]]:
    """Read a stage's execution values: drive, or ``*``, -> slot -> number.

    Raises:
        TaskDefinitionError: naming the place, the field, its limit and the value received.
    """
    if data is None:
        return {}
    place = f"{place}: execution"
    if not isinstance(data, Mapping):
        raise TaskDefinitionError(f"{place}: must be a mapping of drives, got {data!r}")
    read: dict[str, dict[str, float]] = {}
    for drive, slots in data.items():
        if not isinstance(drive, str) or not drive:
            raise TaskDefinitionError(f"{place}: drive must be a name or '*', got {drive!r}")
        where = f"{place}: {drive}"
        if not isinstance(slots, Mapping) or not slots:
            raise TaskDefinitionError(f"{where}: must be a mapping of slots, got {slots!r}")
        for slot in slots:
            if slot not in STAGE_SLOTS:
                known = near_names(slot, SLOT) if slot not in SLOT else ""
                raise TaskDefinitionError(
                    f"{where}: slot must be one of {', '.join(STAGE_SLOTS)}, got {slot!r}{known}"
                )
        read[drive] = {slot: number(slots, slot, where, 0.0, 1.0e6) for slot in slots}
    return read
