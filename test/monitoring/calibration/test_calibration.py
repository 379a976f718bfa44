"""Fits of all drives: near the truth, refused with number and limit, and nothing else changed."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from calibration_builders import Truth, make_rows, slot
from hypothesis import given, settings
from hypothesis import strategies as st

from kv_action_router.caching.layers.execution import ExecutionLayer
from kv_action_router.contracts import SLOT, SLOT_NAMES, ExecutionValue
from kv_action_router.errors import InputError
from kv_action_router.monitoring.calibration.calibration import CalibrationReport, DriveCalibration
from kv_action_router.monitoring.calibration.rows import Column
from kv_action_router.robots.execution_values import load_execution_value
from kv_action_router.robots.model import RobotModel

VALUE = load_execution_value("ur5e")
FITTED = (
    "torque_constant",
    "winding_resistance",
    "temperature_coefficient",
    "coulomb_friction",
    "viscous_friction",
)
ARM = 6  # joints that carry something; a spindle may come behind them


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    return RobotModel.load("ur5e")


@pytest.fixture(scope="module")
def fit(robot):
    calibration = DriveCalibration(robot, VALUE)

    def run(truth: Truth, value: ExecutionValue = VALUE, **arguments) -> CalibrationReport:
        return calibration.fit(make_rows(robot, value, truth, **arguments), value)

    return run


def refusals(report: CalibrationReport, drive: int) -> str:
    return "; ".join(map(str, report.fits[drive].refusals))


def test_drives_that_are_as_the_value_says_give_nothing_new(fit):
    report = fit(Truth(voltage_noise=0.0, current_noise=0.0))
    assert report.value is None
    assert report.fitted >= ARM
    assert not any(fit.changes for fit in report.fits)


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 1000), st.floats(0.65, 0.97), st.floats(1.3, 3.0), st.floats(1.05, 1.5))
def test_aged_drives_are_found(fit, robot, seed, constant, friction, resistance):
    pace = np.linspace(1.0, 0.95, robot.n)
    truth = Truth(constant * pace, friction, resistance)
    report = fit(truth, seed=seed)
    value = report.value
    assert value is not None
    found = slot(value, "torque_constant") / slot(VALUE, "torque_constant")
    np.testing.assert_allclose(found[:ARM], (constant * pace)[:ARM], rtol=0.01)
    found = slot(value, "coulomb_friction") / slot(VALUE, "coulomb_friction")
    np.testing.assert_allclose(found[:ARM], friction, rtol=0.2)
    told = [index for index in range(ARM) if "winding_resistance" in report.fits[index].slots]
    assert {1, 2} <= set(told)  # those that carry the arm
    found = slot(value, "winding_resistance") / slot(VALUE, "winding_resistance")
    np.testing.assert_allclose(found[told], resistance, rtol=0.03)


def test_a_new_value_is_made_from_the_one_in_force_and_says_what_changed(fit):
    present = dataclasses.replace(VALUE, version=7, base_version=6)
    report = fit(Truth(constant=0.9), present)
    value = report.value
    assert value is not None
    assert (value.version, value.base_version) == (8, 7)
    assert value.provenance.startswith("calibration: ")
    assert "shoulder_lift_joint: " in value.provenance
    assert "torque_constant 12 -> 10.8 N m/A" in value.provenance
    assert value.confident is present.confident
    others = [SLOT[name] for name in SLOT_NAMES if name not in FITTED]
    np.testing.assert_array_equal(value.slots[:, others], present.slots[:, others])
    assert not value.slots.flags.writeable


def test_the_cache_takes_it_and_goes_back(fit):
    layer = ExecutionLayer()
    layer.begin("robot", VALUE)
    value = fit(Truth(constant=0.9)).value
    assert value is not None
    layer.replace("robot", value)
    layer.go_back("robot", "the fit was made with a part in the gripper", VALUE.version)
    back = layer.value("robot")
    assert back is not None
    np.testing.assert_array_equal(slot(back, "torque_constant"), slot(VALUE, "torque_constant"))
    assert back.version == value.version + 1


def test_drives_in_another_order_keep_their_own_values(fit, robot):
    order = list(range(len(VALUE.drives)))[::-1]
    turned = dataclasses.replace(
        VALUE,
        drives=tuple(VALUE.drives[index] for index in order),
        slots=VALUE.slots[order],
        confident=VALUE.confident[order],
    )
    truth = Truth(constant=0.9)
    rows = make_rows(robot, VALUE, truth)
    plain = DriveCalibration(robot, VALUE).fit(rows, VALUE).value
    other = DriveCalibration(robot, turned).fit(rows, turned).value
    assert plain is not None
    assert other is not None
    np.testing.assert_array_equal(other.slots, plain.slots[order])


def test_a_joint_that_stood_is_refused_by_name_number_and_limit(fit):
    report = fit(Truth(constant=0.9, standing=(4,)))
    assert refusals(report, 4).endswith("rows in which the joint moves 0 (limit: at least 100)")
    assert report.fits[4].changes == ()
    assert report.value is not None
    old, new = slot(VALUE, "torque_constant"), slot(report.value, "torque_constant")
    assert new[4] == old[4]
    assert (new[:4] < old[:4]).all()


def test_too_few_rows_change_nothing(fit):
    report = fit(Truth(constant=0.9), count=80)
    assert report.value is None
    assert report.fitted == 0
    assert "(limit: at least 100)" in refusals(report, 0)


def test_no_rows_at_all_are_refused_too(fit):
    report = fit(Truth(), count=0)
    assert report.value is None
    assert report.rows == report.fitted == 0


def test_without_voltages_what_gravity_moves_is_fitted_and_the_rest_refused(robot):
    rows = make_rows(robot, VALUE, Truth(constant=0.9))
    rows[:, Column.VOLTAGE] = np.nan
    report = DriveCalibration(robot, VALUE).fit(rows, VALUE)
    assert "torque_constant" in report.fits[1].slots
    assert "winding_resistance" not in report.fits[1].slots
    assert "spread of the torque over the rated one" in refusals(report, 5)


def test_a_load_that_the_model_does_not_know_is_seen_by_the_back_emf(fit):
    report = fit(Truth(payload=0.3))
    assert "disagreement of torque and back-EMF" in refusals(report, 1)
    assert "(limit: at most 0.1)" in refusals(report, 1)
    assert "torque_constant" not in report.fits[1].slots


def test_a_constant_out_of_its_band_is_refused(fit):
    report = fit(Truth(constant=0.45))
    assert re.search(r"torque_constant 5\.\d+ \(limit: 6 to 18 N m/A\)", refusals(report, 1))
    assert report.value is None or slot(report.value, "torque_constant")[1] == 12.0


def test_the_band_is_that_of_the_data_sheet_however_often_one_calibrates(robot):
    value = VALUE
    calibration = DriveCalibration(robot, VALUE)
    share = 1.0
    for _ in range(3):
        share *= 0.75
        rows = make_rows(robot, VALUE, Truth(constant=share))
        value = calibration.fit(rows, value).value or value
    assert (
        slot(value, "torque_constant")[:ARM] >= 0.5 * slot(VALUE, "torque_constant")[:ARM]
    ).all()


def test_noise_beyond_measure_is_refused(fit, robot):
    rows = make_rows(robot, VALUE, Truth(constant=0.9))
    generator = np.random.default_rng(1)
    rows[:, Column.ACCELERATION] += 40.0 * generator.standard_normal(
        rows[:, Column.ACCELERATION].shape
    )
    report = DriveCalibration(robot, VALUE).fit(rows, VALUE)
    assert "residual of the torque" in refusals(report, 1)
    assert "torque_constant" not in report.fits[1].slots


def test_a_tenth_of_the_rows_in_contact_changes_next_to_nothing(robot):
    rows = make_rows(robot, VALUE, Truth(constant=0.9))
    rows[::10, Column.CURRENT] += 3.0
    report = DriveCalibration(robot, VALUE).fit(rows, VALUE)
    assert report.value is not None
    found = slot(report.value, "torque_constant") / slot(VALUE, "torque_constant")
    np.testing.assert_allclose(found[1:3], 0.9, rtol=0.02)


def test_the_temperature_coefficient_needs_a_warming(fit):
    warmed = fit(Truth(resistance=1.2, temperatures=(25.0, 65.0)))
    assert "temperature_coefficient" in warmed.fits[1].slots
    assert warmed.fits[1].slots["temperature_coefficient"] == pytest.approx(0.0039, rel=0.1)
    even = fit(Truth(resistance=1.2, temperatures=(40.0, 44.0)))
    assert "temperature_coefficient" not in even.fits[1].slots
    assert even.fits[1].slots["winding_resistance"] == pytest.approx(0.6, rel=0.02)


def test_a_value_or_a_data_sheet_that_lacks_a_joint_is_refused(robot):
    short = dataclasses.replace(
        VALUE, drives=VALUE.drives[1:], slots=VALUE.slots[1:], confident=VALUE.confident[1:]
    )
    with pytest.raises(InputError, match="drives must be with shoulder_pan_joint"):
        DriveCalibration(robot, short)
    with pytest.raises(InputError, match="drives must be with shoulder_pan_joint"):
        DriveCalibration(robot, VALUE).fit(np.zeros((0, len(Column), robot.n)), short)
