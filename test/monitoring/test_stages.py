"""A stage ends on its own motion's samples, once, and never on older ones."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from monitoring_builders import MS, feedback, task_state

from kv_action_router.contracts import InjectorEvent, InjectorState, StageCondition, TaskStatus
from kv_action_router.monitoring.signals import SignalTable, SignalView
from kv_action_router.monitoring.stages import StageWatch
from kv_action_router.tasks.conditions import parse_conditions

CONTACT = {"name": "contact", "signal": "wrench_force", "op": ">", "limit": 5.0, "held_ms": 20}
MISSED = {"name": "missed", "signal": "motion_phase", "op": ">=", "limit": 1.0}
TOUCH = SimpleNamespace(end=parse_conditions([CONTACT]), failure=parse_conditions([MISSED]))


class Bench:
    def __init__(self) -> None:
        self.table = SignalTable()
        self.view = SignalView(self.table)
        self.asked: list[tuple[str, str]] = []
        self.watch = StageWatch(self.find)
        self.now = 0.0

    def find(self, task: str, stage: str) -> SimpleNamespace | None:
        self.asked.append((task, stage))
        return TOUCH if stage in ("touch", "again") else None

    def force(self, ms: float, value: float) -> StageCondition | None:
        return self.sample("wrench_force", ms, value)

    def sample(self, signal: str, ms: float, value: float) -> StageCondition | None:
        self.table.put(signal, value, int(ms * MS))
        return self.tick(ms)

    def tick(self, ms: float) -> StageCondition | None:
        self.view.now_ns = int(ms * MS)
        return self.watch.update(self.table, self.view)

    def press(self, begin: int, end: int, value: float = 6.0) -> list[StageCondition]:
        found = [self.force(ms, value) for ms in range(begin, end, 4)]
        return [item for item in found if item is not None]


def moving() -> Bench:
    bench = Bench()
    bench.watch.on_task_state(task_state(decision_id=7))
    assert bench.watch.on_feedback(feedback(100, 7))
    return bench


def test_contact_ends_the_stage_once_with_its_numbers() -> None:
    bench = moving()
    (found,) = bench.press(100, 200)
    assert found == StageCondition(
        task="touch_target",
        goal_id="goal-1",
        stage="touch",
        decision_id=7,
        condition="contact",
        is_failure=False,
        signal="wrench_force",
        value=6.0,
        limit=5.0,
        held=0.020,
        monotonic_ns=120 * MS,
    )


def test_it_says_where_it_is() -> None:
    bench = Bench()
    assert bench.watch.describe() == "none"
    bench.watch.on_task_state(task_state(decision_id=7))
    assert bench.watch.describe() == "touch_target/touch, decision 7 awaited"
    bench.watch.on_feedback(feedback(100, 7))
    assert bench.watch.describe() == "touch_target/touch, decision 7 in force"


def test_samples_of_the_time_before_do_not_count() -> None:
    bench = Bench()
    bench.watch.on_task_state(task_state(decision_id=7))
    assert bench.press(0, 100) == []
    bench.watch.on_feedback(feedback(98, 7))
    assert bench.press(100, 120) == []
    assert len(bench.press(120, 140)) == 1


def test_the_motion_of_another_decision_does_not_count() -> None:
    bench = Bench()
    bench.watch.on_task_state(task_state(decision_id=7))
    assert not bench.watch.on_feedback(feedback(0, 6))
    assert bench.press(0, 100) == []
    assert not bench.watch.in_force


def test_a_refused_chunk_is_not_in_force() -> None:
    bench = Bench()
    bench.watch.on_task_state(task_state(decision_id=7))
    assert not bench.watch.on_feedback(feedback(0, 7, event=InjectorEvent.CHUNK_LATE))
    assert bench.press(0, 100) == []
    bench = moving()
    bench.watch.on_feedback(feedback(110, 6, event=InjectorEvent.CHUNK_ORDER))
    assert bench.watch.in_force


@pytest.mark.parametrize("state", [InjectorState.STOPPED, InjectorState.FAIL_SAFE])
def test_a_push_during_a_stop_ends_nothing(state: InjectorState) -> None:
    bench = moving()
    assert bench.press(100, 116) == []
    bench.watch.on_feedback(feedback(116, 7, state=state))
    assert bench.press(116, 200) == []
    assert bench.watch.on_feedback(feedback(200, 7))
    assert bench.press(200, 220) == []
    assert len(bench.press(220, 224)) == 1


def test_a_ramp_is_still_the_stages_motion() -> None:
    bench = moving()
    bench.press(100, 112)
    bench.watch.on_feedback(feedback(112, 7, state=InjectorState.RAMP))
    assert len(bench.press(112, 130)) == 1


def test_a_failure_wins_over_an_end() -> None:
    bench = moving()
    bench.press(100, 120)
    bench.table.put("motion_phase", 1.0, 120 * MS)
    found = bench.force(120, 6.0)
    assert found is not None
    assert (found.condition, found.is_failure) == ("missed", True)
    assert bench.press(124, 200) == []


def test_a_fresh_decision_starts_over() -> None:
    bench = moving()
    assert len(bench.press(100, 140)) == 1
    assert not bench.watch.on_task_state(task_state(decision_id=8))
    assert bench.press(140, 200) == []
    bench.watch.on_feedback(feedback(200, 8))
    (found,) = bench.press(200, 240)
    assert found.decision_id == 8


def test_an_interrupted_task_is_not_judged() -> None:
    bench = moving()
    bench.watch.on_task_state(task_state(decision_id=7, status=TaskStatus.INTERRUPTED))
    assert not bench.watch.on_feedback(feedback(110, 7))
    assert bench.press(100, 200) == []


def test_the_same_state_again_changes_nothing() -> None:
    bench = moving()
    bench.press(100, 116)
    assert not bench.watch.on_task_state(task_state(decision_id=7))
    assert len(bench.press(116, 124)) == 1
    bench.watch.on_task_state(task_state(decision_id=7))
    assert bench.press(124, 200) == []


def test_entering_a_stage_is_told() -> None:
    bench = Bench()
    assert bench.watch.on_task_state(task_state("touch", 7, index=1))
    assert bench.watch.on_task_state(task_state("again", 8, index=2))
    assert bench.watch.on_task_state(task_state("again", 9, index=2, goal="goal-2"))
    assert bench.asked == [("touch_target", name) for name in ("touch", "again", "again")]


def test_a_stage_without_definition_is_never_judged() -> None:
    bench = Bench()
    bench.watch.on_task_state(task_state("mystery", 7))
    bench.watch.on_feedback(feedback(0, 7))
    assert bench.press(0, 100) == []


def test_nan_does_not_hold() -> None:
    bench = moving()
    assert bench.press(100, 116) == []
    assert bench.force(116, math.nan) is None
    assert bench.press(120, 140) == []
    assert len(bench.press(140, 144)) == 1


@given(st.lists(st.sampled_from(["press", "air", "stop", "go", "old", "decide"]), max_size=60))
def test_every_answer_has_twenty_unbroken_milliseconds_behind_it(steps: list[str]) -> None:
    """In any order of events: pressed, in force, on the present decision, at most once for each."""
    bench = moving()
    decision, now, run, answered = 7, 100, 0, set()
    in_force = True
    for step in steps:
        now += 4
        if step == "decide":
            decision += 1
            bench.watch.on_task_state(task_state(decision_id=decision))
            in_force, run = False, 0
        elif step in ("stop", "old"):
            other = decision if step == "stop" else decision - 1
            state = InjectorState.STOPPED if step == "stop" else InjectorState.FOLLOW
            bench.watch.on_feedback(feedback(now, other, state=state))
            in_force, run = False, 0
        elif step == "go":
            begins = bench.watch.on_feedback(feedback(now, decision))
            assert begins == (not in_force)
            in_force = True
        for ms in range(now, now + 4, 4):
            pressed = step != "air"
            found = bench.force(ms, 6.0 if pressed else 1.0)
            run = run + 4 if pressed and in_force else 0
            if found is not None:
                assert run > 20
                assert found.decision_id == decision
                assert decision not in answered
                answered.add(decision)
            elif run > 20:
                assert decision in answered
