"""A cell without dynamics: the arm goes where it is told, a work-piece pushes back."""

from __future__ import annotations

import numpy as np
import pytest

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import SimulationError
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.drives import Interface
from kv_action_router.simulation.kinematic_cell import STEP, STIFFNESS, KinematicCell

PLACE: FloatArray = np.array([0.45, 0.05, 0.03])


def build(delay: int = 0) -> tuple[KinematicCell, RobotModel]:
    robot = RobotModel.load("ur5e")
    cell = KinematicCell(SimulationConfig(), robot, delay, lambda: PLACE)
    cell.place_target()
    return cell, robot


def press(cell: KinematicCell, robot: RobotModel, offset: FloatArray) -> None:
    configuration = robot.solve_ik(PLACE + offset)
    cell.act(Interface.POSITION, configuration)


def test_the_arm_is_where_it_was_commanded_after_the_delay() -> None:
    cell, robot = build(delay=2)
    wanted = robot.home + 0.01
    reached = []
    for _ in range(3):
        cell.act(Interface.POSITION, wanted)
        reached.append(bool(np.array_equal(cell.plant.position, wanted)))
    assert reached == [False, False, True]
    assert cell.plant.velocity == pytest.approx(np.full(robot.n, 0.01 / STEP))
    cell.act(Interface.POSITION, None)
    cell.act(Interface.POSITION, None)
    cell.act(Interface.POSITION, None)
    assert np.array_equal(cell.plant.position, wanted)  # silence: it stays
    assert cell.plant.velocity == pytest.approx(np.zeros(robot.n))


def test_a_work_piece_pushes_back_under_the_tip_and_is_touched_once() -> None:
    cell, robot = build()
    press(cell, robot, np.array([0.005, 0.0, -0.001]))
    assert cell.plant.force == pytest.approx(STIFFNESS * 0.001, rel=0.01)
    press(cell, robot, np.array([0.005, 0.0, -0.002]))
    assert cell.sense().wrenches[-1].values[2] == pytest.approx(STIFFNESS * 0.002, rel=0.05)
    assert [round(contact.error, 4) for contact in cell.contacts] == [0.005]
    press(cell, robot, np.array([0.03, 0.0, -0.001]))  # beside it
    assert cell.plant.force == 0.0


def test_other_commands_than_positions_are_refused() -> None:
    cell, robot = build()
    with pytest.raises(SimulationError, match="must be 'position' without dynamics, got 'effort'"):
        cell.act(Interface.EFFORT, np.zeros(robot.n))
    assert cell.plant.steps == 0


def test_sensors_come_at_their_rates() -> None:
    cell, robot = build()
    cell.temperature = np.arange(robot.n, dtype=float)
    samples = []
    for _ in range(round(1.0 / STEP)):
        samples.append(cell.sense())
        cell.act(Interface.POSITION, None)
    assert sum(sample.image_due for sample in samples) == 30
    drives = [sample.drives for sample in samples if sample.drives is not None]
    assert len(drives) == 10
    assert drives[0].temperature.tolist() == cell.temperature.tolist()
    assert all(sample.imu is None for sample in samples)
    receipts = [wrench.receipt_ns for sample in samples for wrench in sample.wrenches]
    assert receipts == sorted(receipts)
    assert len(set(receipts)) == 200
    assert samples[1].now_ns - samples[0].now_ns == round(STEP * 1e9)
