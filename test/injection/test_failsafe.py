"""Fail-safe by interface: on the line from the last command, to rest, then the measured pose."""

from __future__ import annotations

import math

import pytest
from injection_builders import MS, PERIOD_NS, Bench, chunk, holding, speeding_up

from kv_action_router.contracts import InjectorState
from kv_action_router.injection.failsafe import Phase


def failing(interface: str, **parameters: object) -> Bench:
    """Return a bench at 0.5 rad/s, one tick before a node counts as lost."""
    bench = Bench(command_interface=interface, **parameters)
    path = speeding_up((0.0, 0.0), 0.5)
    bench.follow(path, 200)
    bench.lost.add("manager")
    bench.follow(lambda t: path(t + 0.2), 58)
    return bench


def test_effort_goes_on_the_line_to_gravity_compensation() -> None:
    bench = failing("effort", fail_safe_duration=0.02)
    last = list(bench.command.values)
    while bench.controller.state is not InjectorState.FAIL_SAFE:
        last = list(bench.command.values)
        bench.tick()
    assert bench.command.values == pytest.approx(last)  # begins with the last command
    assert bench.modes.fail_safe.stiffness == 0.0
    while bench.modes.fail_safe.phase is Phase.MOVING:
        bench.tick()
    assert bench.modes.fail_safe.phase in (Phase.SETTLING, Phase.CAPTURING)
    gravity = 5.0 * math.cos(bench.q[0])
    assert bench.command.values[0] == pytest.approx(gravity, abs=1.0)
    bench.run(300)
    assert bench.modes.fail_safe.phase is Phase.HELD
    assert bench.modes.fail_safe.stiffness == 1.0
    assert bench.controller.set_point.position == pytest.approx(bench.q, abs=2e-3)


def test_held_arm_gives_way_and_is_held_where_it_is() -> None:
    """What pushed against the arm is not pushed back: the measured pose becomes the set-point."""
    bench = failing("effort")
    bench.run(20)
    bench.q = [value - 0.01 for value in bench.q]
    bench.run(500)
    assert bench.modes.fail_safe.phase is Phase.HELD
    assert bench.controller.set_point.position == pytest.approx(bench.q, abs=2e-3)


def test_velocity_ramps_to_zero_and_stays_there() -> None:
    bench = failing("velocity")
    bench.run(400)
    assert bench.command.values == pytest.approx([0.0, 0.0], abs=1e-3)
    assert bench.command.send


def test_position_is_never_zero_and_ends_at_the_measured_pose() -> None:
    bench = failing("position")
    for _ in range(200):
        bench.tick()
        assert min(bench.command.values) > 0.05
    assert bench.command.values == pytest.approx(bench.q, abs=1e-4)


@pytest.mark.parametrize(("interface", "sends"), [("effort", False), ("velocity", True)])
def test_without_joint_states_effort_falls_silent(interface: str, sends: bool) -> None:
    bench = Bench(command_interface=interface)
    bench.follow(speeding_up((0.0, 0.0), 0.5), 200)
    bench.silent_from = bench.now
    bench.run(60)
    assert bench.controller.state is InjectorState.FAIL_SAFE
    assert bench.command.send  # still braking, by the model
    bench.run(100)
    assert bench.command.send == sends


def test_after_the_silence_the_first_command_holds_the_measured_state() -> None:
    bench = Bench()
    bench.follow(speeding_up((0.0, 0.0), 0.5), 200)
    bench.silent_from = bench.now
    bench.run(200)
    bench.q, bench.v = [0.4, -0.4], [0.0, 0.0]  # moved by hand meanwhile
    bench.silent_from = None
    bench.run(2)
    assert bench.command.values == pytest.approx([5.0 * math.cos(0.4), 0.0], abs=1e-6)
    bench.run(300)
    assert bench.q == pytest.approx([0.4, -0.4], abs=1e-3)


def test_a_second_cause_does_not_begin_it_again() -> None:
    bench = failing("effort")
    bench.run(300)
    epoch = bench.controller.epoch
    bench.lost.add("encoder")
    bench.run(200)
    assert bench.controller.epoch == epoch
    assert bench.controller.state is InjectorState.FAIL_SAFE


def test_no_decision_leaves_it_before_its_cause_has_been_away_for_a_while() -> None:
    bench = failing("effort")
    bench.run(400)
    bench.lost.clear()
    for index in range(60):
        at = bench.now + PERIOD_NS
        epoch = bench.controller.epoch
        bench.tick(chunk(holding(bench.q), at, epoch=epoch, sequence=5000 + index))
        if bench.controller.state is InjectorState.FOLLOW:
            break
    assert 45 <= index <= 55
    assert bench.now > 100 * MS
