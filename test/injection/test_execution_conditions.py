"""Rows of the execution layer: in force in the tick that takes the sample, and no chatter."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from injection_builders import MS, Bench

from kv_action_router.contracts import SLOT, DriveSample, InjectorEvent, InjectorState
from kv_action_router.injection.execution_conditions import ExecutionConditions
from kv_action_router.injection.execution_layer import DriveFault
from kv_action_router.monitoring.detectors.thermal import ThermalDetector
from kv_action_router.monitoring.signals import SignalTable
from kv_action_router.tasks.rule_file import parse_rules
from kv_action_router.tasks.rules import Rule, execution_rules

EMPTY = np.zeros(0)
BASE = {"severity": "warning", "error_code": 540, "message": "{source}: {value} over {limit}"}
WARM = {
    **BASE, "name": "warm", "signal": "drive_temperature", "op": ">", "limit": 60.0,
    "clear_limit": 55.0, "layer": "execution", "response": "derate",
}  # fmt: skip
LOADED = {
    **BASE, "name": "loaded", "error_code": 541, "signal": "drive_load", "op": ">", "limit": 1.5,
    "clear_limit": 1.2, "held_ms": 40, "max_gap_ms": 30, "layer": "execution",
    "response": "invalidate",
}  # fmt: skip
JUMP = {
    **BASE, "name": "jump", "error_code": 542, "signal": "wheel_speed", "op": "jump", "limit": 6.0,
    "layer": "execution", "response": ["invalidate", "fail_safe"],
}  # fmt: skip


def rules(*rows: dict[str, object]) -> tuple[Rule, ...]:
    return execution_rules(parse_rules({"conditions": list(rows)}))


def sample(
    ms: float,
    *,
    temperature: Sequence[float] = (),
    current: Sequence[float] = (),
    wheel: Sequence[float] = (),
) -> DriveSample:
    """Return feedback of the drives a and b, rated for 2 A."""
    rated = np.full(len(current), 2.0)
    return DriveSample(
        ("a", "b"), np.array(temperature, dtype=float), np.array(current, dtype=float), rated,
        EMPTY, np.array(wheel, dtype=float), np.zeros(0, dtype=np.bool_), int(ms * MS),
    )  # fmt: skip


def told(conditions: ExecutionConditions, one: DriveSample) -> list[tuple[str, str, bool]]:
    """Judge as the control loop does; return row, drive and whether it holds of each finding."""
    if conditions.quiet(one):
        return []
    return [(f.rule.name, f.drive, f.holds) for f in conditions.update(one)]


def test_each_drive_is_judged_for_itself_with_hysteresis() -> None:
    conditions = ExecutionConditions(rules(WARM))
    assert told(conditions, sample(0, temperature=[40, 61])) == [("warm", "b", True)]
    assert told(conditions, sample(20, temperature=[61, 58])) == [("warm", "a", True)]
    assert told(conditions, sample(40, temperature=[54, 56])) == [("warm", "a", False)]
    assert told(conditions, sample(60, temperature=[59, 55])) == [("warm", "b", False)]


@given(st.lists(st.floats(55.001, 60.0), max_size=40), st.booleans())
def test_inside_the_hysteresis_nothing_changes(inside: list[float], hot: bool) -> None:
    conditions = ExecutionConditions(rules(WARM))
    changes = told(conditions, sample(0, temperature=[70.0 if hot else 50.0, 40]))
    for index, value in enumerate(inside):
        changes += told(conditions, sample(20 * (index + 1), temperature=[value, 40]))
    assert changes == ([("warm", "a", True)] if hot else [])


@given(st.lists(st.sampled_from([math.nan, 58.0, None]), max_size=20))
def test_what_is_not_measured_changes_nothing(silence: list[float | None]) -> None:
    conditions = ExecutionConditions(rules(WARM))
    assert told(conditions, sample(0, temperature=[61, 40])) == [("warm", "a", True)]
    ms = 0.0
    for value in silence:
        ms += 20.0 if value is not None else 5_000.0  # None: nothing comes for a while
        if value is not None:
            assert told(conditions, sample(ms, temperature=[value, 40])) == []
    assert told(conditions, sample(ms + 20, temperature=[50, 40])) == [("warm", "a", False)]


def test_holding_is_broken_by_a_missing_sample() -> None:
    conditions = ExecutionConditions(rules(LOADED))
    for ms in (0, 20, 60, 80):  # 40 ms without a sample is more than the gap
        assert told(conditions, sample(ms, current=[-3.2, 0.1])) == []
    assert told(conditions, sample(100, current=[-3.2, 0.1])) == [("loaded", "a", True)]


def test_a_jump_is_of_two_samples_and_of_an_instant() -> None:
    conditions = ExecutionConditions(rules(JUMP))
    assert told(conditions, sample(0, wheel=[50.0, 0.0])) == []  # the first one says nothing
    assert told(conditions, sample(20, wheel=[55.0, 0.0])) == []
    assert told(conditions, sample(40, wheel=[61.1, 0.0])) == [("jump", "a", True)]
    assert told(conditions, sample(60, wheel=[61.0, 0.0])) == [("jump", "a", False)]
    assert conditions.quiet(sample(80, temperature=[40, 40]))  # a robot without wheels


def bench(*rows: dict[str, object]) -> Bench:
    made = Bench(rules=rules(*rows))
    made.run(20)
    return made


def tick(made: Bench, one: DriveSample) -> None:
    made.tick(drives=one)


def test_a_derated_limit_is_in_force_in_the_tick_that_takes_the_sample() -> None:
    made = bench(WARM)
    drives = made.controller.drives
    assert drives.limits.effort_limit == (50.0, 50.0)
    tick(made, sample(0, temperature=[40, 61]))
    assert drives.limits.effort_limit == (50.0, 25.0)
    assert drives.limits.value.confident.tolist() == [True, False]
    (event,) = [e for e in made.events if e.kind is InjectorEvent.DRIVE]
    assert "b: 61 over 60" in event.reason
    assert event.execution is not None
    assert event.execution.slots[1, SLOT["derating"]] == 0.5
    tick(made, sample(20, temperature=[40, 57]))
    assert drives.limits.effort_limit == (50.0, 25.0)
    tick(made, sample(40, temperature=[40, 54]))
    assert drives.limits.effort_limit == (50.0, 50.0)
    assert drives.limits.all_confident


def test_a_row_and_the_drives_own_limit_are_one_change() -> None:
    made = bench(WARM)  # the slot's limit is 70
    drives = made.controller.drives
    version = drives.limits.value.version
    tick(made, sample(0, temperature=[71, 40]))
    assert drives.limits.value.version == version + 1
    tick(made, sample(20, temperature=[64, 40]))  # below the slot's limit, not the row's
    assert drives.limits.effort_limit[0] == 25.0
    assert drives.limits.value.version == version + 1
    tick(made, sample(40, temperature=[54, 40]))
    assert drives.limits.all_confident
    assert drives.limits.value.version == version + 2


@settings(max_examples=20)
@given(st.lists(st.floats(55.001, 60.0), min_size=1, max_size=30))
def test_a_swinging_temperature_changes_the_value_at_most_once(values: list[float]) -> None:
    made = bench(WARM)
    version = made.controller.drives.limits.value.version
    tick(made, sample(0, temperature=[60.5, 40]))
    for index, value in enumerate(values):
        tick(made, sample(20 * (index + 1), temperature=[value, 40]))
    assert made.controller.drives.limits.value.version == version + 1


def test_what_is_invalidated_stays_so_until_a_new_value() -> None:
    made = bench(LOADED)
    drives = made.controller.drives
    for ms in range(0, 60, 20):
        tick(made, sample(ms, current=[3.2, 0.1]))
    assert drives.limits.value.confident.tolist() == [False, True]
    assert drives.limits.effort_limit == (50.0, 50.0)  # not derated
    for ms in range(60, 200, 20):
        tick(made, sample(ms, current=[0.1, 0.1]))
    assert drives.limits.value.confident.tolist() == [False, True]
    assert drives._layer.fault("a") == DriveFault.CONDITION


def test_a_jump_goes_to_the_fail_safe_in_the_same_tick() -> None:
    made = bench(JUMP)
    tick(made, sample(0, wheel=[50.0, 0.0]))
    assert made.controller.state is InjectorState.HOLD
    tick(made, sample(20, wheel=[57.0, 0.0]))
    assert made.controller.state is InjectorState.FAIL_SAFE
    assert "a: 57 over 6" in made.controller.modes.reason
    assert made.controller.drives.limits.value.confident.tolist() == [False, True]


def test_rows_of_other_layers_are_not_the_injectors() -> None:
    shown = parse_rules({"conditions": [WARM, {**BASE, "name": "x", "error_code": 543,
        "signal": "wrench_force", "op": ">", "limit": 1.0, "response": "brake"}]})  # fmt: skip
    assert [rule.name for rule in execution_rules(shown)] == ["warm"]


@pytest.mark.parametrize("signal", ["drive_temperature", "drive_current", "drive_load"])
def test_every_signal_of_the_drives_is_measured_as_the_monitor_does(signal: str) -> None:
    row = {**WARM, "signal": signal, "op": ">=", "limit": 1.0, "clear_limit": 0.5}
    conditions = ExecutionConditions(rules(row))
    one = sample(0, temperature=[30.0, 0.2], current=[-3.0, 0.2])
    table = SignalTable()
    ThermalDetector().on_drives(one, table)
    found = {f.drive: f.value for f in conditions.update(one) if f.holds}
    wanted = {d: table.value(signal, 0, source=d) for d in ("a", "b")}
    assert found == {drive: value for drive, value in wanted.items() if value >= 1.0}
