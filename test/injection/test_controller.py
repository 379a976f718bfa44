"""The whole tick: activation, chunks, starvation, stop, fail-safe (K05, K07, K08, K09, K10)."""

from __future__ import annotations

import dataclasses
import math
from collections import deque

import numpy as np
import pytest
from injection_builders import (
    MS,
    NODES,
    PERIOD_NS,
    Bench,
    chunk,
    execution_value,
    holding,
    moving,
    speeding_up,
    with_slot,
)

from kv_action_router.contracts import (
    AuxiliaryOutput,
    ChunkKind,
    DriveSample,
    InjectorEvent,
    InjectorState,
    JointReading,
)
from kv_action_router.injection.stop_latch import StopRequest

STOP = StopRequest(True, "operator", "button", 1)


def step_limits(bench: Bench) -> None:
    """Assert that no tick moved the set-point by more than v_max dt and a_max dt."""
    dt = PERIOD_NS * 1e-9
    position, velocity = bench.steps()
    assert position <= 2.0 * dt * 1.021
    assert velocity <= 10.0 * dt * 1.021 + 1e-5


# --- activation (K07) ------------------------------------------------------------------------


@pytest.mark.parametrize("start", [(0.0, 0.0), (0.5, -0.5), (-2.9, 40.0)])
def test_first_command_holds_the_measured_state(start: tuple[float, float]) -> None:
    bench = Bench(start)
    command = bench.tick()
    assert command.send
    assert command.values == pytest.approx([5.0 * math.cos(start[0]), 0.0])  # gravity, no more
    bench.run(200)
    assert bench.q == pytest.approx(start, abs=1e-6)
    assert bench.controller.state is InjectorState.HOLD


@pytest.mark.parametrize("interface", ["position", "velocity", "duty"])
def test_first_command_of_other_interfaces(interface: str) -> None:
    bench = Bench((0.5, -0.5), command_interface=interface)
    values = bench.tick().values
    expected = {
        "position": [0.5, -0.5],
        "velocity": [0.0, 0.0],
        "duty": [5.0 * math.cos(0.5) / 50.0, 0.0],
    }
    assert values == pytest.approx(expected[interface])


def test_activation_half_a_radian_from_the_last_command_does_not_lunge() -> None:
    bench = Bench()
    bench.follow(speeding_up((0.0, 0.0), 0.5), 100)
    bench.q, bench.v = [0.55, -0.45], [0.0, 0.0]  # moved by hand while inactive
    bench.controller.activate(bench.now)
    values = bench.tick().values
    assert values == pytest.approx([5.0 * math.cos(0.55), 0.0], abs=1e-6)
    bench.run(300)
    assert bench.q == pytest.approx([0.55, -0.45], abs=1e-4)


def test_nothing_is_sent_before_the_first_complete_joint_state() -> None:
    bench = Bench()
    bench.silent_from = 0
    for _ in range(20):
        assert not bench.tick().send
    assert bench.controller.state is InjectorState.INACTIVE
    bench.inputs.joints = JointReading(("a",), [0.1], [0.0], [], bench.now, bench.now)
    assert not bench.tick().send
    assert bench.controller.joints.missing() == ["b"]


def test_joint_states_that_never_come_are_reported_after_the_grace() -> None:
    bench = Bench(grace=0.1)
    bench.silent_from = 0
    bench.run(110)
    assert bench.controller.state is InjectorState.FAIL_SAFE
    assert "joint_states never heard of" in bench.modes.reason
    assert not bench.command.send
    bench.silent_from = None
    bench.run(400)
    assert bench.command.send
    assert bench.kinds() == [InjectorEvent.FAIL_SAFE, InjectorEvent.RELEASED]


# --- chunks (K05, K09, K15) ------------------------------------------------------------------


def test_seams_are_continuous_and_the_path_is_followed() -> None:
    bench = Bench()
    path = speeding_up((0.0, 0.0), 1.0)
    bench.run(20)
    bench.follow(path, 1000)  # 50 chunks
    assert bench.controller.state is InjectorState.FOLLOW
    assert bench.controller.counters.chunks_adopted == 50
    assert bench.kinds() == [InjectorEvent.ACTIVATED]
    step_limits(bench)
    speeds = np.array([entry[1] for entry in bench.log[200:]])
    assert np.abs(speeds - 1.0).max() < 1e-6  # no spike at any seam
    assert bench.q == pytest.approx(bench.controller.set_point.position, abs=0.01)


def test_a_chunk_that_starts_beside_the_set_point_is_blended_into() -> None:
    bench = Bench()
    bench.tick()
    bench.tick(chunk(holding([0.004, -0.004]), bench.now + PERIOD_NS))
    for index in range(20):
        begin = bench.now + PERIOD_NS
        bench.tick(chunk(holding([0.004, -0.004]), begin, sequence=2 + index))
        bench.run(18)
    assert bench.controller.set_point.position == pytest.approx([0.004, -0.004])
    step_limits(bench)
    assert bench.controller.counters.chunks_refused == 0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("column", [0, 3])
def test_one_sample_that_is_not_finite_is_refused_before_any_clamp(bad: float, column: int) -> None:
    bench = Bench()
    path = speeding_up((0.0, 0.0), 0.5)
    bench.follow(path, 40)
    broken = chunk(lambda t: path(t + 0.04), bench.now + PERIOD_NS, sequence=99)
    broken.samples[50, column] = bad
    bench.tick(broken)
    event = bench.events[-1]
    assert event.kind is InjectorEvent.CHUNK_INVALID
    assert "must be finite" in event.reason
    assert bench.controller.state is InjectorState.FOLLOW  # the last good chunk goes on
    bench.run(300)
    assert bench.controller.state is InjectorState.HOLD
    good = chunk(holding(bench.controller.set_point.position), bench.now + PERIOD_NS, sequence=100)
    bench.tick(good)
    assert bench.controller.state is InjectorState.FOLLOW
    step_limits(bench)


def test_a_chunk_too_far_away_is_refused() -> None:
    bench = Bench()
    bench.tick()
    bench.tick(chunk(holding([0.25, 0.0]), bench.now + PERIOD_NS))
    assert bench.kinds()[-1] is InjectorEvent.CHUNK_INVALID
    assert "a must be within 0.2 rad of the set-point, got 0.25" in bench.events[-1].reason
    assert bench.controller.state is InjectorState.HOLD


def test_continuous_joint_is_shifted_by_whole_turns() -> None:
    start = (0.0, 3.5 * math.pi)
    bench = Bench(start)
    bench.tick()
    bench.tick(chunk(holding([0.0, -0.5 * math.pi]), bench.now + PERIOD_NS))
    bench.run(30)
    assert bench.controller.state is InjectorState.FOLLOW
    assert bench.q == pytest.approx(start, abs=1e-6)


def test_other_epoch_and_old_sequences_are_dropped_and_counted() -> None:
    bench = Bench()
    bench.tick()
    bench.tick(chunk(holding([0.0, 0.0]), bench.now + PERIOD_NS, epoch=9))
    bench.tick(chunk(holding([0.0, 0.0]), bench.now + PERIOD_NS, sequence=5))
    bench.tick(chunk(holding([0.0, 0.0]), bench.now + PERIOD_NS, sequence=5))
    bench.tick(chunk(holding([0.0, 0.0]), bench.now + PERIOD_NS, sequence=4))
    assert bench.kinds()[1:] == [
        InjectorEvent.CHUNK_EPOCH, InjectorEvent.CHUNK_ORDER, InjectorEvent.CHUNK_ORDER,
    ]  # fmt: skip
    assert bench.controller.counters.chunks_refused == 3


# --- lateness (K10) ----------------------------------------------------------------------------


def late(bench: Bench, age_ms: float, sequence: int = 1) -> None:
    at = bench.now + PERIOD_NS
    trigger = at - round(age_ms * MS)
    bench.tick(chunk(holding([0.001, 0.0]), at, sequence=sequence, trigger_ns=trigger))


def test_chunk_whose_trigger_is_older_than_15_ms_makes_no_command() -> None:
    bench = Bench()
    bench.tick()
    late(bench, 15.1)
    assert bench.kinds()[-1] is InjectorEvent.CHUNK_LATE
    bench.run(100)
    assert bench.controller.set_point.position == [0.0, 0.0]
    assert bench.controller.counters.chunks_late == 1
    late(bench, 14.9, sequence=2)
    assert bench.controller.state is InjectorState.FOLLOW


def test_chunk_that_grows_too_old_inside_the_tick_is_withdrawn() -> None:
    bench = Bench()
    path = speeding_up((0.0, 0.0), 0.5)
    bench.follow(path, 30)
    twin = Bench()
    twin.follow(path, 30)
    at = bench.now + PERIOD_NS
    bench.inputs.joints = JointReading(("a", "b"), bench.q, bench.v, [], at, at - MS)
    bench.inputs.heartbeats.update({"encoder": at, "manager": at})
    bench.inputs.chunk = chunk(lambda t: path(t + 0.032), at, sequence=50, trigger_ns=at - 14 * MS)
    command = bench.controller.tick(at, bench.inputs)
    assert command.adopting is not None
    command = bench.controller.withdraw(at + 2 * MS)
    assert command.adopting is None
    twin.tick()
    assert command.values == pytest.approx(twin.command.values, abs=1e-12)
    assert bench.controller.set_point.position == twin.controller.set_point.position
    counters = bench.controller.counters
    assert (counters.chunks_late, counters.late_commands_sent) == (1, 0)
    assert counters.confident_ticks == twin.controller.counters.confident_ticks
    assert bench.modes.events[-1].kind is InjectorEvent.CHUNK_LATE


def test_chunk_without_a_trigger_or_from_the_future_is_refused() -> None:
    bench = Bench()
    bench.tick()
    at = bench.now + PERIOD_NS
    bench.tick(chunk(holding([0.0, 0.0]), at, trigger_ns=0))
    at += PERIOD_NS
    bench.tick(chunk(holding([0.0, 0.0]), at, trigger_ns=at + 2 * MS))
    assert bench.kinds()[1:] == [InjectorEvent.CHUNK_LATE, InjectorEvent.CHUNK_INVALID]


def test_chunk_that_has_ended_is_late_though_its_trigger_is_not() -> None:
    bench = Bench()
    bench.tick()
    at = bench.now + PERIOD_NS
    bench.tick(chunk(holding([0.0, 0.0]), at - 60 * MS, trigger_ns=at))
    assert "ended before it arrived" in bench.events[-1].reason


def test_chunk_whose_anchor_is_to_come_waits_for_it() -> None:
    bench = Bench()
    bench.tick()
    at = bench.now + PERIOD_NS
    bench.tick(chunk(holding([0.0, 0.0]), at + 6 * MS, trigger_ns=at))
    assert bench.controller.state is InjectorState.HOLD
    bench.run(6)
    assert bench.controller.state is InjectorState.FOLLOW


def test_starvation_ramps_to_rest_on_the_path_and_the_next_chunk_is_seamless() -> None:
    bench = Bench()
    path = speeding_up((0.0, 0.0), 1.0)
    bench.follow(path, 400)
    bench.run(60)
    assert bench.controller.state is InjectorState.RAMP
    assert bench.kinds()[-1] is InjectorEvent.STARVED
    point = bench.controller.set_point
    on_path = chunk(
        moving(point.position, point.velocity), bench.now, sequence=500,
        kind=ChunkKind.CONTINUATION, trigger_ns=bench.now,
    )  # fmt: skip
    bench.tick(on_path)
    assert bench.controller.state is InjectorState.FOLLOW
    bench.run(400)
    assert bench.controller.state is InjectorState.HOLD
    assert bench.v == pytest.approx([0.0, 0.0], abs=1e-3)
    step_limits(bench)


def test_two_lost_chunks_cause_no_ramp() -> None:
    bench = Bench()
    path = speeding_up((0.0, 0.0), 0.5)
    begin = bench.now + PERIOD_NS
    for index in range(100):
        new = None
        if index % 10 == 0 and index not in (30, 60):  # 40 ms without a chunk, twice
            at = begin + index * PERIOD_NS
            since = index * PERIOD_NS * 1e-9
            new = chunk(lambda t, s=since: path(t + s), at, sequence=index + 1)
        bench.tick(new)
    assert bench.kinds() == [InjectorEvent.ACTIVATED]


def test_chunk_that_ends_at_rest_is_held_without_a_complaint() -> None:
    bench = Bench()
    bench.tick()
    bench.tick(chunk(holding([0.0, 0.0]), bench.now + PERIOD_NS, ends_at_rest=True))
    bench.run(500)
    assert bench.controller.state is InjectorState.HOLD
    assert bench.kinds() == [InjectorEvent.ACTIVATED]


# --- stop --------------------------------------------------------------------------------------


@pytest.mark.parametrize("interface", ["effort", "velocity", "position"])
def test_a_stop_by_fail_safe_goes_to_the_fail_safe_value_and_stays_stopped(interface: str) -> None:
    bench = Bench(command_interface=interface)
    bench.follow(speeding_up((0.0, 0.0), 0.5), 200)
    epoch = bench.controller.epoch
    request = StopRequest(True, "failure_monitor", "elbow is lost", 1, fail_safe=True)
    bench.tick(stops=[request])
    assert bench.controller.state is InjectorState.FAIL_SAFE
    assert bench.controller.epoch > epoch
    assert bench.kinds()[-1] is InjectorEvent.FAIL_SAFE
    assert "failure_monitor: elbow is lost" in bench.modes.reason
    bench.run(600)
    assert bench.controller.state is InjectorState.STOPPED  # nothing but a release ends it
    assert bench.v == pytest.approx([0.0, 0.0], abs=0.01)
    step_limits(bench)
    bench.modes.ask_release()
    bench.tick()
    assert bench.controller.state is InjectorState.HOLD
    bench.tick(stops=[request])  # delivered again: it was released
    assert bench.controller.state is InjectorState.HOLD


def test_a_stop_that_is_engaged_can_still_become_a_fail_safe() -> None:
    bench = Bench()
    bench.follow(speeding_up((0.0, 0.0), 0.5), 200)
    bench.tick(stops=[STOP])
    assert bench.controller.state is InjectorState.STOPPED
    bench.tick(stops=[StopRequest(True, "failure_monitor", "it slips", 2, fail_safe=True)])
    assert bench.controller.state is InjectorState.FAIL_SAFE
    bench.run(600)
    assert bench.controller.state is InjectorState.STOPPED
    assert bench.modes.stop.source == "operator"  # who was first
    step_limits(bench)


def test_before_the_first_joint_state_a_stop_by_fail_safe_stops() -> None:
    bench = Bench()
    bench.silent_from = 0
    bench.tick(stops=[StopRequest(True, "failure_monitor", "x", 1, fail_safe=True)])
    assert bench.controller.state is InjectorState.INACTIVE
    bench.silent_from = None
    bench.run(20)
    assert bench.controller.state is InjectorState.STOPPED


def test_stop_wins_and_only_its_release_and_a_fresh_decision_move_again() -> None:
    bench = Bench()
    path = speeding_up((0.0, 0.0), 0.5)
    bench.follow(path, 200)
    epoch = bench.controller.epoch
    bench.tick(stops=[STOP])
    assert bench.controller.state is InjectorState.STOPPED
    assert bench.controller.epoch == epoch + 1
    bench.inputs.stops = []
    bench.follow(lambda t: path(t + 0.2), 100)  # of the new epoch, and a decision
    bench.tick(stops=[StopRequest(False, "operator", "clears it?", 2)])
    bench.inputs.stops = []
    assert bench.controller.state is InjectorState.STOPPED
    bench.run(100)
    assert bench.v == pytest.approx([0.0, 0.0], abs=0.01)
    step_limits(bench)

    bench.modes.ask_release()
    bench.tick()
    assert bench.modes.release_answer == (True, "released; a fresh decision is needed to move")
    assert bench.controller.state is InjectorState.HOLD
    here = list(bench.q)
    at = bench.now + PERIOD_NS
    epoch = bench.controller.epoch
    bench.tick(chunk(holding(here), at, epoch=epoch, kind=ChunkKind.CONTINUATION))
    assert bench.controller.state is InjectorState.HOLD
    at = bench.now + PERIOD_NS
    bench.tick(chunk(holding([here[0] + 0.06, here[1]]), at, epoch=epoch, sequence=2))
    assert "within 0.05 rad of the measured state" in bench.events[-1].reason
    at = bench.now + PERIOD_NS
    bench.tick(chunk(moving(here, [0.2, 0.0]), at, epoch=epoch, sequence=3))
    assert "must start with at most 0.05 rad/s" in bench.events[-1].reason
    at = bench.now + PERIOD_NS
    bench.tick(chunk(holding(here), at, epoch=epoch, sequence=4))
    assert bench.controller.state is InjectorState.FOLLOW


def test_stop_at_half_a_radian_a_second_rests_within_150_ms() -> None:
    bench = Bench()
    bench.follow(speeding_up((0.0, 0.0), 0.5), 300)
    bench.inputs.stops = [STOP]
    bench.run(150)
    assert bench.controller.joints.at_rest(0.01)


def test_release_while_moving_is_refused() -> None:
    bench = Bench()
    bench.follow(speeding_up((0.0, 0.0), 1.0), 300)
    bench.tick(stops=[STOP])
    bench.inputs.stops = []
    bench.modes.ask_release()
    bench.tick()
    assert bench.modes.release_answer is not None
    assert not bench.modes.release_answer[0]
    assert bench.modes.stop.engaged


def test_stop_before_activation_lets_nothing_move() -> None:
    bench = Bench()
    bench.tick(stops=[STOP])
    assert bench.controller.state is InjectorState.STOPPED
    assert bench.command.values == pytest.approx([5.0, 0.0])


# --- fail-safe (K08) -----------------------------------------------------------------------------


def test_joint_states_freeze_two_seconds_in_mid_chunk() -> None:
    bench = Bench()
    path = speeding_up((0.0, 0.0), 0.5)
    bench.follow(path, 200)
    epoch = bench.controller.epoch
    bench.silent_from = bench.now
    frozen_at = bench.now
    sequence = bench.follow(lambda t: path(t + 0.2), 2000)
    assert bench.controller.epoch == epoch + 1
    assert bench.controller.state is InjectorState.FAIL_SAFE
    assert not bench.command.send  # the drives' own time-out brakes
    event = next(e for e in bench.events if e.kind is InjectorEvent.FAIL_SAFE)
    assert event.source == "joint_states"
    assert event.now_ns - frozen_at <= 24 * MS
    assert sequence > 50  # chunks went on coming all the time

    bench.silent_from = None
    before = list(bench.q)
    bench.follow(lambda t: path(t + 2.2), 500)  # the motion as if nothing had happened: no catch-up
    assert bench.controller.state is InjectorState.HOLD
    assert bench.q == pytest.approx(before, abs=2e-3)
    assert bench.command.send

    at = bench.now + PERIOD_NS
    bench.tick(chunk(holding(bench.q), at, epoch=bench.controller.epoch, sequence=9000))
    assert bench.controller.state is InjectorState.FOLLOW


def test_a_second_cause_is_told_behind_the_first_and_each_only_once() -> None:
    bench = Bench()
    bench.run(100)
    bench.lost.add(NODES[0])
    bench.run(100)
    bench.lost.clear()
    bench.run(4)  # not long enough to leave the fail-safe
    bench.lost.add(NODES[1])
    bench.run(100)
    told = [e.source for e in bench.events if e.kind is InjectorEvent.FAIL_SAFE]
    assert told == [NODES[0], NODES[1]]


def test_joint_states_that_are_held_up_count_as_silence() -> None:
    bench = Bench()
    bench.follow(speeding_up((0.0, 0.0), 0.5), 100)
    held_up: deque[JointReading] = deque()
    bench.silent_from = 0
    begin, moved = bench.now, 0.0
    for _ in range(500):
        now = bench.now
        held_up.append(JointReading(("a", "b"), list(bench.q), list(bench.v), [], now + MS, now))
        late = held_up.popleft() if now - begin >= 100 * MS else None
        bench.tick(joints=late and late._replace(receipt_ns=bench.now + MS))
        if bench.now - begin > 200 * MS:
            moved = max(moved, *map(abs, bench.v))
    assert bench.controller.state is InjectorState.FAIL_SAFE
    assert bench.modes.reason.endswith("late by 100 ms (limit 20 ms)")
    assert moved == 0.0  # a loop that is closed on them swings up
    bench.silent_from = None
    bench.run(500)
    assert bench.controller.state is InjectorState.HOLD


def test_frozen_values_count_as_silence() -> None:
    bench = Bench()
    bench.follow(speeding_up((0.0, 0.0), 0.5), 100)
    stuck = JointReading(("a", "b"), list(bench.q), list(bench.v), [], bench.now, 0)
    bench.silent_from = 0
    for _ in range(20):
        bench.tick(joints=stuck._replace(receipt_ns=bench.now + MS))
    assert bench.controller.state is InjectorState.FAIL_SAFE


@pytest.mark.parametrize("interface", ["effort", "velocity", "position"])
def test_lost_node_brings_the_arm_to_rest_within_200_ms(interface: str) -> None:
    bench = Bench(command_interface=interface)
    path = speeding_up((0.0, 0.0), 0.5)
    bench.follow(path, 300)
    bench.lost.add("manager")
    lost_at = bench.now
    bench.log.clear()
    commands = [list(bench.command.values)]
    while bench.now - lost_at < 200 * MS:
        since = (bench.now - lost_at) * 1e-9 + 0.3
        new = chunk(lambda t, s=since: path(t + s), bench.now + PERIOD_NS,
                    sequence=1000 + bench.now // PERIOD_NS, epoch=bench.controller.epoch,
                    kind=ChunkKind.CONTINUATION)  # fmt: skip
        bench.tick(new)
        commands.append(list(bench.command.values))
    assert bench.controller.state is InjectorState.FAIL_SAFE
    assert bench.modes.reason.startswith("manager not heard of")
    assert bench.controller.joints.at_rest(0.01)
    step_limits(bench)
    steps = np.abs(np.diff(np.array(commands), axis=0)).max()
    if interface == "position":
        assert min(commands[-1]) > 0.1  # never zeros as positions
        assert steps <= 2.0 * PERIOD_NS * 1e-9
    elif interface == "velocity":
        assert steps <= 10.0 * PERIOD_NS * 1e-9 * 1.03
        assert commands[-1] == pytest.approx([0.0, 0.0], abs=1e-3)
    else:
        assert steps < 3.0  # [N m] a tick; no step to another law


def test_after_the_cause_is_gone_a_decision_from_the_measured_state_leaves_the_fail_safe() -> None:
    bench = Bench()
    bench.follow(speeding_up((0.0, 0.0), 0.3), 200)
    bench.lost.add("encoder")
    bench.run(500)
    at = bench.now + PERIOD_NS
    bench.tick(chunk(holding(bench.q), at, epoch=bench.controller.epoch, sequence=8000))
    assert bench.controller.state is InjectorState.FAIL_SAFE  # still lost
    bench.lost.clear()
    bench.run(110)
    assert bench.kinds()[-1] is InjectorEvent.RELEASED
    at = bench.now + PERIOD_NS
    bench.tick(chunk(holding(bench.q), at, epoch=bench.controller.epoch, sequence=8001))
    assert bench.controller.state is InjectorState.FOLLOW


def test_stop_during_fail_safe_stays_engaged_afterwards() -> None:
    bench = Bench()
    bench.run(20)
    bench.lost.add("encoder")
    bench.run(100)
    bench.tick(stops=[STOP])
    bench.inputs.stops = []
    bench.lost.clear()
    bench.run(400)
    assert bench.controller.state is InjectorState.STOPPED
    at = bench.now + PERIOD_NS
    bench.tick(chunk(holding(bench.q), at, epoch=bench.controller.epoch))
    assert bench.controller.state is InjectorState.STOPPED


def test_a_loop_that_was_away_for_longer_than_the_drives_wait_begins_anew() -> None:
    bench = Bench()
    bench.follow(speeding_up((0.0, 0.0), 0.5), 200)
    bench.now += 60 * MS
    bench.v = [0.0, 0.0]  # braked by the drives
    bench.run(20)
    assert bench.controller.state is InjectorState.FAIL_SAFE
    assert "control loop was away for 62 ms" in bench.modes.reason
    here = list(bench.q)
    bench.run(500)
    assert bench.q == pytest.approx(here, abs=2e-3)


def test_required_imu_is_watched() -> None:
    bench = Bench(imu_required=True, grace=0.1)
    bench.run(120)
    assert bench.controller.state is InjectorState.FAIL_SAFE
    assert bench.modes.reason.startswith("imu never heard of")


# --- the rest ----------------------------------------------------------------------------------


def test_tick_without_time_changes_nothing_and_is_counted() -> None:
    bench = Bench()
    bench.follow(speeding_up((0.0, 0.0), 0.5), 50)
    values = list(bench.command.values)
    point = list(bench.controller.set_point.position)
    for now in (bench.now, bench.now - 5 * MS):
        bench.controller.tick(now, bench.inputs)
    assert bench.command.values == values
    assert bench.controller.set_point.position == point
    assert bench.controller.counters.refused_ticks == 2


def test_coming_to_rest_refuses_chunks_and_brakes() -> None:
    bench = Bench()
    path = speeding_up((0.0, 0.0), 0.5)
    bench.follow(path, 200)
    assert not bench.modes.resting
    bench.modes.come_to_rest()
    bench.follow(lambda t: path(t + 0.2), 200)
    assert bench.modes.resting
    assert bench.controller.state is InjectorState.HOLD


def test_hot_drive_is_derated_in_the_tick_that_takes_its_sample() -> None:
    bench = Bench()
    bench.run(10)
    sample = DriveSample(
        ("b", "a"), np.array([20.0, 71.0]), *[np.empty(0)] * 4, np.empty(0, np.bool_), bench.now
    )
    bench.tick(drives=sample)
    limits = bench.controller.drives.limits
    assert limits.effort_limit == (25.0, 50.0)
    assert limits.value.confident.tolist() == [False, True]
    assert bench.events[-1].kind is InjectorEvent.DRIVE
    assert bench.events[-1].execution is not None
    ticks = bench.controller.counters.confident_ticks
    bench.inputs.drives = None
    bench.run(10)
    assert bench.controller.counters.confident_ticks == ticks


def test_derating_never_lets_the_arm_fall() -> None:
    bench = Bench()
    bench.run(10)
    weak = execution_value(version=2, base=1, derating=0.01)  # 0.5 N m for a weight of 5 N m
    bench.tick(execution=weak)
    bench.run(500)
    assert bench.controller.drives.limits.value.version == 2
    assert bench.q == pytest.approx([0.0, 0.0], abs=1e-3)


def test_stale_or_bad_execution_values_are_refused_and_named() -> None:
    bench = Bench()
    bench.run(4)
    bench.tick(execution=execution_value(version=2, base=1))
    bench.tick(execution=execution_value(version=3, base=1))
    assert "was made from version 1, version 2 is in force" in bench.events[-1].reason
    bad = with_slot(execution_value(version=3, base=2), 1, "derivative_gain", math.nan)
    bench.tick(execution=bad)
    assert "b.derivative_gain must be finite" in bench.events[-1].reason
    assert bench.controller.drives.limits.value.version == 2


def test_auxiliary_output_is_fired_once_at_its_time() -> None:
    bench = Bench()
    bench.tick()
    fired = []
    begin = bench.now + PERIOD_NS
    for index in range(40):
        new = None
        if index in (0, 10):
            left = 0.03 - index * 0.002
            outputs = (AuxiliaryOutput("horn", left, 1.0),)
            new = chunk(
                holding([0.0, 0.0]),
                begin + index * PERIOD_NS,
                sequence=index + 1,
                auxiliary=outputs,
            )
        bench.tick(new)
        fired += [(index, output.name) for output in bench.command.auxiliary]
    assert fired == [(15, "horn")]


def test_stop_drops_what_was_due() -> None:
    bench = Bench()
    bench.tick()
    outputs = (AuxiliaryOutput("horn", 0.03, 1.0),)
    bench.tick(chunk(holding([0.0, 0.0]), bench.now + PERIOD_NS, auxiliary=outputs))
    bench.tick(stops=[STOP])
    bench.inputs.stops = []
    for _ in range(40):
        assert bench.tick().auxiliary == []


def test_decision_header_comes_back_with_the_adoption() -> None:
    bench = Bench()
    bench.tick()
    new = chunk(holding([0.0, 0.0]), bench.now + PERIOD_NS)
    new = dataclasses.replace(new, decision=dataclasses.replace(new.decision, trace_id=77))
    bench.tick(new)
    event = bench.events[-1]
    assert event.kind is InjectorEvent.CHUNK_ADOPTED
    assert event.chunk is not None
    assert (event.chunk.decision.trace_id, event.command_ns) == (77, bench.now)
