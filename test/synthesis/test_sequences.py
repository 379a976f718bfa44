"""An interruption that inserts a sequence: back off, warn, wait, go on where it was."""

from __future__ import annotations

import numpy as np
import pytest
from synthesis_rig import Rig, pose

from kv_action_router.contracts import DecisionReason, InjectorState, TaskStatus, UpdateOperation
from kv_action_router.errors import TaskTransitionError
from kv_action_router.synthesis.patience import Patience
from kv_action_router.tasks.definition import load_task
from kv_action_router.tasks.stages import TaskDefinition

SEQUENCE = load_task("back_off_and_warn")
BACK = np.array([0.0, 0.0, 0.10])  # [m]
ABOVE, BELOW = np.array([0.0, 0.0, 0.06]), np.array([0.0, 0.0, -0.015])  # [m] ends of two stages


def tip(rig: Rig) -> np.ndarray:
    return rig.model.forward(rig.setpoint)[0]


def interrupt(rig: Rig, source: str = "monitor", sequence: TaskDefinition = SEQUENCE) -> None:
    rig.synthesizer.tasks.interrupt(source, "somebody is near", rig.now_ns, sequence)
    rig.at_once()


def interrupted_on_its_way(rig: Rig, task: TaskDefinition) -> None:
    """Begin a task, and interrupt it in its first motion."""
    rig.start(task)
    rig.run_until(lambda: rig.chunks)
    rig.run(0.3)
    interrupt(rig)


def clear(rig: Rig) -> None:
    rig.run_until(lambda: not rig.stack.awaiting)
    condition = rig.condition("clear", signal="clearance", value=0.5, limit=0.25)
    assert rig.synthesizer.tasks.on_condition(condition, rig.now_ns)
    rig.at_once()


def back_off(rig: Rig) -> np.ndarray:
    """Insert the sequence and let it back off; return where the tip stood before."""
    interrupt(rig)
    rig.run_until(lambda: rig.stack.frame.begun)
    stood = tip(rig)
    rig.run_until(lambda: not rig.stack.awaiting)
    rig.arrive()
    assert rig.stack.stage.name == "wait"
    return stood


@pytest.mark.parametrize("moment", [0.0, 0.15, 0.6, 1.2])
def test_backs_off_warns_waits_and_goes_on_at_the_same_phase(
    rig: Rig, task: TaskDefinition, moment: float
) -> None:
    rig.start(task)
    rig.run_until(lambda: rig.chunks)
    rig.run(moment)
    before = len(rig.chunks)
    stood = back_off(rig)
    assert np.allclose(tip(rig) - stood, BACK, atol=0.002)
    fired = [out for chunk in rig.chunks[before:] for out in chunk.auxiliary]
    assert {(out.name, out.value) for out in fired} == {("horn", 1.0), ("horn", 0.0)}
    rig.run(0.5)
    waiting = tip(rig)
    rig.run(1.0)
    assert np.allclose(tip(rig), waiting, atol=1e-4)
    clear(rig)
    assert rig.stack.frame.definition is task
    assert rig.stack.stage.name == "approach"
    assert rig.stack.decision_reason == DecisionReason.RESUMED
    kept = rig.synthesizer.tasks.phase(rig.now_ns)
    rig.run_until(lambda: not rig.stack.awaiting)
    assert rig.synthesizer.tasks.phase(rig.now_ns) == pytest.approx(min(kept, 0.99), abs=0.02)
    rig.arrive()
    assert np.allclose(tip(rig), rig.target.position + ABOVE, atol=1e-3)
    assert rig.stack.stage.name == "touch"
    assert rig.stack.counters.stages_completed == 1
    velocity_step, acceleration_step = rig.largest_steps()
    assert velocity_step < float(rig.model.acceleration_limit.max()) * 1.1e-3
    assert acceleration_step < float(rig.model.jerk_limit.max()) * 1.1e-6 * 1.5


def test_line_is_gone_on_with_at_its_own_speed(rig: Rig, task: TaskDefinition) -> None:
    rig.start(task)
    rig.arrive()
    rig.run(0.6)  # on the line down to the target
    phase = rig.synthesizer.tasks.phase(rig.now_ns)
    assert 0.1 < phase < 0.9
    back_off(rig)
    clear(rig)
    rig.run_until(lambda: not rig.stack.awaiting)
    assert rig.stack.stage.name == "touch"
    height = []
    while rig.synthesizer.tasks.phase(rig.now_ns) < 1.0:
        rig.run(0.05)
        height.append(tip(rig)[2])
    assert rig.synthesizer.tasks.phase(rig.now_ns) >= phase
    # a spline over 17 cm at this speed ripples; in joint space it would be 8 times as fast
    assert np.abs(np.diff(height)).max() / 0.05 < 0.035 * 1.2
    assert np.allclose(tip(rig), rig.target.position + BELOW, atol=1e-3)


def test_sequences_nest_and_each_task_goes_on_where_it_was(rig: Rig, task: TaskDefinition) -> None:
    rig.start(task)
    rig.run_until(lambda: rig.chunks)
    rig.run(0.4)
    interrupt(rig)
    rig.run_until(lambda: not rig.stack.awaiting and rig.stack.frame.begun)
    rig.run(0.2)  # backing off
    half = tip(rig)
    interrupt(rig, "scanner")
    rig.run_until(lambda: rig.stack.frame.begun)
    assert [frame.inserted_by for frame in rig.stack.frames] == [None, "monitor", "scanner"]
    rig.run_until(lambda: not rig.stack.awaiting)
    rig.arrive()
    clear(rig)
    assert rig.stack.stage.name == "back_off"
    assert len(rig.stack.frames) == 2
    rig.run_until(lambda: not rig.stack.awaiting)
    rig.arrive()
    origin = rig.synthesizer.tasks.stack.frames[1]
    assert origin.stage.name == "wait"
    assert 0.0 < half[2] < tip(rig)[2]  # ends 10 cm above where the first one began, not more
    clear(rig)
    rig.run_until(lambda: not rig.stack.awaiting)
    rig.arrive()
    assert rig.stack.counters.stages_completed == 1
    assert rig.stack.stage.name == "touch"


def test_source_that_asks_again_inserts_nothing_twice(rig: Rig, task: TaskDefinition) -> None:
    interrupted_on_its_way(rig, task)
    rig.synthesizer.tasks.interrupt("monitor", "still near", rig.now_ns, SEQUENCE)
    assert len(rig.stack.frames) == 2
    assert "still near" in rig.stack.holders()


def test_hold_on_a_sequence_keeps_it_where_it_is(rig: Rig, task: TaskDefinition) -> None:
    interrupted_on_its_way(rig, task)
    rig.synthesizer.tasks.interrupt("operator", "wait", rig.now_ns)
    rig.run(1.0)
    assert not rig.stack.frame.begun
    assert rig.synthesizer.tasks.resume("operator", rig.now_ns)
    rig.run_until(lambda: rig.stack.status == TaskStatus.RUNNING)
    rig.run_until(lambda: not rig.stack.awaiting)
    rig.run(0.2)
    rig.synthesizer.tasks.interrupt("operator", "wait", rig.now_ns)
    rig.at_once()
    rig.run(0.5)
    stands = tip(rig)
    rig.run(0.5)
    assert np.allclose(tip(rig), stands, atol=1e-6)
    rig.synthesizer.tasks.resume("operator", rig.now_ns)
    rig.run_until(lambda: not rig.stack.awaiting)
    rig.arrive()
    assert rig.stack.stage.name == "wait"


def test_source_may_end_its_own_sequence(rig: Rig, task: TaskDefinition) -> None:
    interrupted_on_its_way(rig, task)
    rig.run_until(lambda: not rig.stack.awaiting and rig.stack.frame.begun)
    rig.run(0.1)
    with pytest.raises(TaskTransitionError, match="cannot resume"):
        rig.synthesizer.tasks.resume("stranger", rig.now_ns)
    assert rig.synthesizer.tasks.resume("monitor", rig.now_ns)
    rig.at_once()
    rig.run_until(lambda: not rig.stack.awaiting)
    assert rig.stack.stage.name == "approach"
    rig.arrive()
    assert rig.stack.stage.name == "touch"


def test_world_that_changed_too_far_is_planned_for_anew_and_said(
    rig: Rig, task: TaskDefinition
) -> None:
    rig.start(task)
    rig.run_until(lambda: rig.chunks)
    rig.run(0.6)
    back_off(rig)
    rig.target = pose(0.5, 0.2)  # 10 cm from where it was
    clear(rig)
    rig.run_until(lambda: not rig.stack.awaiting)
    assert any("replanned on resume" in report.message for report in rig.synthesizer.tasks.reports)
    assert rig.synthesizer.tasks.phase(rig.now_ns) < 0.1
    rig.arrive()
    assert np.allclose(tip(rig), rig.target.position + ABOVE, atol=1e-3)


def test_cancel_in_a_sequence_stops_on_the_path_and_ends_all(
    rig: Rig, task: TaskDefinition
) -> None:
    interrupted_on_its_way(rig, task)
    rig.run_until(lambda: not rig.stack.awaiting and rig.stack.frame.begun)
    rig.run(0.15)
    rig.synthesizer.tasks.cancel("no more", rig.now_ns)
    rig.at_once()
    assert rig.stack.status == TaskStatus.STOPPING
    rig.run_until(lambda: not rig.stack.active)
    assert rig.stack.status == TaskStatus.CANCELED
    assert np.abs(rig.velocity).max() <= rig.config.rest_speed
    assert rig.stack.frames == []
    velocity_step, _ = rig.largest_steps()
    assert velocity_step < float(rig.model.acceleration_limit.max()) * 1.1e-3


def test_stop_while_backing_off_backs_off_no_further(rig: Rig, task: TaskDefinition) -> None:
    rig.start(task)
    rig.run_until(lambda: rig.chunks)
    rig.run(0.4)
    interrupt(rig)
    rig.run_until(lambda: rig.stack.frame.begun)
    stood = tip(rig)
    rig.run_until(lambda: not rig.stack.awaiting)
    rig.run(0.25)
    rig.state, rig.epoch, rig.chunk = InjectorState.STOPPED, rig.epoch + 1, None
    rig.velocity = np.zeros(rig.model.n)
    rig.run(0.3)
    rig.state, rig.needs_decision = InjectorState.HOLD, True
    rig.run_until(lambda: not rig.stack.awaiting and rig.state is InjectorState.FOLLOW)
    rig.arrive()
    assert rig.stack.stage.name == "wait"
    assert np.allclose(tip(rig) - stood, BACK, atol=0.003)


def test_sequence_teaches_the_cache_a_motion_that_is_reused_elsewhere(
    rig: Rig, task: TaskDefinition
) -> None:
    rig.start(task)
    rig.run_until(lambda: rig.chunks)
    rig.run(0.4)
    back_off(rig)
    taught = rig.synthesizer.tasks.updates[-1]
    assert taught.operation == UpdateOperation.INSERT
    assert taught.behavior is not None
    assert taught.behavior.subtask == "back_off_v1"
    assert taught.behavior.target is None  # it acts on none
    clear(rig)
    rig.entries["back_off_v1"] = (7, taught.behavior)
    rig.run_until(lambda: not rig.stack.awaiting)
    rig.run(0.1)
    stood = back_off(rig)
    assert np.allclose(tip(rig) - stood, BACK, atol=0.002)
    assert rig.synthesizer.tasks.updates[-1].operation == UpdateOperation.SUCCESS


def test_waits_for_what_stands_in_the_way_and_goes_on_when_it_has_left(
    rig: Rig, task: TaskDefinition
) -> None:
    rig.start(task)
    rig.run_until(lambda: rig.chunks)
    rig.run(0.5)
    back_off(rig)
    way = 0.5 * (tip(rig) + rig.target.position + ABOVE)
    rig.synthesizer.obstacles = np.array([[*way, 0.05]])
    clear(rig)
    rig.run(1.0)
    assert rig.stack.awaiting
    assert not rig.synthesizer.tasks.reports
    rig.synthesizer.obstacles = np.zeros((0, 4))
    rig.run_until(lambda: not rig.stack.awaiting, 0.05)
    assert rig.stack.stage.name == "approach"
    rig.arrive()
    assert rig.stack.stage.name == "touch"


def test_what_stays_in_the_way_is_planned_around_and_that_is_said(
    rig: Rig, task: TaskDefinition
) -> None:
    rig.synthesizer._patience = Patience(0.2)
    rig.start(task)
    rig.run_until(lambda: rig.chunks)
    rig.run(0.5)
    back_off(rig)
    way = 0.5 * (tip(rig) + rig.target.position + ABOVE)
    rig.synthesizer.obstacles = np.array([[*way, 0.05]])
    clear(rig)
    rig.run_until(lambda: rig.synthesizer.tasks.reports, 0.5)
    assert "replanned on resume: motion would touch" in rig.synthesizer.tasks.reports[0].message
    assert rig.synthesizer.tasks.execution is None or not rig.stack.awaiting  # the old one is gone


def test_motion_that_goes_on_while_a_decision_is_awaited_is_not_its_answer(
    rig: Rig, task: TaskDefinition
) -> None:
    rig.start(task)
    rig.run_until(lambda: rig.chunks)
    rig.run(0.5)
    back_off(rig)
    rig.run_until(lambda: not rig.stack.awaiting)
    waited = rig.stack.decision_id
    clear(rig)
    rig.answer_matches = False
    rig.run(0.06)
    assert rig.stack.awaiting
    assert rig.chunks[-1].decision.decision_id == waited < rig.stack.decision_id
