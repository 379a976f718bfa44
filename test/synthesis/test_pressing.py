"""Motions that press, search and turn; and what a stage asks of the execution layer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from synthesis_rig import make_match

from kv_action_router.contracts import SLOT, Decision, Pose, UpdateOperation
from kv_action_router.errors import PlanPendingError, TaskDefinitionError
from kv_action_router.robots.execution_values import load_execution_value
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.decider import Decider
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.pressing import Pressing
from kv_action_router.synthesis.replan import ReplanSource
from kv_action_router.synthesis.source import PlanRequest
from kv_action_router.synthesis.spline import Motion, MotionState
from kv_action_router.synthesis.stage_values import StageValues
from kv_action_router.tasks.definition import load_task
from kv_action_router.tasks.stages import (
    PressGoal,
    SearchGoal,
    StageDefinition,
    TargetGoal,
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


def test_a_set_point_that_presses_is_traced_back(robot: RobotModel, standing: np.ndarray) -> None:
    pressing = Pressing(robot)
    end = pressing.pressed(standing, 9.0)
    np.testing.assert_allclose(pressing.relieved(end, 9.0), standing, atol=1e-7)
    np.testing.assert_array_equal(pressing.relieved(end, 0.0), end)


def test_a_spiral_that_is_carried_elsewhere_stays_one(
    robot: RobotModel, standing: np.ndarray
) -> None:
    pressing, limits = Pressing(robot), MotionLimits.of(robot)
    goal = SearchGoal(STILL, press=0.0, radius=0.0017, pitch=0.0005, speed=0.006)
    stored = pressing.plan(goal, MotionState.at_rest(standing), standing, limits)
    place = robot.solve_ik(np.array([0.40, -0.15, 0.02]))
    end = pressing.end(goal, place, place)
    shares = np.linspace(0.0, stored.duration, 200)

    def way(motion: Motion) -> np.ndarray:
        tips = [robot.forward(point)[0].copy() for point in motion.derivative(shares, 0)]
        return np.array(tips)[:, :2] - tips[-1][:2]

    carried = pressing.carried(stored, place, end)
    np.testing.assert_allclose(carried.end, end, atol=1e-12)
    assert np.abs(way(carried) - way(stored)).max() < 5e-5
    copied = Motion(stored.knots, stored.coefficients + (end - stored.end))
    assert np.abs(way(copied) - way(stored)).max() > 5e-4  # a whole winding beside it


def test_a_search_is_around_where_the_tip_was_sent(robot: RobotModel, standing: np.ndarray) -> None:
    pressing = Pressing(robot)
    goal = SearchGoal(STILL, press=7.0)
    sent = robot.forward(standing)[0] + np.array([0.001, -0.002, 0.004])
    here = pressing.end(goal, standing, standing)
    there = pressing.end(goal, standing, standing, sent)
    jacobian = np.array(robot.jacobian(standing))
    way = (jacobian @ (there - here))[:3]
    np.testing.assert_allclose(way, [0.001, -0.002, 0.0], atol=1e-6)  # its height is no matter


def force_along(robot: RobotModel, motion: Motion, share: float, surface: float) -> np.ndarray:
    """Return the force (3,) and the slide (2,) of a tip that a set-point has sent into a surface.

    The arm is springs, and the surface takes a force straight up only: solved for the joints.
    """
    setpoint = motion.derivative(np.array([share * motion.duration]), 0)[0]
    stiffness = load_execution_value("ur5e_spindle").slots[:, SLOT["proportional_gain"]]
    place = setpoint.copy()
    force = 0.0
    for _ in range(8):  # of the force that keeps the tip on the surface
        tip, _ = robot.forward(place)
        jacobian = np.array(robot.jacobian(place))[2]
        force = max(0.0, force + (surface - tip[2]) / (jacobian @ (jacobian / stiffness)))
        place = setpoint + jacobian * force / stiffness
    return np.array([force, *robot.forward(place)[0]])


@pytest.mark.parametrize("deeper", [-0.0010, 0.0, 0.0010])
def test_a_contact_is_pressed_with_no_more_than_it_says_however_late_its_end_is_seen(
    robot: RobotModel, deeper: float
) -> None:
    contact = load_task("tighten_m3_screw").stages[1]
    assert isinstance(contact.goal, TargetGoal)
    target = np.array([0.46, 0.05, 0.01])
    head = target[2] + contact.goal.offset[2]
    start = robot.solve_ik(target + np.array([0.0, 0.0, 0.014]))
    request = PlanRequest(contact, MotionState.at_rest(start), Pose(target), np.zeros((0, 4)), None)
    motion = ReplanSource(robot, SynthesisConfig()).plan(request)
    stiffest = 2000.0  # [N/m] of the arm along the tool
    slides = []
    for share in np.linspace(0.6, 1.0, 9):
        force, *tip = force_along(robot, motion, share, head - deeper)
        assert force <= contact.goal.press + stiffest * max(0.0, -deeper) + 0.1
        if force > 0.0:
            slides.append(math.dist(tip[:2], target[:2]))
    assert slides
    # Inside the head, 2.75 mm, also where it stands a millimeter higher or lower than seen.
    assert max(slides) < 0.0002 + 1.5 * abs(deeper)
    assert force > 2.0  # the contact is felt


def test_a_cached_contact_presses_straight_at_another_place(robot: RobotModel) -> None:
    config = SynthesisConfig()
    contact = load_task("tighten_m3_screw").stages[1]
    assert isinstance(contact.goal, TargetGoal)
    source = ReplanSource(robot, config)
    places = [np.array([0.46, 0.05, 0.01]), np.array([0.52, -0.04, 0.012])]
    starts = [robot.solve_ik(place + np.array([0.0, 0.0, 0.014])) for place in places]
    first = source.plan(
        PlanRequest(
            contact, MotionState.at_rest(starts[0]), Pose(places[0]), np.zeros((0, 4)), None
        )
    )
    behavior = first.to_behavior(contact.subtask, robot.joint_names, Pose(places[0]))
    match = make_match(Pose(places[1]), hit=True, behavior=behavior, entry=3)
    decided = Decider(robot, config, source).decide(
        contact, match, MotionState.at_rest(starts[1]), np.zeros((0, 4))
    )
    assert decided.reused, decided.refused
    meets = Pressing(robot).relieved(decided.motion.end, contact.goal.press)
    wanted = places[1] + contact.goal.offset
    np.testing.assert_allclose(robot.forward(meets)[0], wanted, atol=2e-5)
    stood = place_of(robot, decided.motion, 0.55)
    assert math.dist(stood[:2], wanted[:2]) < 0.0008  # still on its line, to what a spline can


def test_a_press_waits_until_the_motion_before_has_come_to_rest(
    robot: RobotModel, standing: np.ndarray
) -> None:
    speed = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -0.25, -1.3])
    moving = MotionState(standing, speed, 30.0 * speed)
    with pytest.raises(PlanPendingError, match="comes to rest first"):
        Pressing(robot).plan(
            PressGoal(STILL), moving, standing, MotionLimits.of(robot).scaled(0.1, 0.1, 0.1)
        )


def place_of(robot: RobotModel, motion: Motion, share: float) -> np.ndarray:
    return robot.forward(motion.derivative(np.array([share * motion.duration]), 0)[0])[0]


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
