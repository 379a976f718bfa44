"""A task that fails in contact lets go and withdraws before it answers or is tried again."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from synthesis_rig import Rig

from kv_action_router.contracts import InjectorState, TaskStatus
from kv_action_router.tasks.definition import load_task
from kv_action_router.tasks.stages import OnFailure, TaskDefinition, TipGoal

LET_GO = load_task("let_go_and_withdraw")
CLEAR = np.array([0.0, 0.0, 0.060])  # [m]


def failing(task: TaskDefinition, **retry: object) -> TaskDefinition:
    return dataclasses.replace(task, on_failure=OnFailure(LET_GO, **retry))  # type: ignore[arg-type]


def fail_in_contact(rig: Rig, task: TaskDefinition) -> None:
    rig.start(task)
    rig.arrive()
    rig.run_until(lambda: not rig.stack.awaiting)
    rig.run_until(lambda: rig.synthesizer.tasks.phase(rig.now_ns) >= 1.0, seconds=20.0)
    assert rig.synthesizer.tasks.on_condition(rig.condition("no_contact", failure=True), rig.now_ns)
    rig.at_once()


def withdraw(rig: Rig) -> np.ndarray:
    """Let it let go and withdraw; return by how much the tip went [m] (3,)."""
    rig.run_until(lambda: not rig.stack.awaiting and rig.stack.frame.begun)
    stood = rig.model.forward(rig.setpoint)[0]
    rig.arrive()
    assert rig.stack.stage.name == "withdraw"
    rig.run_until(lambda: not rig.stack.awaiting)
    rig.arrive()
    return np.asarray(rig.model.forward(rig.setpoint)[0] - stood)


def test_it_withdraws_and_then_tells_its_own_failure(rig: Rig, task: TaskDefinition) -> None:
    fail_in_contact(rig, failing(task))
    assert rig.stack.active
    assert np.allclose(withdraw(rig), CLEAR, atol=0.002)
    assert rig.stack.status == TaskStatus.FAILED
    assert "stage 'touch': no_contact" in rig.stack.outcome.message
    reports = [report.message for report in rig.synthesizer.tasks.reports]
    assert any("'let_go_and_withdraw' is run first" in text for text in reports)
    velocity_step, acceleration_step = rig.largest_steps()
    assert velocity_step < float(rig.model.acceleration_limit.max()) * 1.1e-3
    assert acceleration_step < float(rig.model.jerk_limit.max()) * 1.1e-6 * 1.5


def test_it_is_tried_again_from_the_stage_that_the_task_names(
    rig: Rig, task: TaskDefinition
) -> None:
    again = failing(task, retried=("touch",), retry_from="approach", retries=1)
    fail_in_contact(rig, again)
    withdraw(rig)
    assert (rig.stack.status, rig.stack.stage.name) == (TaskStatus.RUNNING, "approach")
    assert rig.synthesizer.tasks.task == task.name
    for _ in task.stages:
        rig.run_until(lambda: not rig.stack.awaiting)
        rig.arrive()
    assert rig.stack.outcome.success


def test_a_stage_that_counts_from_where_the_tip_is_does_not_begin_at_a_wrong_place(
    rig: Rig, task: TaskDefinition
) -> None:
    approach, touch, retreat = task.stages
    lift = dataclasses.replace(touch, name="lift", goal=TipGoal(CLEAR), needs_target=False)
    rig.start(dataclasses.replace(task, stages=(approach, touch, lift, retreat)))
    rig.arrive()
    rig.run_until(lambda: rig.synthesizer.tasks.phase(rig.now_ns) >= 1.0, seconds=20.0)
    rig.offset = np.array([0.015, 0.0, 0.0, 0.0, 0.0, 0.0])  # it has slid, by some 7 mm
    rig.run(0.05)
    assert rig.synthesizer.tasks.on_condition(rig.condition("contact"), rig.now_ns)
    assert rig.stack.status == TaskStatus.FAILED
    text = rig.stack.outcome.message
    assert "stage 'touch' ended 7." in text
    assert text.endswith("above 5 mm: 'lift' cannot begin there")


def test_behind_a_stop_nothing_moves(rig: Rig, task: TaskDefinition) -> None:
    rig.start(failing(task))
    rig.arrive()
    rig.run_until(lambda: not rig.stack.awaiting)
    rig.state = InjectorState.STOPPED
    rig.run_until(lambda: not rig.stack.active, seconds=20.0)
    assert rig.stack.status == TaskStatus.FAILED
    assert "did not end within 12 s" in rig.stack.outcome.message


@pytest.mark.parametrize("moment", ["braking", "withdrawing"])
def test_a_deactivation_ends_it_at_once(rig: Rig, task: TaskDefinition, moment: str) -> None:
    fail_in_contact(rig, failing(task))
    if moment == "withdrawing":
        rig.run_until(lambda: not rig.stack.awaiting and rig.stack.frame.begun)
    rig.synthesizer.tasks.give_up(1, "deactivated", rig.now_ns)
    assert rig.stack.status == TaskStatus.FAILED
    assert rig.stack.outcome.message.endswith("then 'let_go_and_withdraw': deactivated")
