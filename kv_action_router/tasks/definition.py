"""Reading task definitions from YAML; every message names task, stage, field, limit and value.

``config/tasks/touch_target.yaml`` shows all that is needed: a name, an intent, and stages with a
subtask, a goal and the conditions of their end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from kv_action_router.errors import ConditionError, TaskDefinitionError
from kv_action_router.tasks.conditions import near_names, parse_conditions
from kv_action_router.tasks.stages import (
    ConfigurationGoal,
    Goal,
    StageDefinition,
    TargetGoal,
    TaskDefinition,
    TimedOutput,
    TipGoal,
)

__all__ = [
    "ConfigurationGoal",
    "Goal",
    "StageDefinition",
    "TargetGoal",
    "TaskDefinition",
    "TimedOutput",
    "TipGoal",
    "available_tasks",
    "load_task",
    "parse_task",
    "task_folders",
]

_TASK_FIELDS = ("name", "intent", "timeout", "stages")
_STAGE_FIELDS = (
    "name",
    "subtask",
    "goal",
    "end",
    "failure",
    "timeout",
    "velocity_scale",
    "needs_target",
    "needs_image",
    "follow_target",
    "allowed_contact",
    "tolerance",
    "outputs",
)
_OFFSETS: dict[str, type[TargetGoal]] = {"target_offset": TargetGoal, "tip_offset": TipGoal}
_TARGET_FIELDS = (*_OFFSETS, "line", "speed_limit")
_LONGEST = 86_400.0  # [s]


def task_folders() -> tuple[Path, ...]:
    """Return the folders that hold task definitions: source tree, then installation."""
    here = Path(__file__).resolve()
    candidates = [here.parents[2] / "config" / "tasks"]
    candidates += [folder / "share/kv_action_router/config/tasks" for folder in here.parents]
    return tuple(folder for folder in candidates if folder.is_dir())


def available_tasks() -> tuple[str, ...]:
    """Return the names of the tasks that come with the package."""
    return tuple(sorted({path.stem for folder in task_folders() for path in folder.glob("*.yaml")}))


def load_task(name_or_path: str) -> TaskDefinition:
    """Read a task by its name in ``config/tasks``, or by the path of its file.

    Raises:
        TaskDefinitionError: there is none, or it is not usable; the message says where and why.
    """
    if name_or_path.endswith((".yaml", ".yml")):
        path = Path(name_or_path)
    else:
        if not name_or_path or Path(name_or_path).name != name_or_path:
            raise TaskDefinitionError(
                f"task must be a name in config/tasks or the path of a .yaml file,"
                f" got {name_or_path!r}"
            )
        files = [folder / f"{name_or_path}.yaml" for folder in task_folders()]
        path = next((file for file in files if file.is_file()), Path(f"{name_or_path}.yaml"))
    if not path.is_file():
        hint = near_names(path.stem, available_tasks())
        raise TaskDefinitionError(f"task must be a known name, got {name_or_path!r}{hint}")
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise TaskDefinitionError(f"{path}: cannot be read: {error}") from error
    return parse_task(data, str(path))


def parse_task(data: Any, source: str = "task") -> TaskDefinition:
    """Read a task definition from YAML's data.

    Raises:
        TaskDefinitionError: naming the place, the field, its limit and the value received.
    """
    place = source
    if not isinstance(data, Mapping):
        raise TaskDefinitionError(f"{place}: must be a mapping, got {data!r}")
    _refuse_unknown(data, _TASK_FIELDS, place)
    name = _text(data, "name", place)
    place = f"{source}: task {name!r}"
    stages = data.get("stages")
    if not isinstance(stages, list) or not stages:
        raise TaskDefinitionError(f"{place}: stages must be a list of stages, got {stages!r}")
    return TaskDefinition(
        name=name,
        intent_text=_text(data, "intent", place),
        stages=tuple(_stage(item, place) for item in stages),
        timeout=_number(data, "timeout", place, 0.0, _LONGEST, default=0.0),
    )


def _stage(data: Any, place: str) -> StageDefinition:
    if not isinstance(data, Mapping):
        raise TaskDefinitionError(f"{place}: stage must be a mapping, got {data!r}")
    place = f"{place}: stage {_text(data, 'name', place)!r}"
    _refuse_unknown(data, _STAGE_FIELDS, place)
    goal = _goal(data.get("goal"), place)
    on_target = isinstance(goal, TargetGoal) and not isinstance(goal, TipGoal)
    needs_target = _flag(data, "needs_target", place, on_target)
    if isinstance(goal, TipGoal) and needs_target:
        raise TaskDefinitionError(f"{place}: needs_target must be false with tip_offset")
    if on_target and not needs_target:
        raise TaskDefinitionError(f"{place}: needs_target must be true with a target goal")
    try:
        end = parse_conditions(data.get("end"), where=f"{place}: end")
        failure = parse_conditions(data.get("failure"), where=f"{place}: failure")
    except ConditionError as error:
        raise TaskDefinitionError(str(error)) from error
    if not end:
        raise TaskDefinitionError(f"{place}: end must hold at least one condition, got none")
    both = {condition.name for condition in end} & {condition.name for condition in failure}
    if both:
        raise TaskDefinitionError(f"{place}: end and failure must have other names than {both}")
    return StageDefinition(
        name=_text(data, "name", place),
        subtask=_text(data, "subtask", place),
        goal=goal,
        end=end,
        failure=failure,
        timeout=_number(data, "timeout", place, 0.001, _LONGEST, default=30.0),
        velocity_scale=_number(data, "velocity_scale", place, 0.01, 1.0, default=1.0),
        needs_target=needs_target,
        needs_image=_flag(data, "needs_image", place, False),
        follow_target=_flag(data, "follow_target", place, on_target),
        allowed_contact=_text(data, "allowed_contact", place, default=""),
        tolerance=_number(data, "tolerance", place, 1.0e-5, 10.0, default=0.01),
        outputs=_outputs(data.get("outputs"), place),
    )


def _goal(data: Any, place: str) -> Goal:
    place = f"{place}: goal"
    if not isinstance(data, Mapping):
        raise TaskDefinitionError(
            f"{place}: must be {{target_offset: [x, y, z]}}, {{tip_offset: [x, y, z]}} or"
            f" {{configuration: home}}, got {data!r}"
        )
    if "configuration" in data:
        _refuse_unknown(data, ("configuration",), place)
        value = data["configuration"]
        if isinstance(value, str) and value:
            return ConfigurationGoal(name=value)
        return ConfigurationGoal(positions=_vector(value, None, place, "configuration"))
    _refuse_unknown(data, _TARGET_FIELDS, place)
    given = [name for name in _OFFSETS if name in data]
    if len(given) != 1:
        raise TaskDefinitionError(
            f"{place}: must hold one of target_offset, tip_offset and configuration,"
            f" got {dict(data)!r}"
        )
    line = _flag(data, "line", place, False)
    speed = None
    if "speed_limit" in data:
        speed = _number(data, "speed_limit", place, 0.001, 5.0)
        if not line:
            raise TaskDefinitionError(f"{place}: speed_limit must be left out unless line is true")
    offset = np.array(_vector(data[given[0]], 3, place, given[0]))
    return _OFFSETS[given[0]](offset=offset, line=line, speed_limit=speed)


def _outputs(data: Any, place: str) -> tuple[TimedOutput, ...]:
    if data is None:
        return ()
    if not isinstance(data, list):
        raise TaskDefinitionError(f"{place}: outputs must be a list, got {data!r}")
    outputs = []
    for item in data:
        where = f"{place}: output"
        if not isinstance(item, Mapping):
            raise TaskDefinitionError(f"{where}: must be a mapping, got {item!r}")
        _refuse_unknown(item, ("name", "time", "value"), where)
        outputs.append(
            TimedOutput(
                _text(item, "name", where),
                _number(item, "time", where, 0.0, _LONGEST, default=0.0),
                _number(item, "value", where, -1.0e6, 1.0e6, default=1.0),
            )
        )
    return tuple(outputs)


# --- fields ----------------------------------------------------------------------------------


def _refuse_unknown(data: Mapping[Any, Any], fields: tuple[str, ...], place: str) -> None:
    for key in data:
        if key not in fields:
            hint = near_names(key, fields)
            raise TaskDefinitionError(f"{place}: field must be a known name, got {key!r}{hint}")


def _text(data: Mapping[Any, Any], name: str, place: str, default: str | None = None) -> str:
    value = data.get(name, default)
    if not isinstance(value, str) or (not value and default is None):
        raise TaskDefinitionError(f"{place}: {name} must be a text, got {value!r}")
    return value


def _flag(data: Mapping[Any, Any], name: str, place: str, default: bool) -> bool:
    value = data.get(name, default)
    if not isinstance(value, bool):
        raise TaskDefinitionError(f"{place}: {name} must be true or false, got {value!r}")
    return value


def _number(
    data: Mapping[Any, Any],
    name: str,
    place: str,
    low: float,
    high: float,
    default: float | None = None,
) -> float:
    value = data.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise TaskDefinitionError(f"{place}: {name} must be a finite number, got {value!r}")
    if not low <= value <= high:
        raise TaskDefinitionError(
            f"{place}: {name} must be from {low:g} to {high:g}, got {value!r}"
        )
    return float(value)


def _vector(value: Any, size: int | None, place: str, name: str) -> tuple[float, ...]:
    wanted = f"{size} finite numbers" if size else "a name or finite numbers"
    if not isinstance(value, list) or not value or (size is not None and len(value) != size):
        raise TaskDefinitionError(f"{place}: {name} must be {wanted}, got {value!r}")
    for item in value:
        if isinstance(item, bool) or not isinstance(item, (int, float)) or not math.isfinite(item):
            raise TaskDefinitionError(f"{place}: {name} must be {wanted}, got {value!r}")
    return tuple(float(item) for item in value)
