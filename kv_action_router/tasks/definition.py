"""Reading task definitions from YAML; every message names task, stage, field, limit and value.

``config/tasks/touch_target.yaml`` shows all that is needed: a name, an intent, and stages with a
subtask, a goal and the conditions of their end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kv_action_router.errors import ConditionError, TaskDefinitionError
from kv_action_router.tasks import files
from kv_action_router.tasks.conditions import parse_conditions
from kv_action_router.tasks.fields import flag, number, refuse_unknown, text
from kv_action_router.tasks.goals import parse_execution, parse_goal
from kv_action_router.tasks.stages import (
    ConfigurationGoal,
    Goal,
    OnFailure,
    StageDefinition,
    TargetGoal,
    TaskDefinition,
    TimedOutput,
    TipGoal,
)
from kv_action_router.tasks.subtask import why_no_subtask

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

_KIND = "tasks"  # folder of config
_TASK_FIELDS = ("name", "intent", "timeout", "target", "stages", "on_failure")
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
    "path_tolerance",
    "outputs",
    "execution",
)
_LONGEST = 86_400.0  # [s]
_MOST_RETRIES = 10


def task_folders() -> tuple[Path, ...]:
    """Return the folders that hold task definitions: source tree, then installation."""
    return files.folders(_KIND)


def available_tasks() -> tuple[str, ...]:
    """Return the names of the tasks that come with the package."""
    return files.available(_KIND)


def load_task(name_or_path: str) -> TaskDefinition:
    """Read a task by its name in ``config/tasks``, or by the path of its file.

    Raises:
        TaskDefinitionError: there is none, or it is not usable; the message says where and why.
    """
    return parse_task(*files.read(_KIND, "task", name_or_path))


def parse_task(data: Any, source: str = "task") -> TaskDefinition:
    """Read a task definition from YAML's data.

    Raises:
        TaskDefinitionError: naming the place, the field, its limit and the value received.
    """
    place = source
    if not isinstance(data, Mapping):
        raise TaskDefinitionError(f"{place}: must be a mapping, got {data!r}")
    refuse_unknown(data, _TASK_FIELDS, place)
    name = text(data, "name", place)
    place = f"{source}: task {name!r}"
    stages = data.get("stages")
    if not isinstance(stages, list) or not stages:
        raise TaskDefinitionError(f"{place}: stages must be a list of stages, got {stages!r}")
    return TaskDefinition(
        name=name,
        intent_text=text(data, "intent", place),
        stages=tuple(_stage(item, place) for item in stages),
        timeout=number(data, "timeout", place, 0.0, _LONGEST, default=0.0),
        target=text(data, "target", place, default=""),
        on_failure=_on_failure(data.get("on_failure"), name, place),
    )


def _on_failure(data: Any, task: str, place: str) -> OnFailure | None:
    if data is None:
        return None
    place = f"{place}: on_failure"
    if not isinstance(data, Mapping):
        raise TaskDefinitionError(f"{place}: must be a mapping, got {data!r}")
    refuse_unknown(data, ("inserts", "retry"), place)
    inserts = text(data, "inserts", place)
    if inserts == task:
        raise TaskDefinitionError(f"{place}: inserts must name another task, got {inserts!r}")
    try:
        sequence = load_task(inserts)
    except TaskDefinitionError as error:
        raise TaskDefinitionError(f"{place}: inserts: {error}") from error
    retry = data.get("retry")
    if retry is None:
        return OnFailure(sequence)
    place = f"{place}: retry"
    if not isinstance(retry, Mapping):
        raise TaskDefinitionError(f"{place}: must be a mapping, got {retry!r}")
    refuse_unknown(retry, ("stages", "from", "times"), place)
    stages, times = retry.get("stages"), retry.get("times", 1)
    if not isinstance(stages, list) or not stages:
        raise TaskDefinitionError(f"{place}: stages must be a list of names, got {stages!r}")
    if isinstance(times, bool) or not isinstance(times, int) or not 1 <= times <= _MOST_RETRIES:
        raise TaskDefinitionError(
            f"{place}: times must be a whole number from 1 to {_MOST_RETRIES}, got {times!r}"
        )
    return OnFailure(sequence, tuple(map(str, stages)), text(retry, "from", place), times)


def _stage(data: Any, place: str) -> StageDefinition:
    if not isinstance(data, Mapping):
        raise TaskDefinitionError(f"{place}: stage must be a mapping, got {data!r}")
    place = f"{place}: stage {text(data, 'name', place)!r}"
    refuse_unknown(data, _STAGE_FIELDS, place)
    goal = parse_goal(data.get("goal"), place)
    on_target = isinstance(goal, TargetGoal) and not isinstance(goal, TipGoal)
    needs_target = flag(data, "needs_target", place, on_target)
    if isinstance(goal, TipGoal) and needs_target:
        raise TaskDefinitionError(
            f"{place}: needs_target must be false with tip_offset, press, search, turn"
        )
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
        name=text(data, "name", place),
        subtask=_subtask(data, place),
        goal=goal,
        end=end,
        failure=failure,
        timeout=number(data, "timeout", place, 0.001, _LONGEST, default=30.0),
        velocity_scale=number(data, "velocity_scale", place, 0.01, 1.0, default=1.0),
        needs_target=needs_target,
        needs_image=flag(data, "needs_image", place, False),
        follow_target=flag(data, "follow_target", place, on_target),
        allowed_contact=text(data, "allowed_contact", place, default=""),
        tolerance=number(data, "tolerance", place, 1.0e-5, 10.0, default=0.01),
        path_tolerance=number(data, "path_tolerance", place, 1.0e-4, 3.0)
        if "path_tolerance" in data
        else math.inf,
        outputs=_outputs(data.get("outputs"), place),
        execution=parse_execution(data.get("execution"), place),
    )


def _subtask(data: Any, place: str) -> str:
    name = text(data, "subtask", place)
    if why := why_no_subtask(name):
        raise TaskDefinitionError(f"{place}: subtask must {why}")
    return name


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
        refuse_unknown(item, ("name", "time", "value"), where)
        outputs.append(
            TimedOutput(
                text(item, "name", where),
                number(item, "time", where, 0.0, _LONGEST, default=0.0),
                number(item, "value", where, -1.0e6, 1.0e6, default=1.0),
            )
        )
    return tuple(outputs)
