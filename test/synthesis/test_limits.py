"""Limits: each joint has all of them, and what leaves them is named."""

from __future__ import annotations

import numpy as np
import pytest

from kv_action_router.errors import LimitError, RobotModelError
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.limits import MotionLimits


def made(**changes: list[float]) -> MotionLimits:
    values = {
        "lower": [-1.0, -2.0],
        "upper": [1.0, 2.0],
        "velocity": [1.0, 1.0],
        "acceleration": [5.0, 5.0],
        "jerk": [50.0, 50.0],
    }
    values.update(changes)
    arrays = {name: np.array(value, dtype=float) for name, value in values.items()}
    return MotionLimits(("first", "second"), **arrays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"velocity": [1.0, 0.0]}, "joint 'second': velocity limit must be above 0"),
        ({"acceleration": [-1.0, 1.0]}, "joint 'first': acceleration limit"),
        ({"jerk": [1.0, float("nan")]}, "joint 'second': jerk limit"),
        ({"velocity": [float("inf"), 1.0]}, "joint 'first': velocity limit"),
        ({"lower": [-1.0, 3.0]}, "joint 'second': lower limit must be below"),
        ({"velocity": [1.0]}, "velocity must have 2 values"),
    ],
)
def test_missing_zero_or_inverted_limits_name_the_joint(
    change: dict[str, list[float]], message: str
) -> None:
    with pytest.raises(RobotModelError, match=message):
        made(**change)


def test_limits_of_the_robot_leave_continuous_joints_free(model: RobotModel) -> None:
    limits = MotionLimits.of(model)
    assert np.array_equal(limits.velocity, model.velocity_limit)
    assert np.array_equal(np.isinf(limits.upper), model.continuous)


def test_load_names_the_worst_joint() -> None:
    limits = made()
    rows = np.array([[0.5, -0.9], [0.1, 0.2]])
    load = limits.load(rows, rows, rows)
    assert load.velocity == pytest.approx(0.9)
    assert load.acceleration == pytest.approx(0.18)
    assert load.joint == 1


def test_stretch_brings_every_derivative_inside() -> None:
    limits = made()
    load = limits.load(np.full((1, 2), 2.0), np.full((1, 2), 80.0), np.full((1, 2), 400.0))
    stretch = load.stretch
    assert stretch == pytest.approx(4.0)
    assert load.velocity / stretch <= 1.0
    assert load.acceleration / stretch**2 <= 1.0 + 1e-12
    assert load.jerk / stretch**3 <= 1.0


def test_position_outside_is_named_with_limit_and_value() -> None:
    with pytest.raises(LimitError, match=r"'second': position must be at least -2.0000 rad"):
        made().check_positions(np.array([[0.0, 0.0], [0.0, -2.1]]))


def test_state_that_is_already_faster_widens_the_limits() -> None:
    wide = made().including(np.array([2.0, 0.1]), np.array([0.0, 9.0]))
    assert wide.velocity[0] >= 2.0
    assert wide.velocity[1] == 1.0
    assert wide.acceleration[1] >= 9.0
