"""A search that succeeds teaches the motion before it where the target really was."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from synthesis_rig import make_match

from kv_action_router.contracts import CacheMatch, Pose, UpdateOperation
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.execution import Execution
from kv_action_router.synthesis.found import SHARE, FoundPlaces
from kv_action_router.synthesis.pressing import Pressing
from kv_action_router.synthesis.reanchor import joined
from kv_action_router.synthesis.spline import Motion
from kv_action_router.tasks.stages import SearchGoal, StageDefinition, TargetGoal, TurnGoal

STILL = np.zeros(3)
PLACE = np.array([0.46, 0.03, 0.02])
CONTACT = StageDefinition(
    "contact",
    "contact_v1",
    TargetGoal(STILL, line=True),
    (),
    needs_target=True,
    allowed_contact="target",
)
SEARCH = StageDefinition("search", "search_v1", SearchGoal(STILL), (), allowed_contact="target")
ENGAGE = StageDefinition("engage", "engage_v1", TurnGoal(STILL), (), allowed_contact="target")


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    return RobotModel.load("ur5e_spindle")


def match(robot: RobotModel) -> CacheMatch:
    hit = make_match(None, hit=True, entry=7, names=robot.joint_names)
    return dataclasses.replace(hit, entry_version=3, subtask="contact_v1")


def execution(robot: RobotModel, stage: StageDefinition, *, reused: bool = True) -> Execution:
    above = robot.solve_ik(PLACE + np.array([0.0, 0.0, 0.02]))
    end = robot.solve_ik(PLACE, None, above)
    motion = Motion.through(np.array([above, 0.5 * (above + end), end]))
    return Execution.of(match(robot), stage, motion, Pose(PLACE), reused, 0)


def at(robot: RobotModel, x: float, y: float, deeper: float = 0.0) -> np.ndarray:
    return robot.solve_ik(PLACE + np.array([x, y, -deeper]))


def test_the_cached_motion_ends_where_the_target_was_found(robot: RobotModel) -> None:
    places = FoundPlaces(robot)
    contact = execution(robot, CONTACT)
    assert places.learn(contact, at(robot, 0.0, 0.0)) is None
    assert places.learn(execution(robot, SEARCH), at(robot, 0.0008, -0.0006, 0.0005)) is None
    update = places.learn(execution(robot, ENGAGE), at(robot, 0.0006, -0.0005, 0.0013))
    assert update is not None
    assert (update.operation, update.entry_id, update.entry_version) == (
        UpdateOperation.REVISE,
        7,
        3,
    )
    assert "1.00 mm beside" in update.reason
    assert update.behavior is not None
    assert update.behavior.target is contact.target  # it is stored for the same sight
    moved = Motion.from_behavior(update.behavior, robot.joint_names)
    np.testing.assert_allclose(  # a share of what one search has found
        robot.forward(moved.end)[0], PLACE + SHARE * np.array([0.0008, -0.0006, 0.0]), atol=2e-5
    )
    np.testing.assert_allclose(moved.start, contact.template.start, atol=1e-9)
    # Once: the next search has no motion before it.
    assert places.learn(execution(robot, SEARCH), at(robot, 0.0008, -0.0006)) is None
    assert places.learn(execution(robot, ENGAGE), at(robot, 0.0008, -0.0006)) is None


def test_a_motion_that_presses_is_moved_by_where_it_presses(robot: RobotModel) -> None:
    pressing = Pressing(robot)
    stage = dataclasses.replace(CONTACT, goal=TargetGoal(STILL, line=True, press=6.0))
    contact = execution(robot, stage)
    end = pressing.pressed(contact.template.end, 6.0)
    contact.template = joined(
        contact.template, contact.template.state(0.0), end, contact.template.duration
    )
    places = FoundPlaces(robot)
    assert places.sent is None
    places.learn(contact, at(robot, 0.0004, 0.0))
    np.testing.assert_allclose(places.sent, PLACE, atol=1e-5)
    assert places.learn(execution(robot, SEARCH), at(robot, 0.0010, 0.0, 0.0005)) is None
    assert places.sent is None
    update = places.learn(execution(robot, ENGAGE), at(robot, 0.0008, 0.0, 0.0013))
    assert update is not None
    assert update.behavior is not None
    moved = Motion.from_behavior(update.behavior, robot.joint_names)
    np.testing.assert_allclose(
        robot.forward(pressing.relieved(moved.end, 6.0))[0],
        PLACE + np.array([SHARE * 0.0010, 0.0, 0.0]),
        atol=2e-5,
    )


@pytest.mark.parametrize(
    ("reused", "x"), [(False, 0.0008), (True, 0.00005), (True, 0.02)], ids=["new", "near", "far"]
)
def test_what_teaches_nothing(robot: RobotModel, reused: bool, x: float) -> None:
    places = FoundPlaces(robot)
    places.learn(execution(robot, CONTACT, reused=reused), at(robot, 0.0, 0.0))
    places.learn(execution(robot, SEARCH), at(robot, x, 0.0))
    assert places.learn(execution(robot, ENGAGE), at(robot, x, 0.0)) is None


def test_another_stage_or_task_between_them_says_nothing(robot: RobotModel) -> None:
    places = FoundPlaces(robot)
    other = dataclasses.replace(CONTACT, allowed_contact="")
    places.learn(execution(robot, CONTACT), at(robot, 0.0, 0.0))
    places.learn(execution(robot, other), at(robot, 0.0, 0.0))
    places.learn(execution(robot, SEARCH), at(robot, 0.0008, 0.0))
    assert places.learn(execution(robot, ENGAGE), at(robot, 0.0008, 0.0)) is None
    places.learn(execution(robot, CONTACT), at(robot, 0.0, 0.0))
    places.learn(execution(robot, SEARCH), at(robot, 0.0008, 0.0))
    places.forget()
    assert places.learn(execution(robot, ENGAGE), at(robot, 0.0008, 0.0)) is None
