"""What faults teach a drive's value: bounded steps that say where they come from."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from injection_builders import execution_value, with_slot

from kv_action_router.contracts import SLOT, DriveSample, ExecutionValue
from kv_action_router.injection.adjustment import ADJUSTMENTS, Lesson, adjust
from kv_action_router.injection.execution_layer import DriveFault, ExecutionLayer, update_cache
from kv_action_router.robots.execution_values import check_slots

EMPTY = np.empty(0)
TOUCHED = {SLOT["derating"], SLOT["stall_effort"]} | {
    SLOT[adjustment.slot] for adjustment in ADJUSTMENTS.values()
}


def slot(value: ExecutionValue, name: str, drive: int = 0) -> float:
    return float(value.slots[drive, SLOT[name]])


def sample(temperature: float, wheel_speed: float = float("nan")) -> DriveSample:
    heat, speed = np.array([temperature]), np.array([wheel_speed])
    return DriveSample(("a",), heat, EMPTY, EMPTY, EMPTY, speed, np.empty(0, np.bool_), 0)


@pytest.mark.parametrize("fault", [DriveFault.STALL, DriveFault.WHEEL_JUMP])
def test_stall_and_slip_lower_the_effort_by_one_step_and_say_so(fault: DriveFault) -> None:
    value = execution_value(stage_effort_limit=50.0, protective_effort_limit=50.0)
    after = ExecutionLayer(value).raise_fault("a", fault, value)
    assert slot(after, "stage_effort_limit") == pytest.approx(45.0)
    assert slot(after, "stage_effort_limit", 1) == 50.0  # the other drive's
    ratio = slot(value, "stall_effort") / slot(value, "stage_effort_limit")
    assert slot(after, "stall_effort") / 45.0 == pytest.approx(ratio)
    lesson = "stall" if fault == DriveFault.STALL else "slip"
    assert after.provenance == (
        f"a: {fault.name}; stage_effort_limit 50 -> 45 N m after {lesson} (not below 25)"
    )
    assert (after.version, after.base_version) == (2, 1)


def test_a_fault_that_stands_already_takes_no_second_step() -> None:
    value = execution_value(stage_effort_limit=50.0, protective_effort_limit=50.0)
    layer = ExecutionLayer(value)
    once = layer.raise_fault("a", DriveFault.STALL, value)
    assert layer.raise_fault("a", DriveFault.STALL, once) is once


def test_heat_lowers_the_share_for_the_next_time_once_it_is_over() -> None:
    value = execution_value(derated_share=0.6)
    hot = update_cache(sample(71.0), value)
    assert slot(hot, "derating") == pytest.approx(0.6)
    cool = update_cache(sample(60.0), hot)
    assert (slot(cool, "derating"), slot(cool, "derated_share")) == (1.0, pytest.approx(0.57))
    assert cool.provenance == (
        "a: cooled down to 60.0 degC; derated_share 0.6 -> 0.57 after heat (not below 0.4)"
    )
    assert slot(update_cache(sample(71.0), cool), "derating") == pytest.approx(0.57)


def test_a_limit_below_its_floor_was_meant_so_and_stays() -> None:
    value = execution_value(stage_effort_limit=3.0, protective_effort_limit=50.0)
    row = value.slots[0].copy()
    assert adjust(row, Lesson.STALL) == ""
    assert row.tolist() == value.slots[0].tolist()


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.one_of(
            st.sampled_from([DriveFault.STALL, DriveFault.WHEEL_JUMP, DriveFault.CLAMP]),
            st.floats(0.0, 150.0),
            st.just("trusted again"),
            st.just("another process"),
        ),
        max_size=60,
    ),
    st.floats(0.01, 60.0),
    st.floats(0.0, 1.0),
)
def test_no_sequence_of_faults_leaves_the_bounds(
    events: list[DriveFault | float | str], stage: float, share: float
) -> None:
    """Whatever happens, and whoever forgets in between that it has."""
    first = execution_value(
        stage_effort_limit=stage, protective_effort_limit=50.0, derated_share=share
    )
    value, layer = first, ExecutionLayer(first)
    untouched = [index for index in range(first.slots.shape[1]) if index not in TOUCHED]
    for event in events:
        before = value
        if isinstance(event, DriveFault):
            value = layer.raise_fault("a", event, value)
        elif isinstance(event, float):
            value = layer.on_drives(sample(event), value)
        elif event == "another process":
            layer = ExecutionLayer(value)
        else:
            value = dataclasses.replace(value, confident=np.ones(2, np.bool_))
            layer.reset(value)
        check_slots(value.drives, value.slots)
        for adjustment in ADJUSTMENTS.values():
            limit, at_first = slot(value, adjustment.slot), slot(first, adjustment.slot)
            lowest = min(at_first, adjustment.lowest(first.slots[0]))
            assert lowest * 0.99999 <= limit <= at_first
            assert limit <= slot(before, adjustment.slot)
        assert slot(value, "stall_effort") <= slot(first, "stall_effort")
        assert np.array_equal(value.slots[:, untouched], first.slots[:, untouched])
        assert np.array_equal(value.slots[1], first.slots[1])
        if value.version != before.version:
            assert value.base_version == before.version
            assert value.provenance.startswith("a: ")


def test_every_step_ends_at_its_floor() -> None:
    for lesson, adjustment in ADJUSTMENTS.items():
        row = with_slot(execution_value(), 0, adjustment.slot, 1.0).slots[0].copy()
        row[SLOT["protective_effort_limit"]] = 1.0
        steps = [adjust(row, lesson) for _ in range(50)]
        assert steps[0]
        assert not steps[-1]
        assert float(row[SLOT[adjustment.slot]]) == pytest.approx(adjustment.lowest(row))
