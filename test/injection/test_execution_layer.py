"""What the drives' feedback does to an execution value, without ROS and without a loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from injection_builders import execution_value

from kv_action_router.contracts import SLOT, DriveSample, ExecutionValue, ImuSample, JointSample
from kv_action_router.injection import load_execution_value, update_cache
from kv_action_router.injection.execution_layer import (
    GRAVITY,
    DriveFault,
    ExecutionLayer,
    acceleration_trim,
)

EMPTY = np.empty(0)


def heat(*temperatures: float, names: tuple[str, ...] = ("a", "b")) -> DriveSample:
    return DriveSample(
        names, np.array(temperatures), EMPTY, EMPTY, EMPTY, EMPTY, np.empty(0, np.bool_), 0
    )


def wheels(*speeds: float) -> DriveSample:
    return DriveSample(
        ("a", "b"), EMPTY, EMPTY, EMPTY, EMPTY, np.array(speeds), np.empty(0, np.bool_), 0
    )


def joints(effort: list[float], velocity: list[float]) -> JointSample:
    return JointSample(("a", "b"), np.zeros(2), np.array(velocity), np.array(effort), 0)


def imu(acceleration: list[float], orientation: list[float] | None = None) -> ImuSample:
    turn = np.full(4, np.nan) if orientation is None else np.array(orientation)
    return ImuSample(turn, np.zeros(3), np.array(acceleration), 0)


def derating(value: ExecutionValue) -> list[float]:
    return value.slots[:, SLOT["derating"]].tolist()


def test_hot_drive_switches_to_its_derated_share_and_back_with_hysteresis() -> None:
    value = execution_value()
    assert update_cache(heat(70.0, 69.0), value) is value
    hot = update_cache(heat(70.1, 69.0), value)
    assert (hot.version, hot.base_version) == (2, 1)
    assert hot.confident.tolist() == [False, True]
    assert derating(hot) == [0.5, 1.0]
    assert update_cache(heat(66.0, 20.0), hot) is hot
    cool = update_cache(heat(64.9, 20.0), hot)
    assert cool.confident.tolist() == [True, True]
    assert derating(cool) == [1.0, 1.0]
    assert value.version == 1  # never written into


def test_not_measured_changes_nothing() -> None:
    value = execution_value()
    assert update_cache(heat(math.nan, math.nan), value) is value
    assert update_cache(heat(), value) is value
    assert update_cache(heat(90.0, names=("gripper",)), value) is value
    assert update_cache(joints([math.nan, math.nan], [math.nan, math.nan]), value) is value
    assert update_cache(imu([math.nan] * 3), value) is value


def test_protective_effort_and_stall_lower_the_bit_and_no_sample_raises_it() -> None:
    value = execution_value()
    clamped = update_cache(joints([50.1, 0.0], [1.0, 0.0]), value)
    assert clamped.confident.tolist() == [False, True]
    assert derating(clamped) == [1.0, 1.0]
    stalled = update_cache(joints([0.0, -46.0], [0.0, 0.0]), value)
    assert stalled.confident.tolist() == [True, False]
    assert update_cache(joints([0.0, 46.0], [0.0, 0.5]), value) is value  # it moves
    assert update_cache(heat(20.0, 20.0), clamped) is clamped
    assert update_cache(joints([0.0, 0.0], [0.0, 0.0]), clamped) is clamped


def test_both_causes_must_go_before_confidence_comes_back() -> None:
    value = execution_value()
    layer = ExecutionLayer(value)
    value = layer.on_drives(heat(80.0, 20.0), value)
    value = layer.raise_fault("a", DriveFault.STALL, value)
    value = layer.on_drives(heat(20.0, 20.0), value)
    assert derating(value) == [1.0, 1.0]
    assert value.confident.tolist() == [False, True]
    assert layer.fault("a") == DriveFault.STALL


def test_wheel_speed_jump_lowers_the_bit_of_that_wheel() -> None:
    value = execution_value(wheel_jump_limit=2.0)
    layer = ExecutionLayer(value)
    assert layer.on_drives(wheels(10.0, 10.0), value) is value
    assert layer.on_drives(wheels(11.9, math.nan), value) is value
    value = layer.on_drives(wheels(11.9, 13.0), value)
    assert value.confident.tolist() == [True, False]
    assert layer.fault("b") == DriveFault.WHEEL_JUMP


@given(st.lists(st.floats(0.0, 120.0), min_size=1, max_size=40))
def test_bit_falls_above_the_limit_and_rises_only_below_the_hysteresis(
    temperatures: list[float],
) -> None:
    value = execution_value()
    layer = ExecutionLayer(value)
    confident = True
    for temperature in temperatures:
        value = layer.on_drives(heat(temperature), value)
        if temperature > 70.0:
            confident = False
        elif temperature < 65.0:
            confident = True
        assert value.confident.tolist() == [confident, True]
        share = value.slots[0, SLOT["derated_share"]]  # goes down from one heat to the next
        assert derating(value)[0] == (1.0 if confident else share)
        assert 0.4 <= share <= 0.5


def test_imu_moves_the_trims_of_all_drives() -> None:
    value = execution_value()
    for _ in range(200):
        value = update_cache(imu([0.5, 0.0, GRAVITY], [0.0, 0.0, 0.0, 1.0]), value)
    assert value.slots[:, :3] == pytest.approx(np.array([[0.5, 0.0, 0.0]] * 2), abs=1e-3)


@pytest.mark.parametrize(
    ("orientation", "gravity"),
    [
        ([0.0, 0.0, 0.0, 1.0], [0.0, 0.0, GRAVITY]),
        ([1.0, 0.0, 0.0, 0.0], [0.0, 0.0, -GRAVITY]),  # upside down
        ([math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)], [0.0, GRAVITY, 0.0]),
        ([0.0, -math.sqrt(0.5), 0.0, math.sqrt(0.5)], [GRAVITY, 0.0, 0.0]),
        (None, [3.0, 4.0, 0.0]),
    ],
)
def test_gravity_is_no_trim(orientation: list[float] | None, gravity: list[float]) -> None:
    length = math.sqrt(sum(x * x for x in gravity))
    sample = imu([x * GRAVITY / length for x in gravity], orientation)
    assert acceleration_trim(sample, (0.0, 0.0, 0.0)) == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)


@given(st.lists(st.floats(allow_nan=True), min_size=7, max_size=7))
def test_trim_is_finite_and_bounded_whatever_comes(numbers: list[float]) -> None:
    trim = acceleration_trim(imu(numbers[:3], numbers[3:]), (0.1, 0.2, 0.3))
    assert all(-50.0 <= value <= 50.0 for value in trim)


def test_packaged_values_serve_a_foreign_driver() -> None:
    value = load_execution_value("ur5e")
    sample = heat(*[30.0] * 5, 75.0, names=value.drives)
    after = update_cache(sample, value)
    assert after.confident.tolist() == [True] * 5 + [False]
    assert after.provenance == "wrist_3_joint: 75.0 degC above 70.0"
