"""Drives that stopped by themselves: noticed, given their pause, and only then commanded again."""

from __future__ import annotations

import numpy as np
import pytest
from injection_builders import MS, Bench, speeding_up

from kv_action_router.contracts import DriveSample, InjectorEvent, InjectorState
from kv_action_router.injection.drive_stops import DRIVES, DriveStops

EMPTY = np.empty(0)
PAUSE_NS = 80 * MS


def told(now_ns: int, *, braked: bool) -> DriveSample:
    brakes = np.array([False, braked])
    return DriveSample(("a", "b"), EMPTY, EMPTY, EMPTY, EMPTY, EMPTY, brakes, now_ns)


def stopped_at_speed() -> Bench:
    """Return a bench at 0.5 rad/s whose drives have just said that they stopped."""
    bench = Bench()
    bench.follow(speeding_up((0.0, 0.0), 0.5), 300)
    bench.v = [0.0, 0.0]
    bench.tick(drives=told(bench.now, braked=True))
    return bench


def test_it_fails_safe_in_the_tick_that_hears_of_it_and_says_nothing_for_a_pause() -> None:
    bench = stopped_at_speed()
    assert bench.controller.state is InjectorState.FAIL_SAFE
    assert "b stopped by themselves" in bench.modes.reason
    assert bench.events[-1].source == DRIVES
    begin = bench.now
    while not bench.command.send:
        bench.tick(drives=told(bench.now, braked=True))
    assert bench.now - begin >= PAUSE_NS
    # and it begins from where the arm stands, not from where its set-point had gone
    assert bench.controller.set_point.position == pytest.approx(bench.q, abs=1e-9)


def test_nothing_is_said_while_the_arm_still_moves() -> None:
    bench = stopped_at_speed()
    for _ in range(100):
        bench.v = [0.1, 0.0]
        assert not bench.tick(drives=told(bench.now, braked=True)).send


def test_it_tries_again_as_long_as_the_drives_stay_braked() -> None:
    bench = stopped_at_speed()
    said = []
    for _ in range(400):
        bench.tick(drives=told(bench.now, braked=True))
        said.append(bench.command.send)
    assert np.diff(np.array(said, int)).tolist().count(1) >= 2
    assert bench.controller.state is InjectorState.FAIL_SAFE


def test_it_leaves_the_fail_safe_once_the_drives_work() -> None:
    bench = stopped_at_speed()
    while not bench.command.send:
        bench.tick(drives=told(bench.now, braked=True))
    for _ in range(200):
        bench.tick(drives=told(bench.now, braked=False))
    assert bench.controller.state is InjectorState.HOLD
    assert bench.kinds()[-1] is InjectorEvent.RELEASED


def test_no_chunk_is_followed_by_drives_that_are_braked() -> None:
    bench = Bench()
    bench.run(10)
    bench.tick(drives=told(bench.now, braked=True))  # of the time before the first command
    assert bench.controller.state is InjectorState.HOLD
    bench.follow(speeding_up((0.0, 0.0), 0.5), 20)
    assert bench.controller.state is InjectorState.HOLD
    assert "brakes engaged" in bench.events[-1].reason
    bench.tick(drives=told(bench.now, braked=False))
    bench.follow(speeding_up((0.0, 0.0), 0.5), 20)
    assert bench.controller.state is InjectorState.FOLLOW


def test_drives_that_nobody_commands_may_be_braked() -> None:
    stops = DriveStops()
    stops.heard(told(1000 * MS, braked=True))
    assert stops.judge() == ("", "")
    stops.sending(1001 * MS, sends=True)
    stops.heard(told(1100 * MS, braked=True))  # may be 100 ms old
    assert stops.judge() == ("", "")
    stops.heard(told(1152 * MS, braked=True))
    assert stops.judge()[0] == DRIVES
    stops.sending(1153 * MS, sends=False)
    assert stops.judge() == ("", "")


def test_joint_states_that_stay_away_do_not_pull_the_set_point_ahead() -> None:
    """Between two samples the joints are expected as far from the set-point as they were."""
    bench = Bench()
    path = speeding_up((0.0, 0.0), 0.5)
    bench.follow(path, 60)
    before = list(bench.command.values)
    bench.silent_from = bench.now
    steps = []
    for _ in range(9):
        bench.tick()
        steps.append(abs(bench.command.values[1] - before[1]))
        before = list(bench.command.values)
    # 1 kg m^2 with 900 N m/rad: an arm that seemed to stand would be pulled by 4 N m more
    assert max(steps) < 0.1


def test_an_integral_that_was_wound_up_against_a_block_is_let_go() -> None:
    bench = Bench()
    path = speeding_up((0.0, 0.0), 0.5)
    bench.follow(path, 60)
    stuck = bench.q[1]
    for k in range(10):
        bench.q[1], bench.v[1] = stuck, 0.0
        bench.follow(lambda t, k=k: path(0.06 + 0.02 * k + t), 20)
    integral = bench.controller._law.pid.integral
    assert abs(integral[1]) > 1.0
    held = integral[0]
    bench.lost.add("manager")
    while bench.controller.state is not InjectorState.FAIL_SAFE:
        bench.q[1], bench.v[1] = stuck, 0.0
        bench.tick()
    assert integral[1] == 0.0
    assert integral[0] == pytest.approx(held, abs=0.5)
