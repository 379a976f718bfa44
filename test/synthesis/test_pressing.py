"""Motions that press, search and turn; and what a stage asks of the execution layer."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kv_action_router.contracts import SLOT, Decision, UpdateOperation
from kv_action_router.errors import TaskDefinitionError
from kv_action_router.robots.execution_values import load_execution_value
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.pressing import Pressing
from kv_action_router.synthesis.spline import MotionState
from kv_action_router.synthesis.stage_values import StageValues
from kv_action_router.tasks.stages import (
    PressGoal,
    SearchGoal,
    StageDefinition,
    TipGoal,
    TurnGoal,
)

STILL = np.zeros(3)


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    return RobotModel.load("ur5e_spindle")


@pytest.fixture(scope="module")
def standing(robot: RobotModel) -> np.ndarray:
    """Where the arm stands on something [rad]."""
    return robot.solve_ik(np.array([0.46, 0.05, 0.02]))


def test_springs_that_are_held_there_give_the_force_and_no_other(
    robot: RobotModel, standing: np.ndarray
) -> None:
    end = Pressing(robot).end(PressGoal(STILL, press=8.0), standing, standing)
    gains = load_execution_value("ur5e_spindle").slots[:, SLOT["proportional_gain"]]
    torque = gains * (end - standing)
    force = np.linalg.lstsq(robot.jacobian(standing)[:, :6].T, torque[:6], rcond=None)[0]
    np.testing.assert_allclose(force[:3], [0.0, 0.0, -8.0], atol=1e-4)
    np.testing.assert_allclose(force[3:], 0.0, atol=1e-4)


def test_letting_go_ends_where_the_arm_is(robot: RobotModel, standing: np.ndarray) -> None:
    wound = standing + np.array([0.001, 0.0, 0.0, 0.0, 0.0, 0.0, 4.0])
    end = Pressing(robot).end(PressGoal(STILL), wound, standing)
    np.testing.assert_allclose(end, standing)


def test_a_search_covers_its_area_around_where_the_tip_was_sent(
    robot: RobotModel, standing: np.ndarray
) -> None:
    goal = SearchGoal(STILL, press=0.0, radius=0.002, pitch=0.0005, speed=0.005)
    motion = Pressing(robot).plan(
        goal, MotionState.at_rest(standing), standing, MotionLimits.of(robot)
    )
    times = np.linspace(0.0, motion.duration, 400)
    center = robot.forward(standing)[0]
    way = np.array([robot.forward(q)[0] for q in motion.derivative(times, 0)]) - center
    radius = np.hypot(way[:, 0], way[:, 1])
    assert radius.max() == pytest.approx(goal.radius, rel=0.05)
    assert np.abs(way[:, 2]).max() < 1e-4
    speed = np.linalg.norm(np.diff(way, axis=0), axis=1) / np.diff(times)
    assert speed.max() < 3.0 * goal.speed
    # No place inside the radius is farther from the way than half a pitch, and a little.
    x, y = np.meshgrid(np.linspace(-0.0017, 0.0017, 25), np.linspace(-0.0017, 0.0017, 25))
    places = np.column_stack((x.ravel(), y.ravel()))
    places = places[np.hypot(*places.T) < 0.0017]
    away = np.linalg.norm(places[:, None] - way[None, :, :2], axis=2).min(axis=1)
    assert away.max() < 0.6 * goal.pitch


def test_a_turn_drives_the_tip_by_its_pitch(robot: RobotModel, standing: np.ndarray) -> None:
    goal = TurnGoal(STILL, joint="spindle_joint", turns=4.0, speed=12.0, pitch=0.0005)
    start = MotionState.at_rest(standing)
    motion = Pressing(robot).plan(goal, start, standing, MotionLimits.of(robot))
    assert motion.end[6] - motion.start[6] == pytest.approx(4.0 * math.tau)
    down = robot.forward(motion.start)[0] - robot.forward(motion.end)[0]
    np.testing.assert_allclose(down, [0.0, 0.0, 0.002], atol=2e-5)
    fastest = np.abs(motion.derivative(np.linspace(0.0, motion.duration, 200), 1)[:, 6]).max()
    assert fastest < 1.25 * goal.speed


def test_only_spindles_are_turned(robot: RobotModel, standing: np.ndarray) -> None:
    goal = TurnGoal(STILL, joint="elbow_joint")
    with pytest.raises(TaskDefinitionError, match=r"must be a spindle .*\(spindle_joint\)"):
        Pressing(robot).end(goal, standing, standing)
    plain = RobotModel.load("ur5e")
    with pytest.raises(TaskDefinitionError, match="it has none"):
        Pressing(plain).end(goal, plain.home, plain.home)


def stage(**execution: dict[str, float]) -> StageDefinition:
    named = {name.replace("rest", "*"): slots for name, slots in execution.items()}
    return StageDefinition("s", "s_v1", TipGoal(STILL), (), execution=named)


def test_a_stage_asks_once_and_its_end_takes_it_back(robot: RobotModel) -> None:
    values = StageValues(robot.joint_names)
    tighten = stage(rest={"integral_gain": 0.0}, spindle_joint={"stage_effort_limit": 1.5})
    update = values.update(tighten, Decision(domain="d"))
    assert update is not None
    assert update.execution is not None
    assert (update.operation, update.decision.domain) == (UpdateOperation.EXECUTION, "d")
    slots = update.execution.slots
    assert slots[6, SLOT["stage_effort_limit"]] == np.float32(1.5)
    assert np.isnan(slots[6, SLOT["integral_gain"]])
    assert (slots[:6, SLOT["integral_gain"]] == 0.0).all()
    assert np.isfinite(slots).sum() == 7
    assert values.update(tighten, Decision()) is None
    back = values.update(None, Decision())
    assert back is not None
    assert back.execution is not None
    assert np.isnan(back.execution.slots).all()
    assert values.update(stage(), Decision()) is None


def test_a_drive_that_is_not_there_is_named(robot: RobotModel) -> None:
    with pytest.raises(TaskDefinitionError, match="drive must be one of .*got 'gripper'"):
        StageValues(robot.joint_names).update(stage(gripper={"integral_gain": 0.0}), Decision())
