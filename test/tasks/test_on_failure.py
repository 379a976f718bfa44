"""What a task does when it has failed in contact: read, run, answered, tried again."""

from __future__ import annotations

import copy

import pytest

from kv_action_router.contracts import DecisionReason, TaskStatus
from kv_action_router.errors import TaskDefinitionError, TaskTransitionError
from kv_action_router.tasks.definition import load_task, parse_task
from kv_action_router.tasks.predicates import Condition, Predicate
from kv_action_router.tasks.stack import TaskStack
from kv_action_router.tasks.stages import (
    ConfigurationGoal,
    OnFailure,
    StageDefinition,
    TaskDefinition,
)

SECOND = 1_000_000_000
END = (Condition("done", (Predicate("motion_phase", ">=", 1.0),)),)


def stage(name: str, contact: str = "") -> StageDefinition:
    goal = ConfigurationGoal("home")
    return StageDefinition(name, f"{name}_v1", goal, END, timeout=5.0, allowed_contact=contact)


LET_GO = TaskDefinition("let_go", "let go", (stage("slack", "target"), stage("up", "target")))


def task(times: int = 0) -> TaskDefinition:
    retry = {"retried": ("press",), "retry_from": "approach", "retries": times} if times else {}
    stages = (stage("approach"), stage("press", "target"), stage("home"))
    return TaskDefinition("press", "press it", stages, 60.0, on_failure=OnFailure(LET_GO, **retry))


def failed_in_contact(times: int = 0) -> TaskStack:
    stack = TaskStack()
    stack.start(task(times), "goal", SECOND)
    advance(stack)
    fail(stack)
    return stack


def advance(stack: TaskStack) -> bool:
    stack.answer(stack.decision_id, task_hit=False, behavior_hit=False)
    return stack.complete_stage(2 * SECOND)


def fail(stack: TaskStack, message: str = "nothing there") -> None:
    if not stack.recover(300, message, 2 * SECOND):
        stack.fail(300, message)


def let_go(stack: TaskStack) -> bool:
    assert stack.pending
    stack.begin_sequence(3 * SECOND)
    assert advance(stack)
    return advance(stack)


def test_a_failure_in_contact_lets_go_and_then_answers_with_itself() -> None:
    stack = failed_in_contact()
    assert (stack.status, stack.stage.name) == (TaskStatus.INTERRUPTED, "slack")
    assert stack.active
    assert "'on_failure' (nothing there) with 'let_go'" in stack.holders()
    assert not let_go(stack)
    assert stack.status == TaskStatus.FAILED
    assert (stack.outcome.error_code, stack.outcome.message) == (300, "nothing there")
    assert stack.counters.stages_completed == 1
    assert stack.counters.interruptions == 0


def test_a_stage_that_may_touch_nothing_just_fails() -> None:
    stack = TaskStack()
    stack.start(task(), "goal", SECOND)
    fail(stack)
    assert stack.status == TaskStatus.FAILED


def test_what_fails_while_it_lets_go_ends_the_task_with_both_reasons() -> None:
    stack = failed_in_contact(times=1)
    stack.begin_sequence(3 * SECOND)
    fail(stack, "stuck")
    assert stack.status == TaskStatus.FAILED
    assert stack.outcome.message == "nothing there; then 'let_go': stuck"


def test_a_cancel_while_it_lets_go_tells_the_failure() -> None:
    stack = failed_in_contact()
    stack.begin_sequence(3 * SECOND)
    stack.cancel(4 * SECOND, "enough")
    stack.settled()
    assert stack.status == TaskStatus.CANCELED
    assert stack.outcome.message == "nothing there; then 'let_go': enough"


def test_nobody_ends_it_by_a_resume_and_a_hold_waits() -> None:
    stack = failed_in_contact()
    with pytest.raises(TaskTransitionError, match="does not hold the task"):
        stack.resume("on_failure", 3 * SECOND)
    assert stack.pending
    stack.interrupt("person", "wait", 3 * SECOND)
    assert not stack.pending
    assert stack.resume("person", 3 * SECOND)
    assert not let_go(stack)


def test_a_retry_begins_where_the_task_says_and_only_so_often() -> None:
    stack = failed_in_contact(times=2)
    for tried in (1, 2):
        assert let_go(stack)
        assert (stack.status, stack.stage.name) == (TaskStatus.RUNNING, "approach")
        assert stack.decision_reason == DecisionReason.STAGE_ENTRY
        assert (stack.frame.retries, stack.counters.stages_completed) == (tried, 0)
        advance(stack)
        fail(stack, f"failure {tried + 1}")
    assert not let_go(stack)
    assert (stack.status, stack.outcome.message) == (TaskStatus.FAILED, "failure 3")


def test_a_sequence_over_it_fails_all_with_the_first_reason() -> None:
    stack = failed_in_contact(times=1)
    stack.begin_sequence(3 * SECOND)
    stack.interrupt("monitor", "somebody is near", 3 * SECOND, LET_GO)
    stack.begin_sequence(4 * SECOND)
    fail(stack, "stuck")
    assert stack.outcome.message == "nothing there; then 'let_go': stuck"


DATA = {
    "name": "press",
    "intent": "press it",
    "stages": [
        {"name": name, "subtask": f"{name}_v1", "goal": {"configuration": "home"}, "end": [
            {"name": "there", "signal": "motion_phase", "op": ">=", "limit": 1}
        ]}
        for name in ("approach", "press")
    ],
    "on_failure": {
        "inserts": "let_go_and_withdraw",
        "retry": {"stages": ["press"], "from": "approach", "times": 2},
    },
}  # fmt: skip


def test_it_is_read_from_the_task_file() -> None:
    on_failure = parse_task(copy.deepcopy(DATA)).on_failure
    assert on_failure is not None
    assert on_failure.sequence.name == "let_go_and_withdraw"
    assert (on_failure.retried, on_failure.retry_from) == (("press",), "approach")
    assert on_failure.retries == 2
    once = parse_task({**DATA, "on_failure": {"inserts": "let_go_and_withdraw"}}).on_failure
    assert once is not None
    assert once.retries == 0
    assert parse_task({**DATA, "on_failure": None}).on_failure is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], r"on_failure: must be a mapping, got \[\]"),
        ({"inserts": "let_go_and_withdra"}, "did you mean 'let_go_and_withdraw'"),
        ({"inserts": "press"}, "inserts must name another task"),
        ({"insert": "x"}, "did you mean 'inserts'"),
        ({"retry": 3}, "retry: must be a mapping, got 3"),
        ({"retry": {"stages": [], "from": "approach"}}, r"stages must be a list .*got \[\]"),
        ({"retry": {"stages": ["press"], "from": "approach", "times": 0}}, "from 1 to 10, got 0"),
        ({"retry": {"stages": ["press"], "from": "aproach"}}, "approach, press.*got 'aproach'"),
        ({"retry": {"stages": ["approach"], "from": "press"}}, "must not be behind .*'approach'"),
    ],
)
def test_bad_ones_are_named(given: object, message: str) -> None:
    if isinstance(given, dict):
        given = {"inserts": "let_go_and_withdraw", **given}
    with pytest.raises(TaskDefinitionError, match=message):
        parse_task({**copy.deepcopy(DATA), "on_failure": given})


def test_what_is_inserted_has_none_of_its_own() -> None:
    with pytest.raises(TaskDefinitionError, match="without on_failure of its own, got 'press'"):
        TaskDefinition("outer", "outer", task().stages, on_failure=OnFailure(task()))


def test_the_one_that_comes_with_the_package_may_begin_in_contact() -> None:
    definition = load_task("let_go_and_withdraw")
    assert all(stage.allowed_contact for stage in definition.stages)
