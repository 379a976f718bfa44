"""What age does to the drives, and what a new drive does not notice of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.simulation.drives import Interface
from kv_action_router.simulation.wear import Wear

CONSTANT = np.array([12.0, 12.0, 9.0, 9.0])
NAMED = {"torque_loss": 0.01, "friction_rise": 0.05, "resistance_rise": 0.002}


def make_wear(**changed: float) -> Wear:
    return Wear(CONSTANT, np.full(4, 0.5), 0.0039, **{**NAMED, **changed})


def test_new_drives_give_what_they_are_asked_for():
    wear = make_wear()
    asked = [1.0, -2.0, 3.0, 4.0]
    assert wear.torque(asked) is asked
    assert wear.torque_constant.tolist() == CONSTANT.tolist()


@given(st.floats(0.0, 500.0), st.floats(0.1, 500.0))
def test_drives_only_get_worse_and_never_push_the_other_way(hours, more):
    wear = make_wear()
    wear.grow(hours)
    before = wear.torque_share, wear.friction, wear.resistance
    wear.grow(hours + more)
    assert (wear.torque_share > 0.0).all()
    assert (wear.torque_share < before[0]).all()
    assert (wear.friction > before[1]).all()
    assert (wear.resistance > before[2]).all()


def test_the_mean_drive_ages_at_the_rate_that_is_named():
    wear = make_wear()
    wear.grow(10.0)
    assert -np.log(wear.torque_share).mean() == pytest.approx(0.1)
    assert wear.friction.mean() == pytest.approx(1.5)
    assert wear.resistance.mean() == pytest.approx(1.02)
    assert len(set(wear.torque_share.tolist())) == 4  # no two drives alike


def test_a_single_drive_ages_at_that_rate():
    wear = Wear(CONSTANT[:1], np.ones(1), 0.0039, **NAMED)
    wear.grow(10.0)
    assert wear.torque_share[0] == pytest.approx(math.exp(-0.1))


def test_voltage_is_that_of_a_warm_winding_that_turns():
    wear = make_wear()
    current, velocity = np.array([2.0, 0.0, -1.0, 0.0]), np.array([0.0, 1.0, 0.5, 0.0])
    voltage = wear.voltage(current, np.full(4, 125.0), velocity)
    np.testing.assert_allclose(voltage, [0.5 * 1.39 * 2.0, 12.0, -0.5 * 1.39 + 4.5, 0.0])


@pytest.fixture
def aged(make_stepped):
    return make_stepped(age=20.0, torque_constant_loss=0.01, friction_rise=0.05)


def test_age_shows_in_torque_and_friction_of_the_plant(aged):
    plant = aged.plant
    assert plant.wear.hours == 20.0
    effort = np.array(aged.gravity())
    aged.run(0.002, lambda now: plant.drives.command(Interface.EFFORT, effort, (), now))
    np.testing.assert_allclose(
        plant.data.qfrc_applied, plant.wear.torque_share * plant.drives.torque, rtol=1e-9
    )
    np.testing.assert_allclose(
        plant.drives.current, effort / plant.drives.torque_constant, rtol=1e-9
    )
    ratio = plant.model.dof_damping / plant.model.dof_frictionloss
    np.testing.assert_allclose(ratio, ratio[0])


def test_drives_age_while_the_simulation_runs(make_stepped):
    stepped = make_stepped(ageing_speed=3600.0)
    stepped.run(2.1)
    assert stepped.plant.wear.hours == pytest.approx(2.0, abs=0.01)
    assert (stepped.plant.wear.torque_share < 1.0).all()


def test_drives_do_not_age_unless_they_are_told_to(stepped):
    stepped.run(1.2)
    assert stepped.plant.wear.hours == 0.0
