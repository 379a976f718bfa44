"""The task stack: transitions, decisions, time-outs; what it must never do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kv_action_router.contracts import Decision, DecisionReason, TaskStatus
from kv_action_router.errors import InputError, RouterError, TaskTransitionError
from kv_action_router.tasks.predicates import Condition, Predicate
from kv_action_router.tasks.stack import ACTIVE, TaskStack
from kv_action_router.tasks.stages import ConfigurationGoal, StageDefinition, TaskDefinition

SECOND = 1_000_000_000
END = (Condition("done", (Predicate("motion_phase", ">=", 1.0),)),)


def stage(name: str) -> StageDefinition:
    return StageDefinition(name, f"{name}_v1", ConfigurationGoal("home"), END, timeout=5.0)


TASK = TaskDefinition("two_steps", "do two steps", (stage("one"), stage("two")), timeout=8.0)


@pytest.fixture
def stack() -> TaskStack:
    stack = TaskStack(first_decision=100)
    stack.start(TASK, "goal-1", SECOND)
    return stack


def answer(stack: TaskStack) -> None:
    stack.answer(stack.decision_id, task_hit=True, behavior_hit=False)


def test_start_asks_for_the_first_stage(stack: TaskStack) -> None:
    assert stack.status == TaskStatus.RUNNING
    assert stack.stage.name == "one"
    assert (stack.decision_id, stack.decision_reason) == (100, DecisionReason.STAGE_ENTRY)
    assert stack.awaiting
    assert stack.requested_ns == SECOND


def test_each_stage_asks_for_one_decision_and_the_last_ends_the_task(stack: TaskStack) -> None:
    answer(stack)
    assert stack.complete_stage(2 * SECOND)
    assert (stack.stage.name, stack.decision_id) == ("two", 101)
    answer(stack)
    assert not stack.complete_stage(3 * SECOND)
    assert stack.status == TaskStatus.SUCCEEDED
    assert stack.outcome.success
    assert (stack.counters.stages_completed, stack.counters.decisions) == (2, 2)
    assert (stack.counters.task_hits, stack.counters.behavior_hits) == (2, 0)


def test_second_task_is_refused_by_name(stack: TaskStack) -> None:
    with pytest.raises(TaskTransitionError, match="'two_steps' is under way"):
        stack.start(TASK, "goal-2", SECOND)
    assert stack.goal_id == "goal-1"


@pytest.mark.parametrize("timeout", [-1.0, float("nan"), float("inf")])
def test_unusable_timeout_is_refused_before_anything_changes(timeout: float) -> None:
    stack = TaskStack()
    with pytest.raises(InputError, match="timeout must be"):
        stack.start(TASK, "goal", 0, timeout=timeout)
    assert stack.status == TaskStatus.IDLE
    assert not stack.frames


def test_interruptions_nest_and_each_source_lets_go_for_itself(stack: TaskStack) -> None:
    answer(stack)
    stack.interrupt("monitor", "somebody is near", 2 * SECOND)
    stack.interrupt("operator", "wait", 2 * SECOND)
    assert stack.status == TaskStatus.INTERRUPTED
    assert "'monitor' (somebody is near)" in stack.holders()
    with pytest.raises(TaskTransitionError, match="'stranger' does not hold"):
        stack.resume("stranger", 3 * SECOND)
    assert not stack.resume("monitor", 3 * SECOND)
    assert stack.status == TaskStatus.INTERRUPTED
    assert stack.resume("operator", 3 * SECOND)
    assert stack.status == TaskStatus.RUNNING
    assert stack.stage.name == "one"  # the same stage
    assert (stack.decision_reason, stack.decision_id) == (DecisionReason.RESUMED, 101)


def test_resume_without_a_source_lets_go_for_all(stack: TaskStack) -> None:
    stack.interrupt("monitor", "near", SECOND)
    stack.interrupt("operator", "wait", SECOND)
    assert stack.resume("", 2 * SECOND)


def test_interruption_needs_a_reason_and_a_task() -> None:
    stack = TaskStack()
    with pytest.raises(TaskTransitionError, match="nothing to interrupt"):
        stack.interrupt("monitor", "near", 0)
    stack.start(TASK, "goal", 0)
    with pytest.raises(TaskTransitionError, match="reason must not be empty"):
        stack.interrupt("monitor", "  ", 0)
    assert stack.status == TaskStatus.RUNNING


def test_cancel_ends_only_when_settled(stack: TaskStack) -> None:
    stack.cancel(2 * SECOND, "asked for")
    assert stack.status == TaskStatus.STOPPING
    assert not stack.awaiting
    stack.settled()
    assert stack.status == TaskStatus.CANCELED
    assert (stack.outcome.success, stack.outcome.message) == (False, "asked for")


def test_interrupted_time_does_not_count(stack: TaskStack) -> None:
    stack.interrupt("monitor", "near", 2 * SECOND)
    assert stack.expired(100 * SECOND) == ""
    stack.resume("", 100 * SECOND)
    assert stack.expired(103 * SECOND) == ""
    assert "stage 'one' did not end within 5 s" in stack.expired(105 * SECOND)


def test_task_has_a_time_out_of_its_own(stack: TaskStack) -> None:
    stack.complete_stage(5 * SECOND)
    assert stack.expired(8 * SECOND) == ""
    assert "task 'two_steps' did not end within 8 s" in stack.expired(9 * SECOND + 1)


def test_goal_overrides_the_task_s_time_out() -> None:
    stack = TaskStack()
    stack.start(TASK, "goal", 0, timeout=2.0)
    assert "within 2 s" in stack.expired(2 * SECOND + 1)


def test_answer_to_another_decision_is_refused(stack: TaskStack) -> None:
    with pytest.raises(TaskTransitionError, match="decision 99 is not awaited"):
        stack.answer(99, task_hit=False, behavior_hit=False)
    answer(stack)
    with pytest.raises(TaskTransitionError, match="not awaited"):
        answer(stack)


def test_state_says_what_the_cache_needs(stack: TaskStack) -> None:
    state = stack.state(0.25, Decision(intent_id=TASK.intent_id))
    assert (state.task, state.stage, state.subtask) == ("two_steps", "one", "one_v1")
    assert (state.stage_index, state.stage_count, state.phase) == (0, 2, 0.25)
    assert np.array_equal(state.intent, TASK.intent)
    stack.fail(300, "no way")
    state = stack.state(0.0, Decision())
    assert (state.status, state.task, state.stage) == (TaskStatus.FAILED, "two_steps", "one")
    assert state.intent.size == 0


def test_decision_ids_rise_over_tasks(stack: TaskStack) -> None:
    stack.fail(300, "no way")
    stack.start(TASK, "goal-2", 2 * SECOND)
    assert stack.decision_id == 101


class StackMachine(RuleBasedStateMachine):
    """Any order of calls: refused ones change nothing, others keep the invariants."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = TaskStack(first_decision=7)
        self.now = 0
        self.decision_id = 0

    def attempt(self, call) -> None:  # type: ignore[no-untyped-def]
        self.now += SECOND // 10
        before = (self.stack.status, self.stack.version, self.stack.decision_id)
        try:
            call()
        except RouterError:
            assert before == (self.stack.status, self.stack.version, self.stack.decision_id)
        else:
            assert self.stack.version > before[1]

    @rule()
    def start(self) -> None:
        self.attempt(lambda: self.stack.start(TASK, "goal", self.now))

    @rule()
    def complete(self) -> None:
        self.attempt(lambda: self.stack.complete_stage(self.now))

    @rule(source=st.sampled_from(["a", "b"]))
    def interrupt(self, source: str) -> None:
        self.attempt(lambda: self.stack.interrupt(source, "reason", self.now))

    @rule(source=st.sampled_from(["a", "b", ""]))
    def resume(self, source: str) -> None:
        self.attempt(lambda: self.stack.resume(source, self.now))

    @rule()
    def cancel(self) -> None:
        self.attempt(lambda: self.stack.cancel(self.now))

    @rule()
    def settled(self) -> None:
        self.attempt(self.stack.settled)

    @rule()
    def fail(self) -> None:
        self.attempt(lambda: self.stack.fail(300, "no way"))

    @rule()
    def invalidate(self) -> None:
        self.attempt(lambda: self.stack.invalidate(self.now))

    @precondition(lambda self: self.stack.awaiting)
    @rule()
    def answer(self) -> None:
        self.attempt(lambda: answer(self.stack))

    @invariant()
    def holds(self) -> None:
        stack = self.stack
        assert bool(stack.frames) == (stack.status in ACTIVE)
        assert bool(stack.interruptions) == (stack.status == TaskStatus.INTERRUPTED) or (
            stack.status == TaskStatus.STOPPING
        )
        assert not stack.awaiting or stack.status == TaskStatus.RUNNING
        assert stack.decision_id >= self.decision_id
        self.decision_id = stack.decision_id
        stack.state(0.0, Decision())


StackMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestStackMachine = StackMachine.TestCase
