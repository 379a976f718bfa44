"""What a stage's goal means for the arm."""

from __future__ import annotations

import numpy as np

from kv_action_router.contracts import FloatArray, Pose
from kv_action_router.errors import TaskDefinitionError, UnreachableError
from kv_action_router.robots.model import RobotModel
from kv_action_router.tasks.stages import ConfigurationGoal, StageDefinition, TargetGoal

TOOL_DOWN = np.diag((1.0, -1.0, -1.0))


def tip_goal(stage: StageDefinition, target: Pose | None) -> FloatArray | None:
    """Return where the tip has to be [m] (3,), or None for a goal in joint space.

    Raises:
        UnreachableError: the stage acts on a target and none is seen.
    """
    if not isinstance(stage.goal, TargetGoal):
        return None
    if target is None:
        raise UnreachableError(f"stage {stage.name!r} needs a target and none is seen")
    return np.asarray(target.position, dtype=float) + stage.goal.offset


def goal_configuration(stage: StageDefinition, model: RobotModel) -> FloatArray:
    """Return the joint positions (n,) of a goal in joint space.

    Raises:
        TaskDefinitionError: the configuration is unknown, or has the wrong size.
    """
    goal = stage.goal
    assert isinstance(goal, ConfigurationGoal)
    if goal.positions:
        if len(goal.positions) != model.n:
            raise TaskDefinitionError(
                f"stage {stage.name!r}: configuration must have {model.n} values,"
                f" got {len(goal.positions)}"
            )
        return np.array(goal.positions)
    if goal.name != "home":
        raise TaskDefinitionError(
            f"stage {stage.name!r}: configuration must be 'home' or a list, got {goal.name!r}"
        )
    return model.home


def tool_down_at(rotation: FloatArray) -> FloatArray:
    """Return the rotation (3, 3) nearest to a given one whose tool axis points straight down."""
    x, y = rotation[0, 0] - rotation[1, 1], rotation[1, 0] + rotation[0, 1]
    turn = float(np.arctan2(y, x))
    cosine, sine = np.cos(turn), np.sin(turn)
    about_z = np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]])
    return about_z @ TOOL_DOWN
