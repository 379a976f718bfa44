"""How far from its goal a stage ended."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from synthesis_rig import make_match, pose

from kv_action_router.contracts import UpdateOperation
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.execution import Execution, result_error, success_update
from kv_action_router.synthesis.spline import Motion
from kv_action_router.tasks.stages import TaskDefinition

TARGET = pose(0.48, 0.05)


def ended(model: RobotModel, task: TaskDefinition, begin: list[float], end: list[float]) -> float:
    """Return the error of a touch between two places relative to the target [m]."""
    start = model.solve_ik(TARGET.position + np.array(begin))
    execution = touch(task, Motion.uniform(np.repeat(start[None], 12, axis=0), 1.0))
    measured = model.solve_ik(TARGET.position + np.array(end), seed=start)
    return result_error(execution, model, measured)


def touch(task: TaskDefinition, motion: Motion) -> Execution:
    return Execution.of(make_match(TARGET), task.stages[1], motion, TARGET, False, 0)


def test_contact_says_how_deep_a_line_goes(model: RobotModel, task: TaskDefinition) -> None:
    assert ended(model, task, [0.0, 0.0, 0.06], [0.0, 0.0, 0.003]) == pytest.approx(0.0, abs=1e-4)
    assert ended(model, task, [0.0, 0.0, 0.06], [0.003, 0.0, 0.0]) == pytest.approx(0.003, abs=1e-4)


def test_a_slanting_line_ends_beside_the_target(model: RobotModel, task: TaskDefinition) -> None:
    """It is on its line where it meets the surface, and 10 mm off all the same."""
    error = ended(model, task, [0.0, 0.05, 0.06], [0.0, 0.01, 0.0])
    assert error == pytest.approx(0.01, abs=2e-4)


def test_a_replan_that_missed_is_not_kept(model: RobotModel, task: TaskDefinition) -> None:
    execution = touch(task, Motion.uniform(np.repeat(model.home[None], 12, axis=0), 1.0))
    assert success_update(execution, model.joint_names, 0.0049) is not None
    assert success_update(execution, model.joint_names, 0.0051) is None


@pytest.mark.parametrize("reused", [True, False])
def test_a_motion_that_strayed_is_a_false_hit_or_not_kept(
    model: RobotModel, task: TaskDefinition, reused: bool
) -> None:
    stage = dataclasses.replace(task.stages[1], path_tolerance=0.02)
    motion = Motion.uniform(np.repeat(model.home[None], 12, axis=0), 1.0)
    execution = Execution.of(make_match(TARGET), stage, motion, TARGET, reused, 0)
    execution.strayed = 0.0199
    update = success_update(execution, model.joint_names, 0.001)
    assert update is not None
    assert update.operation == (UpdateOperation.SUCCESS if reused else UpdateOperation.INSERT)
    execution.strayed = 0.0234
    update = success_update(execution, model.joint_names, 0.001)
    if not reused:
        assert update is None
        return
    assert update is not None
    assert update.operation == UpdateOperation.FAILURE
    assert update.false_hit
    assert update.reason == "a joint strayed from its path by 23.4 mrad, above 20.0 mrad"


def test_a_path_without_tolerance_is_not_judged(model: RobotModel, task: TaskDefinition) -> None:
    execution = touch(task, Motion.uniform(np.repeat(model.home[None], 12, axis=0), 1.0))
    execution.strayed = 3.0
    assert success_update(execution, model.joint_names, 0.001) is not None
