"""The shipped values let the arm follow a search though its drives are nothing but springs."""

from __future__ import annotations

import dataclasses
import math

import mujoco
import numpy as np
import pytest

from kv_action_router.contracts import SLOT
from kv_action_router.injection.effort_law import EffortLaw, State
from kv_action_router.injection.execution_table import ExecutionTable
from kv_action_router.robots.execution_values import load_execution_value
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.config import screw_cell
from kv_action_router.simulation.drives import Interface
from kv_action_router.simulation.plant import Plant

SPEED, RADIUS = 0.006, 0.001  # [m/s] of the search for a screw, [m] of one of its windings
OFF = 2.0e-4  # [m] less than half a winding's pitch is left uncovered
STEP = 0.002  # [s]


@pytest.mark.parametrize("place", [(0.45, 0.1, 0.1), (0.55, -0.15, 0.1)])
def test_springs_follow_a_search(place: tuple[float, float, float]) -> None:
    robot = RobotModel.load("ur5e_spindle")
    plant = Plant(screw_cell(), robot.home, robot.velocity_limit)
    value = load_execution_value("ur5e_spindle")
    slots = value.slots.copy()
    slots[:, SLOT["integral_gain"]] = 0.0
    limits = ExecutionTable(robot, dataclasses.replace(value, slots=slots)).current
    law, torque = EffortLaw(robot), [0.0] * robot.n
    middle = robot.solve_ik(np.array(place), None, robot.home)
    plant.position[:] = middle
    mujoco.mj_forward(plant.model, plant.data)
    across = np.linalg.pinv(robot.jacobian(middle))[:, :2]  # keeps height and direction
    still = np.zeros(robot.n)
    rate, worst = SPEED / RADIUS, 0.0
    for step in range(round(2.0 * math.tau / rate / STEP)):
        angle = rate * step * STEP
        round_ = np.array([math.cos(angle) - 1.0, math.sin(angle)]) * RADIUS
        along = np.array([-math.sin(angle), math.cos(angle)]) * SPEED
        wanted = State((middle + across @ round_).tolist(), (across @ along).tolist(), still)
        measured = State(plant.position.tolist(), plant.velocity.tolist(), still)
        law.compute(STEP, wanted, measured, limits, 1.0, torque)
        plant.drives.command(Interface.EFFORT, np.array(torque), (), round(step * STEP * 1e9))
        plant.step(round((step + 1) * STEP * 1e9))
        if angle > math.tau:  # the first round lets it settle
            worst = max(worst, math.dist(plant.bit.tip[:2], np.array(place[:2]) + round_))
    assert 0.0 < worst < OFF
