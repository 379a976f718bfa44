"""For any sequence of inputs, garbage included: finite, inside limits, no step, own epoch only."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from injection_builders import MS, NODES, PERIOD_NS, Bench, chunk, execution_value, holding

from kv_action_router.contracts import ChunkKind, InjectorEvent, InjectorState, JointReading
from kv_action_router.injection.stop_latch import StopRequest

number = st.floats(-4.0, 4.0)
wild = st.one_of(number, st.floats(allow_nan=True, allow_infinity=True))
speed = st.floats(-3.0, 3.0)

often = st.sampled_from  # the first values stand for what usually comes
chunks = st.tuples(
    st.lists(number, min_size=2, max_size=2),  # where the start lies beside the set-point
    st.lists(speed, min_size=2, max_size=2),
    st.one_of(st.floats(-5.0, 5.0), st.floats(-15.0, 15.0)),  # acceleration
    st.one_of(st.none(), st.none(), st.none(), wild),  # one sample that is replaced
    often(list(ChunkKind)),
    often([0, 0, 0, 0, 0, 0, 1, -1]),  # epoch, seen from the one in force
    st.one_of(st.integers(0, 14), st.integers(0, 14), st.integers(-30, 60)),  # trigger's age [ms]
    st.one_of(st.integers(0, 14), st.integers(0, 14), st.integers(-30, 60)),  # anchor's age [ms]
    often([0.001, 0.001, 0.001, 0.01, 0.1]),  # scale of the offset
    often([True, True, True, False]),  # goes on with the set-point's own velocity
)
good = [st.tuples(st.just("chunk"), chunks), st.tuples(st.just("run"), st.integers(1, 30))]
actions = st.one_of(
    *good * 4,
    st.tuples(st.just("stop"), st.booleans()),
    st.tuples(st.just("release"), st.none()),
    st.tuples(st.just("joints"), st.lists(wild, min_size=4, max_size=4)),
    st.tuples(st.just("silence"), st.integers(1, 60)),
    st.tuples(st.just("lose"), st.sampled_from(NODES)),
    st.tuples(st.just("recover"), st.none()),
    st.tuples(st.just("recover"), st.none()),
    st.tuples(st.just("stall"), st.integers(1, 60)),
    st.tuples(st.just("value"), st.floats(0.0, 1.0)),
)


def make_chunk(bench: Bench, sequence: int, parameters: tuple) -> object:
    offset, velocity, acceleration, bad, kind, epoch, trigger, anchor, scale, smooth = parameters
    point = bench.controller.set_point.position
    at = bench.now + PERIOD_NS
    if smooth:
        velocity = list(bench.controller.set_point.velocity)

    def path(t: float) -> tuple[list[float], list[float]]:
        return (
            [
                p + o * scale + v * t + 0.5 * acceleration * t * t
                for p, o, v in zip(point, offset, velocity, strict=True)
            ],
            [v + acceleration * t for v in velocity],
        )

    new = chunk(
        path,
        at - anchor * MS,
        sequence=sequence,
        epoch=bench.controller.epoch + epoch,
        kind=kind,
        trigger_ns=at - trigger * MS,
    )
    if bad is not None:
        new.samples[sequence % 100, sequence % 4] = bad
    return new


class Watched(Bench):
    """A bench that checks the invariants after every tick."""

    def tick(self, chunk=None, **inputs):
        point = self.controller.set_point
        before = (list(point.position), list(point.velocity), point.last_ns)
        silent = not self.command.send
        events = len(self.events)
        command = super().tick(chunk, **inputs)
        assert all(map(math.isfinite, command.values))
        if self.config.command_interface == "effort":
            assert all(-50.0 <= value <= 50.0 for value in command.values)
        if self.config.command_interface == "velocity":
            assert all(-2.0 - 1e-9 <= value <= 2.0 + 1e-9 for value in command.values)
        begun = silent or any(
            e.kind is InjectorEvent.ACTIVATED for e in self.events[events:]
        )  # from a measured state
        if not begun and point.last_ns > before[2]:
            dt = (point.last_ns - before[2]) * 1e-9
            for i in range(2):
                assert abs(point.position[i] - before[0][i]) <= 2.0 * dt * 1.021 + 1e-8
                assert abs(point.velocity[i] - before[1][i]) <= 10.0 * dt * 1.021 + 2e-5
        if self.controller.state is InjectorState.FOLLOW:
            assert self.modes.chunk is not None
            assert self.modes.chunk.decision.epoch == self.controller.epoch
            assert not self.modes.stop.engaged
        return command


def recover(bench: Bench, sequence: int) -> None:
    """All is alive again, the stop released, and a decision comes from the measured state."""
    bench.lost.clear()
    bench.run(200)
    bench.modes.ask_release()
    bench.tick()
    bench.tick(
        chunk(
            holding(bench.q),
            bench.now + PERIOD_NS,
            sequence=sequence,
            epoch=bench.controller.epoch,
        )
    )


def play(bench: Bench, steps: list[tuple]) -> None:
    sequence = 0
    for name, value in steps:
        if name == "run":
            bench.run(value)
        elif name == "chunk":
            sequence += 1
            bench.tick(make_chunk(bench, sequence, value))
        elif name == "stop":
            bench.tick(stops=[StopRequest(value, "x", "", bench.now)])
        elif name == "release":
            bench.modes.ask_release()
            bench.tick()
        elif name == "joints":
            at = bench.now + MS
            bench.silent_from = 0
            bench.tick(joints=JointReading(("b", "a"), value[:2], value[2:], [], at, at))
            bench.silent_from = None
        elif name == "silence":
            bench.silent_from = 0
            bench.run(value)
            bench.silent_from = None
        elif name == "lose":
            bench.lost.add(value)
        elif name == "recover":
            sequence += 1
            recover(bench, sequence)
        elif name == "stall":
            bench.now += value * MS
        else:
            version = bench.controller.drives.limits.value.version
            bench.tick(execution=execution_value(version + 1, version, derating=value))


@pytest.mark.parametrize("interface", ["effort", "velocity", "position"])
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(actions, min_size=5, max_size=25))
def test_invariants_hold_for_any_inputs(interface: str, steps: list[tuple]) -> None:
    bench = Watched(command_interface=interface)
    bench.tick()
    play(bench, steps)


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(actions, min_size=3, max_size=15))
def test_after_any_inputs_a_stop_brings_everything_to_rest(steps: list[tuple]) -> None:
    bench = Watched()
    bench.tick()
    play(bench, steps)
    bench.lost.clear()
    bench.tick(stops=[StopRequest(True, "operator", "", 0)])
    bench.run(900)
    assert bench.modes.stop.engaged
    positions = np.array([entry[0] for entry in bench.log[-20:]])
    assert np.abs(np.diff(positions, axis=0)).max() == 0.0
    assert bench.controller.state in (InjectorState.STOPPED, InjectorState.FAIL_SAFE)
