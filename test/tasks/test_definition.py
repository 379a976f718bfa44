"""Task definitions from YAML: good ones are read, bad ones named."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import pytest

from kv_action_router.errors import TaskDefinitionError
from kv_action_router.tasks.definition import available_tasks, load_task, parse_task
from kv_action_router.tasks.stages import ConfigurationGoal, TargetGoal

GOOD = {
    "name": "touch",
    "intent": "touch it",
    "timeout": 20,
    "stages": [
        {
            "name": "go",
            "subtask": "go_v1",
            "goal": {"target_offset": [0.0, 0.0, 0.06], "line": True, "speed_limit": 0.1},
            "end": [{"name": "there", "signal": "motion_phase", "op": ">=", "limit": 1}],
            "outputs": [{"name": "horn", "time": 0.1, "value": 1}],
        },
        {
            "name": "home",
            "subtask": "home_v1",
            "goal": {"configuration": "home"},
            "end": [{"name": "there", "signal": "motion_phase", "op": ">=", "limit": 1}],
        },
    ],
}


def changed(path: str, value: object) -> dict[str, object]:
    """Return the good definition with one field replaced, or removed with ``...``."""
    data = copy.deepcopy(GOOD)
    place: object = data
    *parents, last = path.split(".")
    for name in parents:
        place = place[int(name)] if name.isdigit() else place[name]  # type: ignore[index]
    if value is ...:
        del place[last]  # type: ignore[attr-defined]
    else:
        place[last] = value  # type: ignore[index]
    return data


def test_good_definition_is_read() -> None:
    task = parse_task(copy.deepcopy(GOOD))
    go, home = task.stages
    assert isinstance(go.goal, TargetGoal)
    assert (go.goal.line, go.goal.speed_limit) == (True, 0.1)
    assert go.needs_target
    assert go.follow_target
    assert (go.outputs[0].name, go.outputs[0].time) == ("horn", 0.1)
    assert go.condition("there") is go.end[0]
    assert go.condition("nowhere") is None
    assert home.goal == ConfigurationGoal("home")
    assert not home.needs_target
    assert task.intent.shape == (128,)


def test_a_path_is_judged_where_its_stage_says_so() -> None:
    judged = parse_task(changed("stages.0.path_tolerance", 0.02))
    assert [stage.path_tolerance for stage in judged.stages] == [0.02, math.inf]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("name", "", "name must be a text, got ''"),
        ("name", 5, "name must be a text, got 5"),
        ("intent", ..., "intent must be a text, got None"),
        ("intent", "!?", "intent must hold a letter"),
        ("stages", [], "stages must be a list of stages"),
        ("stages.1.name", "go", "stage names must be unique, got 'go' twice"),
        ("timeout", -1, "timeout must be from 0 to 86400, got -1"),
        ("timeout", float("nan"), "timeout must be a finite number"),
        ("stage", [], "got 'stage'; did you mean 'stages'"),
        ("stages.0.subtask", ..., "stage 'go': subtask must be a text"),
        ("stages.0.subtask", "go", "stage 'go': subtask must be a name with its version, .* 'go'"),
        ("stages.0.end", [], "stage 'go': end must hold at least one condition"),
        ("stages.0.end.0.signal", "force", "stage 'go': end.*signal must be a known name"),
        ("stages.0.goal", {}, "must hold one of target_offset, tip_offset"),
        ("stages.0.goal", "home", "must be {target_offset"),
        ("stages.0.goal.target_offset", [0, 0], "target_offset must be 3 finite numbers"),
        ("stages.0.goal.target_offset", [0, 0, float("inf")], "must be 3 finite numbers"),
        ("stages.0.goal.line", False, "speed_limit must be left out unless line is true"),
        ("stages.0.goal.speed_limit", 0, "speed_limit must be from 0.001 to 5, got 0"),
        ("stages.0.needs_target", False, "needs_target must be true with a target goal"),
        ("stages.0.needs_image", "on", "needs_image must be true or false, got 'on'"),
        ("stages.0.velocity_scale", 1.5, "velocity_scale must be from 0.01 to 1, got 1.5"),
        ("stages.0.velocity_scale", True, "velocity_scale must be a finite number, got True"),
        ("stages.0.tolerance", 0, "tolerance must be from 1e-05"),
        ("stages.0.path_tolerance", 0, "path_tolerance must be from 0.0001 to 3, got 0"),
        ("stages.0.path_tolerance", float("inf"), "path_tolerance must be a finite number"),
        ("stages.0.timeout", 0, "timeout must be from 0.001"),
        ("stages.0.outputs.0.time", -1, "output: time must be from 0"),
        ("stages.0.outputs.0.nam", "x", "got 'nam'; did you mean 'name'"),
        ("stages.0.follow", True, "got 'follow'; did you mean 'follow_target'"),
        ("stages.1.goal.configuration", [], "configuration must be a name or finite numbers"),
    ],
)
def test_bad_field_is_named_with_limit_and_value(path: str, value: object, message: str) -> None:
    with pytest.raises(TaskDefinitionError, match=message):
        parse_task(changed(path, value))


def test_end_and_failure_must_not_share_a_name() -> None:
    data = changed("stages.0.failure", GOOD["stages"][0]["end"])  # type: ignore[index]
    with pytest.raises(TaskDefinitionError, match="end and failure must have other names"):
        parse_task(data)


def test_every_task_of_the_package_loads() -> None:
    names = available_tasks()
    assert "touch_target" in names
    for name in names:
        assert load_task(name).name == name


def test_stages_that_press_say_so() -> None:
    stages = load_task("tighten_m3_screw").stages
    pressing = [stage.name for stage in stages if stage.presses]
    assert pressing == [stage.name for stage in stages[1:-2]]  # contact to release
    assert not any(stage.presses for stage in load_task("touch_target").stages)


def test_touch_target_is_what_the_demo_needs() -> None:
    task = load_task("touch_target")
    assert [stage.name for stage in task.stages] == ["approach", "touch", "retreat"]
    approach, touch, retreat = task.stages
    assert approach.needs_image
    assert (approach.goal.offset[2], touch.goal.offset[2]) == (0.06, -0.015)
    assert touch.goal.line
    assert touch.allowed_contact
    contact = touch.end[0]
    assert [(p.signal, p.operator, p.limit) for p in contact.predicates] == [
        ("wrench_force", ">", 5.0)
    ]
    assert contact.held_ms == 20.0
    assert retreat.goal == ConfigurationGoal("home")


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(TaskDefinitionError, match="did you mean 'touch_target'"):
        load_task("touch_targt")


@pytest.mark.parametrize("name", ["", "../touch_target", "tasks/touch_target"])
def test_name_that_leaves_the_folder_is_refused(name: str) -> None:
    with pytest.raises(TaskDefinitionError, match="must be a name in config/tasks or the path"):
        load_task(name)


def test_path_of_a_file_works_and_broken_files_are_named(tmp_path: Path) -> None:
    good = tmp_path / "mine.yaml"
    good.write_text(
        "name: mine\nintent: mine\nstages:\n"
        "  - {name: a, subtask: a_v1, goal: {configuration: [0.1, 0.2]},"
        " end: [{name: e, signal: motion_phase, op: '>=', limit: 1.0}]}\n",
        encoding="utf-8",
    )
    assert load_task(str(good)).stages[0].goal == ConfigurationGoal(positions=(0.1, 0.2))
    for content in (b"name: [", b"\xff\xfe\x00", b"- 1\n", b""):
        broken = tmp_path / "broken.yaml"
        broken.write_bytes(content)
        with pytest.raises(TaskDefinitionError, match=r"broken\.yaml"):
            load_task(str(broken))
    with pytest.raises(TaskDefinitionError, match="must be a known name"):
        load_task(str(tmp_path / "absent.yaml"))
