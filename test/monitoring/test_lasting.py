"""Responses that last as long as their condition, and never longer."""

from __future__ import annotations

from dataclasses import replace

from monitoring_builders import MS, task_state

from kv_action_router.contracts import TaskState, TaskStatus
from kv_action_router.monitoring.detectors.base import Detection
from kv_action_router.monitoring.detectors.held import HeldThreshold
from kv_action_router.monitoring.lasting import LastingResponses
from kv_action_router.tasks.rule_file import parse_rules

BASE = {"signal": "clearance", "op": "<", "limit": 0.1, "severity": "info", "message": "{value}"}
SLOW = {**BASE, "name": "near", "error_code": 550, "response": "slow", "speed_scale": 0.3}
HOLD = {**BASE, "name": "close", "error_code": 551, "response": "interrupt", "resumes": True}
PRESS = {**BASE, "name": "press", "error_code": 552, "response": "interrupt"}
RUNNING, HELD = TaskStatus.RUNNING, TaskStatus.INTERRUPTED


class Bench:
    def __init__(self, row: dict[str, object]) -> None:
        (rule,) = parse_rules({"conditions": [row]})
        self.watch = HeldThreshold(rule.condition)
        self.lasting = LastingResponses([(rule, self.watch)])
        self.ms = 0
        self.asked(None)  # what an earlier life has left

    def holds(self, value: float | None) -> None:
        self.watch.active.clear()
        if value is not None:
            self.watch.active[""] = Detection("", "", "clearance", value, 0.1, 0.0, 0)

    def asked(self, state: TaskState | None, after_ms: int = 10) -> list[tuple[str, bool, float]]:
        self.ms += after_ms
        found = self.lasting.update(state, self.ms * MS)
        return [(r.response.value, r.begins, r.scale) for r in found]


def test_a_lower_speed_lasts_as_long_as_its_row_and_is_asked_for_again() -> None:
    bench = Bench(SLOW)
    assert not bench.lasting.outstanding
    bench.holds(0.05)
    assert bench.asked(None) == [("slow", True, 0.3)]
    assert bench.lasting.outstanding
    assert bench.asked(None) == []
    assert bench.asked(None, 1_000) == [("slow", True, 0.3)]  # should the first one be lost
    bench.holds(None)
    assert bench.asked(None) == [("slow", False, 1.0)]
    assert not bench.lasting.outstanding


def test_what_an_earlier_life_may_have_left_is_lifted_at_first() -> None:
    bench = Bench(SLOW)
    bench.lasting.reset()
    assert bench.lasting.outstanding
    assert bench.asked(None) == [("slow", False, 1.0)]
    assert bench.asked(None) == []


def test_an_interruption_ends_with_its_row() -> None:
    bench = Bench(HOLD)
    bench.holds(0.05)
    assert bench.asked(task_state(decision_id=7)) == [("interrupt", True, 1.0)]
    assert bench.asked(task_state(decision_id=7)) == []  # it is on its way
    assert bench.asked(task_state(decision_id=7, status=HELD)) == []
    bench.holds(None)
    assert bench.asked(task_state(decision_id=7, status=HELD)) == [("interrupt", False, 1.0)]
    assert bench.asked(task_state(decision_id=8)) == []


def test_a_task_that_begins_or_is_resumed_meanwhile_is_interrupted_again() -> None:
    bench = Bench(HOLD)
    bench.holds(0.05)
    assert bench.asked(None) == []  # there is no task
    assert bench.asked(task_state(decision_id=7)) == [("interrupt", True, 1.0)]
    assert bench.asked(task_state(decision_id=8)) == [("interrupt", True, 1.0)]
    bench.asked(task_state(decision_id=8, status=TaskStatus.FAILED))
    assert bench.asked(task_state(decision_id=9, goal="goal-2")) == [("interrupt", True, 1.0)]


def test_the_sequence_that_a_row_inserts_is_not_interrupted_by_it() -> None:
    row = {key: HOLD[key] for key in HOLD if key != "resumes"}
    bench = Bench({**row, "inserts": "back_off_and_warn"})
    bench.holds(0.05)
    assert bench.asked(task_state(decision_id=7)) == [("interrupt", True, 1.0)]
    inserted = replace(task_state(decision_id=8), task="back_off_and_warn")
    assert bench.asked(inserted) == []
    assert bench.asked(task_state(decision_id=9)) == [("interrupt", True, 1.0)]  # still there


def test_a_task_that_is_over_is_not_resumed() -> None:
    bench = Bench(HOLD)
    bench.holds(0.05)
    bench.asked(task_state(decision_id=7))
    bench.holds(None)
    assert bench.asked(task_state(decision_id=8, goal="goal-2")) == []
    assert not bench.lasting.outstanding


def test_a_row_that_does_not_resume_leaves_that_to_a_person() -> None:
    bench = Bench(PRESS)
    bench.holds(0.05)
    assert bench.asked(task_state(decision_id=7)) == [("interrupt", True, 1.0)]
    bench.holds(None)
    assert bench.asked(task_state(decision_id=7, status=HELD)) == []


def test_rows_that_do_not_last_ask_for_nothing() -> None:
    bench = Bench({**BASE, "name": "stop", "error_code": 553, "response": "brake"})
    bench.holds(0.05)
    assert bench.asked(task_state()) == []
    assert not bench.lasting.outstanding
