"""Goals that press, and what a stage asks of the execution layer: read, or refused by name."""

from __future__ import annotations

import copy

import pytest

from kv_action_router.errors import TaskDefinitionError
from kv_action_router.tasks.definition import load_task, parse_task
from kv_action_router.tasks.stages import PressGoal, SearchGoal, TargetGoal, TurnGoal

SEARCH = {"search": {"radius": 0.002, "pitch": 0.0005, "speed": 0.005, "press": 7.0}}
TURN = {"turn": {"joint": "spindle_joint", "turns": 8, "speed": 14, "pitch": 0.0005, "press": 8}}
STAGE = {
    "name": "work",
    "subtask": "work_v1",
    "goal": SEARCH,
    "end": [{"name": "there", "signal": "contact_depth", "op": ">", "limit": 0.001}],
}


def task(**changes: object) -> dict[str, object]:
    """Return a task of one stage, with fields of the stage replaced."""
    return {"name": "t", "intent": "t", "stages": [copy.deepcopy(STAGE) | changes]}


def test_goals_are_read() -> None:
    search = parse_task(task()).stages[0].goal
    assert isinstance(search, SearchGoal)
    assert (search.radius, search.pitch, search.speed, search.press) == (0.002, 0.0005, 0.005, 7.0)
    turn = parse_task(task(goal=TURN)).stages[0].goal
    assert isinstance(turn, TurnGoal)
    assert (turn.joint, turn.turns, turn.speed, turn.pitch) == ("spindle_joint", 8.0, 14.0, 0.0005)
    let_go = parse_task(task(goal={"press": 0.0})).stages[0].goal
    assert type(let_go) is PressGoal
    assert let_go.rate == 0.0
    tug = parse_task(task(goal={"pull": 9.0})).stages[0].goal
    assert isinstance(tug, PressGoal)
    assert tug.press == -9.0
    push = parse_task(task(goal={"press": 27.0, "rate": 12.0})).stages[0].goal
    assert isinstance(push, PressGoal)
    assert (push.press, push.rate) == (27.0, 12.0)
    assert not parse_task(task()).stages[0].needs_target
    line = {"target_offset": [0.0, 0.0, 0.0045], "line": True, "press": 5.0}
    contact = parse_task(task(goal=line)).stages[0]
    assert isinstance(contact.goal, TargetGoal)
    assert (contact.goal.press, contact.needs_target) == (5.0, True)


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ({"pull": -1.0}, "pull must be from"),
        ({"press": 1.0, "rate": 0.0}, "rate must be from"),
        ({"search": 3}, "search: must be a mapping"),
        ({"search": {"radius": 0.002, "pitch": 0.01, "speed": 0.005}}, "pitch must be from"),
        ({"search": {"radius": 0.0, "pitch": 0.0005, "speed": 0.005}}, "radius must be from"),
        ({"search": SEARCH["search"], "line": True}, "known name, got 'line'"),
        ({"turn": TURN["turn"] | {"turns": float("nan")}}, "turns must be a finite number"),
        ({"turn": TURN["turn"] | {"joint": ""}}, "joint must be a text"),
        ({"turn": TURN["turn"] | {"torque": 3.5}}, "known name, got 'torque'"),
        ({"press": -1.0}, "press must be from 0 to"),
        ({"target_offset": [0.0] * 3, "press": 5.0}, "press must be left out unless a line"),
        ({"tip_offset": [0.0] * 3, "line": True, "press": 5.0}, "press must be left out unless"),
    ],
)
def test_bad_goals_are_refused_by_name(goal: object, words: str) -> None:
    with pytest.raises(TaskDefinitionError, match=words):
        parse_task(task(goal=goal))


def test_execution_values_are_read() -> None:
    execution = {"*": {"integral_gain": 0}, "spindle_joint": {"stage_effort_limit": 3.5}}
    stage = parse_task(task(execution=execution)).stages[0]
    assert stage.execution == {
        "*": {"integral_gain": 0.0},
        "spindle_joint": {"stage_effort_limit": 3.5},
    }
    assert parse_task(task()).stages[0].execution == {}


@pytest.mark.parametrize(
    ("execution", "words"),
    [
        ([1], "execution: must be a mapping"),
        ({"*": {}}, "must be a mapping of slots"),
        (
            {"*": {"protective_effort_limit": 9.0}},
            "slot must be one of .*'protective_effort_limit'",
        ),
        ({"*": {"stage_effort_limits": 9.0}}, "slot must be one of"),
        ({"*": {"stage_effort_limit": "high"}}, "must be a finite number"),
        ({7: {"stage_effort_limit": 1.0}}, "drive must be a name"),
    ],
)
def test_bad_execution_values_are_refused_by_name(execution: object, words: str) -> None:
    with pytest.raises(TaskDefinitionError, match=words):
        parse_task(task(execution=execution))


def test_the_screws_task_ends_no_stage_on_time_alone() -> None:
    screw = load_task("tighten_m3_screw")
    names = [stage.name for stage in screw.stages]
    for name in ("approach", "search", "engage", "pre_tighten", "tighten", "final_tighten"):
        assert name in names
    for stage in screw.stages:
        physical = {signal for end in stage.end for signal in end.signals} - {"motion_phase"}
        assert physical, stage.name
        assert stage.timeout <= 40.0
    limits = [
        stage.execution["spindle_joint"]["stage_effort_limit"]
        for stage in screw.stages
        if stage.name.endswith("tighten")
    ]
    assert limits == [0.5, 1.5, 3.5]
