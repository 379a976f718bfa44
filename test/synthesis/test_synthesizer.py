"""All of stage 3 in pretended time: seams, refreshes, interruptions, stops, what is learned."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from synthesis_rig import MS, Rig, pose

from kv_action_router.contracts import (
    CHUNK_PERIOD,
    ChunkKind,
    DecisionReason,
    InjectorState,
    TaskStatus,
    TrajectoryChunk,
    UpdateOperation,
)
from kv_action_router.errors import ReanchorError
from kv_action_router.synthesis.decider import Decider
from kv_action_router.synthesis.spline import Motion
from kv_action_router.tasks.stages import TaskDefinition

ABOVE = np.array([0.0, 0.0, 0.06])  # [m] where the approach ends


def start(rig: Rig, task: TaskDefinition) -> None:
    rig.start(task)
    rig.run_until(lambda: rig.chunks)


def that_knows_the_approach(rig: Rig, task: TaskDefinition) -> Rig:
    """Return another rig whose cache holds what the first one has learned of the approach."""
    rig.start(task)
    rig.arrive()
    behavior = rig.synthesizer.tasks.updates[0].behavior
    other = Rig(rig.model, rig.config)
    other.entries["touch_approach_v1"] = (41, behavior)
    return other


def test_task_runs_from_stage_to_stage_and_teaches_each(rig: Rig, task: TaskDefinition) -> None:
    rig.start(task)
    rig.arrive()
    tip = rig.model.forward(rig.setpoint)[0]
    assert np.allclose(tip, rig.target.position + ABOVE, atol=1e-4)
    rig.run(0.5)
    contact = rig.condition("contact", signal="wrench_force", value=6.0, limit=5.0)
    assert rig.synthesizer.tasks.on_condition(contact, rig.now_ns)
    rig.arrive()
    assert rig.stack.status == TaskStatus.SUCCEEDED
    assert [update.operation for update in rig.synthesizer.tasks.updates] == [
        UpdateOperation.INSERT
    ] * 3
    assert all(update.error < 0.005 for update in rig.synthesizer.tasks.updates)
    assert rig.stack.counters.stages_completed == 3
    rig.run(0.2)
    sent = len(rig.chunks)
    assert rig.chunks[-1].ends_at_rest  # the injector may hold it
    rig.run(0.2)
    assert len(rig.chunks) == sent  # idle: no chunks


def test_every_seam_is_continuous_in_position_and_velocity(rig: Rig, task: TaskDefinition) -> None:
    rig.start(task)
    for shift in range(40):  # the target wanders, every image moves the end
        rig.target = pose(0.5 + 0.001 * shift, 0.1)
        rig.run(0.02)
    kinds = [chunk.kind for chunk in rig.chunks]
    assert kinds.count(ChunkKind.REFRESH) >= 5
    assert len(kinds) >= 25
    n = rig.model.n
    for before, after in zip(rig.chunks, rig.chunks[1:], strict=False):
        row = (after.anchor_ns - before.anchor_ns) * 1e-9 / CHUNK_PERIOD
        assert row == pytest.approx(round(row))  # the rig's steps are whole periods
        gap = np.abs(after.samples[0] - before.samples[round(row)])
        assert gap[:n].max() < 1e-9
        assert gap[n:].max() < 1e-7
    velocity_step, acceleration_step = rig.largest_steps()
    assert velocity_step < float(rig.model.acceleration_limit.max()) * 1.1e-3
    assert acceleration_step < float(rig.model.jerk_limit.max()) * 1.1e-6 * 1.5


def test_refresh_moves_the_end_to_where_the_target_is_seen(rig: Rig, task: TaskDefinition) -> None:
    start(rig, task)
    rig.run(0.3)
    rig.target = pose(0.52, 0.13)
    rig.run_until(lambda: rig.synthesizer.tasks.phase(rig.now_ns) >= 1.0)
    rig.run(0.1)
    tip = rig.model.forward(rig.setpoint)[0]
    assert np.allclose(tip, rig.target.position + ABOVE, atol=3e-4)
    rig.arrive()
    update = rig.synthesizer.tasks.updates[0]
    assert update.operation == UpdateOperation.INSERT
    assert np.allclose(update.behavior.target.position, rig.target.position, atol=3e-4)
    stored = Motion.from_behavior(update.behavior, rig.model.joint_names)
    assert np.allclose(rig.model.forward(stored.end)[0], tip, atol=3e-4)
    assert np.allclose(stored.start, rig.model.home)


def test_target_that_jumps_is_followed_at_a_finite_speed(rig: Rig, task: TaskDefinition) -> None:
    start(rig, task)
    rig.run(0.2)
    rig.target = pose(0.5, -0.1)  # 0.2 m away within one image
    before = rig.synthesizer.motion.reference.motion.end.copy()
    rig.run_until(lambda: rig.chunks[-1].kind == ChunkKind.REFRESH)
    after = rig.synthesizer.motion.reference.motion.end
    moved = np.linalg.norm(rig.model.forward(after)[0] - rig.model.forward(before)[0])
    assert 0.001 < moved <= rig.config.refresh_speed * 0.1 + 1e-6


def test_uncertain_target_is_not_followed(rig: Rig, task: TaskDefinition, monkeypatch) -> None:
    start(rig, task)
    rig.run(0.2)
    make = rig.match
    monkeypatch.setattr(rig, "match", lambda image=False: _uncertain(make(image=image)))
    rig.target = pose(0.53, 0.1)
    rig.run(0.2)
    assert all(chunk.kind != ChunkKind.REFRESH for chunk in rig.chunks)


def _uncertain(match):
    match.target.covariance[:] = np.eye(6) * 0.02**2
    return match


def test_hit_reuses_the_stored_motion_and_confirms_it(rig: Rig, task: TaskDefinition) -> None:
    rig.start(task)
    rig.arrive()
    behavior = rig.synthesizer.tasks.updates[0].behavior
    other = Rig(rig.model, rig.config, pose(0.53, 0.06))
    other.entries["touch_approach_v1"] = (41, behavior)
    other.start(task)
    other.arrive()
    assert np.allclose(
        other.model.forward(other.setpoint)[0], other.target.position + ABOVE, atol=1e-3
    )
    decision = other.chunks[0]
    assert decision.kind == ChunkKind.DECISION
    assert (decision.entry_id, decision.entry_version) == (41, 1)
    assert other.stack.counters.behavior_hits == 1
    update = other.synthesizer.tasks.updates[0]
    assert (update.operation, update.entry_id) == (UpdateOperation.SUCCESS, 41)
    assert not update.false_hit


def test_hit_that_misses_its_tolerance_is_a_false_hit(rig: Rig, task: TaskDefinition) -> None:
    other = that_knows_the_approach(rig, task)
    other.start(task)
    other.offset = np.full(6, 0.05)  # the robot is not where the set-point is
    other.arrive()
    update = other.synthesizer.tasks.updates[0]
    assert (update.operation, update.false_hit) == (UpdateOperation.FAILURE, True)
    assert update.error > task.stages[0].tolerance


@pytest.mark.parametrize("what", ["not taken", "stopped"])
def test_an_entry_is_not_blamed_for_what_it_was_never_tried_for(
    rig: Rig, task: TaskDefinition, what: str
) -> None:
    other = that_knows_the_approach(rig, task)
    if what == "not taken":
        other.needs_decision, other.late_decisions = True, 1
    start(other, task)
    if what == "stopped":
        other.run(0.3)
        other.state, other.velocity, other.chunk = InjectorState.STOPPED, np.zeros(6), None
        other.epoch += 1
        other.run(0.05)
        other.state = InjectorState.HOLD
    other.run_until(lambda: other.stack.decision_id > 10)
    other.arrive()
    assert not any(update.false_hit for update in other.synthesizer.tasks.updates)
    assert other.stack.counters.stages_completed == 1


@pytest.mark.parametrize(
    ("what", "blamed"),
    [("starved", False), ("starved, then at rest", False), ("an arm that is held back", True)],
)
def test_an_entry_is_blamed_only_for_a_motion_that_the_arm_did_not_follow(
    rig: Rig, task: TaskDefinition, what: str, blamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the injector was not given in time says nothing about the motion."""

    def refuse(*_: object) -> None:
        raise ReanchorError("cached motion cannot be joined")

    other = that_knows_the_approach(rig, task)
    start(other, task)
    other.run(0.2)
    with monkeypatch.context() as patch:
        patch.setattr(Decider, "rejoin", refuse)
        if what == "an arm that is held back":
            other.offset = np.full(6, -0.2)
        else:
            other.answer_matches = False  # the cache is away: no continuations
            other.run_until(lambda: other.state is InjectorState.RAMP)
            if what == "starved, then at rest":
                other.run(0.4)
                other.state = InjectorState.HOLD
            other.answer_matches = True
        other.run_until(lambda: other.stack.decision_id > 10)
    other.offset = np.zeros(6)
    other.run_until(lambda: not other.stack.awaiting)
    other.arrive()
    updates = [(update.operation, update.false_hit) for update in other.synthesizer.tasks.updates]
    failure = [(UpdateOperation.FAILURE, True)] if blamed else []
    assert updates == [*failure, (UpdateOperation.SUCCESS, False)]


@pytest.mark.parametrize(("starved", "failures"), [(False, 1), (True, 0)])
def test_a_stage_that_times_out_blames_an_entry_only_if_its_motion_was_in_force(
    rig: Rig, task: TaskDefinition, starved: bool, failures: int
) -> None:
    other = that_knows_the_approach(rig, task)
    start(other, task)
    other.run(0.3)
    other.answer_matches = not starved
    other.run_until(lambda: not other.stack.active, 11.0)
    assert other.stack.status == TaskStatus.FAILED
    updates = other.synthesizer.tasks.updates
    assert [update.operation for update in updates] == [UpdateOperation.FAILURE] * failures


def test_lost_entry_asks_for_a_fresh_decision(rig: Rig, task: TaskDefinition) -> None:
    other = that_knows_the_approach(rig, task)
    start(other, task)
    other.run(0.2)
    first = other.stack.decision_id
    other.lost.add(41)
    other.run_until(lambda: other.stack.decision_id > first)
    assert other.stack.decision_reason == DecisionReason.INVALIDATED
    other.run_until(lambda: not other.stack.awaiting)
    other.arrive()
    assert other.stack.counters.stages_completed == 1
    assert not any(update.false_hit for update in other.synthesizer.tasks.updates)
    velocity_step, _ = other.largest_steps()
    assert velocity_step < float(rig.model.acceleration_limit.max()) * 1.1e-3


def test_interrupt_stops_on_the_path_and_resume_goes_on(rig: Rig, task: TaskDefinition) -> None:
    start(rig, task)
    rig.run_until(lambda: rig.synthesizer.tasks.phase(rig.now_ns) > 0.45)
    path = rig.synthesizer.motion.reference.motion
    rig.synthesizer.tasks.interrupt("hazard", "somebody is near", rig.now_ns)
    rig.at_once()
    rig.run(0.6)
    assert rig.stack.status == TaskStatus.INTERRUPTED
    assert not rig.velocity.any()
    phase = rig.synthesizer.tasks.phase(rig.now_ns)
    assert 0.45 < phase < 0.8
    held = rig.setpoint.copy()
    rig.run(0.3)
    assert np.array_equal(rig.setpoint, held)
    assert _distance_to(path, held) < 1e-4
    assert rig.synthesizer.tasks.resume("hazard", rig.now_ns)
    assert rig.stack.decision_reason == DecisionReason.RESUMED
    rig.run_until(lambda: not rig.stack.awaiting)
    assert rig.synthesizer.tasks.phase(rig.now_ns) == pytest.approx(phase, abs=1e-3)
    before = len(rig.track)
    rig.arrive()
    assert rig.stack.counters.stages_completed == 1
    for _, position, _ in rig.track[before::40]:
        assert _distance_to(path, position) < 1e-3  # the same path
    velocity_step, acceleration_step = rig.largest_steps()
    assert velocity_step < float(rig.model.acceleration_limit.max()) * 1.1e-3
    assert acceleration_step < float(rig.model.jerk_limit.max()) * 1.1e-6


def _distance_to(path: Motion, position: np.ndarray) -> float:
    times = np.linspace(0.0, path.duration, 4000)
    return float(np.abs(path.derivative(times, 0) - position).max(axis=1).min())


def test_resume_plans_anew_when_the_target_has_moved_too_far(
    rig: Rig, task: TaskDefinition
) -> None:
    start(rig, task)
    rig.run(0.4)
    rig.synthesizer.tasks.interrupt("hazard", "somebody is near", rig.now_ns)
    rig.at_once()
    rig.run(0.5)
    rig.target = pose(0.4, -0.2)
    rig.synthesizer.tasks.resume("hazard", rig.now_ns)
    rig.run_until(lambda: not rig.stack.awaiting)
    assert any("replanned on resume" in item.message for item in rig.synthesizer.tasks.reports)
    rig.arrive()
    tip = rig.model.forward(rig.setpoint)[0]
    assert np.allclose(tip, rig.target.position + ABOVE, atol=1e-3)


def test_cancel_answers_only_at_rest(rig: Rig, task: TaskDefinition) -> None:
    start(rig, task)
    rig.run(0.4)
    assert np.abs(rig.velocity).max() > 0.1
    rig.synthesizer.tasks.cancel("asked for", rig.now_ns)
    rig.at_once()
    seen = []
    while rig.stack.active:
        seen.append(float(np.abs(rig.velocity).max()))
        rig.step()
        assert len(seen) < 400
    assert rig.stack.status == TaskStatus.CANCELED
    assert seen[-1] <= rig.config.rest_speed
    assert len(seen) * 0.005 < 0.8
    velocity_step, _ = rig.largest_steps()
    assert velocity_step < float(rig.model.acceleration_limit.max()) * 1.1e-3


@pytest.mark.parametrize("state", [InjectorState.FAIL_SAFE, InjectorState.STOPPED])
def test_after_a_fail_safe_only_a_fresh_decision_moves(
    rig: Rig, task: TaskDefinition, state: InjectorState
) -> None:
    start(rig, task)
    rig.run(0.4)
    first = rig.stack.decision_id
    rig.state, rig.velocity, rig.chunk = state, np.zeros(6), None
    rig.epoch += 1
    rig.run(0.02)
    sent = len(rig.chunks)
    rig.run(0.3)
    assert len(rig.chunks) == sent  # nothing goes on by itself
    rig.state = InjectorState.HOLD
    rig.run_until(lambda: len(rig.chunks) > sent)
    assert rig.stack.decision_id > first
    assert rig.stack.decision_reason == DecisionReason.INVALIDATED
    fresh = rig.chunks[sent]
    assert (fresh.kind, fresh.decision.epoch) == (ChunkKind.DECISION, rig.epoch)
    assert np.allclose(fresh.samples[0, :6], rig.setpoint)
    assert np.allclose(fresh.samples[0, 6:], 0.0, atol=1e-9)
    rig.arrive()
    assert rig.stack.counters.stages_completed == 1


def test_a_decision_that_the_injector_did_not_take_is_asked_for_again(
    rig: Rig, task: TaskDefinition
) -> None:
    rig.needs_decision, rig.late_decisions = True, 2
    start(rig, task)
    rig.run_until(lambda: not rig.needs_decision)
    assert rig.stack.decision_id == 12  # 10 and 11 came too late
    rig.arrive()
    assert rig.stack.counters.stages_completed == 1


def test_two_lost_matches_cost_nothing_and_silence_ends_the_chunks(
    rig: Rig, task: TaskDefinition
) -> None:
    start(rig, task)
    rig.run(0.2)
    rig.answer_matches = False
    sent = len(rig.chunks)
    rig.run(0.06)
    assert len(rig.chunks) >= sent + 2
    rig.run(0.06)
    sent = len(rig.chunks)
    rig.run(0.1)
    assert len(rig.chunks) == sent
    assert rig.state == InjectorState.RAMP
    rig.answer_matches = True
    rig.run_until(lambda: len(rig.chunks) > sent, 0.1)
    restart = rig.chunks[sent]
    assert np.allclose(restart.samples[0, :6], rig.setpoint)  # from where it stands
    assert np.allclose(restart.samples[0, 6:], 0.0, atol=1e-9)
    rig.arrive()
    assert rig.stack.counters.stages_completed == 1


def test_an_injector_that_stands_near_the_motion_and_refuses_it_is_met_where_it_stands(
    rig: Rig, task: TaskDefinition, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(rig, task)
    end = rig.synthesizer.motion.reference.position(rig.now_ns + 60_000 * MS)
    rig.run_until(lambda: np.abs(end - rig.setpoint).max() < 0.1)
    # All chunks are lost: it has come to rest on the path, and the motion goes on without it.
    standing = np.tile(np.concatenate((rig.setpoint, np.zeros(6))), (100, 1))
    rig.chunk = dataclasses.replace(rig.chunk, samples=standing, ends_at_rest=True)
    rig.state = InjectorState.HOLD
    adopt, reach = rig.adopt, [-1.0]

    def choosy(chunk: TrajectoryChunk | None) -> None:
        if chunk is not None and np.abs(chunk.samples[0, :6] - rig.setpoint).max() <= reach[0]:
            adopt(chunk)

    monkeypatch.setattr(rig, "adopt", choosy)
    rig.run(0.3)
    reach[0] = 0.02
    rig.run_until(lambda: rig.state is InjectorState.FOLLOW, 0.2)
    rig.arrive()
    assert rig.stack.counters.stages_completed == 1


def test_frozen_joint_states_end_the_chunks_without_a_burst_after(
    rig: Rig, task: TaskDefinition, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(rig, task)
    rig.run(0.3)
    frozen = rig.joints()
    with monkeypatch.context() as patch:
        patch.setattr(rig, "joints", lambda: frozen)
        rig.run(0.02)
        sent = len(rig.chunks)
        rig.run(2.0)
        assert len(rig.chunks) == sent
    standing = rig.setpoint.copy()
    rig.run_until(lambda: len(rig.chunks) > sent)
    first = rig.chunks[sent]
    assert np.allclose(first.samples[0, :6], standing)  # no catching up with where it should be
    assert np.allclose(first.samples[0, 6:], 0.0, atol=1e-9)
    rig.run(0.1)
    assert len(rig.chunks) - sent <= 8  # one each 20 ms, and refreshes at the images' rate
    rig.arrive()
    assert rig.stack.counters.stages_completed == 1


def test_no_chunk_while_the_injector_is_not_heard(rig: Rig, task: TaskDefinition) -> None:
    start(rig, task)
    rig.run(0.2)
    rig.feedback_flows = False
    rig.run(0.08)
    sent = len(rig.chunks)
    rig.run(0.2)
    assert len(rig.chunks) == sent


def test_decision_with_an_old_trigger_is_dropped_and_counted(
    rig: Rig, task: TaskDefinition
) -> None:
    rig.trigger_age_ns = 16 * MS
    rig.start(task)
    rig.run(0.1)
    assert not rig.chunks
    assert rig.synthesizer.decisions_dropped >= 1
    assert "16.0 ms" in rig.synthesizer.tasks.reports[0].message
    rig.trigger_age_ns = 14 * MS
    rig.run(0.05)
    assert rig.chunks[0].kind == ChunkKind.DECISION
    assert rig.chunks[0].decision.trigger_monotonic_ns <= rig.chunks[0].anchor_ns - 14 * MS


def test_sequences_rise_and_only_the_decision_carries_the_trace(
    rig: Rig, task: TaskDefinition
) -> None:
    start(rig, task)
    rig.run(0.3)
    sequences = [chunk.decision.sequence for chunk in rig.chunks]
    assert sequences == sorted(set(sequences))
    assert rig.chunks[0].decision.trace_id == 7
    later = [chunk for chunk in rig.chunks if chunk.kind == ChunkKind.CONTINUATION]
    assert later
    assert all(chunk.decision.trace_id == 0 for chunk in later)
    gaps = np.diff([chunk.anchor_ns for chunk in later]) / MS
    assert gaps.min() >= 20.0
    assert np.median(gaps) == 20.0


def test_condition_of_another_moment_is_ignored(rig: Rig, task: TaskDefinition) -> None:
    start(rig, task)
    rig.run(0.1)
    tasks = rig.synthesizer.tasks
    name = "above_target"
    for change in (
        {"goal_id": "other"},
        {"stage": "touch"},
        {"decision_id": 1},
        {"condition": "unknown"},
        {"monotonic_ns": 1},
        {},  # the motion is not done: the monitor still saw the phase of the one before
    ):
        assert not tasks.on_condition(rig.condition(name, **change), rig.now_ns)
    assert rig.stack.frame.stage_index == 0


def test_failing_condition_fails_the_task_with_a_reason(rig: Rig, task: TaskDefinition) -> None:
    rig.start(task)
    rig.arrive()
    rig.run_until(lambda: rig.synthesizer.tasks.phase(rig.now_ns) >= 1.0)
    failure = rig.condition("no_contact", failure=True)
    assert rig.synthesizer.tasks.on_condition(failure, rig.now_ns)
    assert rig.stack.status == TaskStatus.FAILED
    assert "no_contact" in rig.stack.outcome.message
    assert rig.stack.outcome.error_code == 300


def test_stage_that_never_ends_times_out(rig: Rig, task: TaskDefinition) -> None:
    start(rig, task)
    rig.run_until(lambda: not rig.stack.active, 12.0)
    assert rig.stack.status == TaskStatus.FAILED
    assert "'approach' did not end within 10 s" in rig.stack.outcome.message


def test_unreachable_target_fails_the_task_with_a_reason(rig: Rig, task: TaskDefinition) -> None:
    rig.target = pose(3.0, 0.0)
    rig.start(task)
    rig.run_until(lambda: not rig.stack.active, 0.5)
    assert rig.stack.outcome.error_code == 301
    assert "x 3.000" in rig.stack.outcome.message
    assert not rig.chunks
