"""Inverse kinematics: accurate, inside limits, near the seed, refusing what cannot be reached."""

from __future__ import annotations

import time

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kv_action_router.errors import UnreachableError
from kv_action_router.robots.model import RobotModel

ROBOT = RobotModel.load()
DOWN = np.diag([1.0, -1.0, -1.0])


def turned_down(yaw: float) -> np.ndarray:
    return pin.rpy.rpyToMatrix(0.0, 0.0, yaw) @ DOWN


def over_table() -> list[np.ndarray]:
    """Grid over the table; the two far corners at z = 0.3 m are out of a UR5e's reach."""
    return [
        np.array([x, y, z])
        for x in np.linspace(0.3, 0.7, 5)
        for y in np.linspace(-0.35, 0.35, 5)
        for z in (0.0, 0.01, 0.07, 0.3)
        if not (z == 0.3 and x > 0.65 and abs(y) > 0.3)
    ]


def test_tool_down_from_home_over_the_whole_table():
    durations = []
    for target in over_table():
        start = time.perf_counter()
        q = ROBOT.solve_ik(target)
        durations.append(time.perf_counter() - start)
        position, rotation = ROBOT.forward(q)
        assert np.linalg.norm(position - target) < 1e-4
        assert np.arccos(min(1.0, -rotation[2, 2])) < 1e-4
        assert ((ROBOT.lower <= q) & (q <= ROBOT.upper)).all()
        assert q[2] > 0.2  # same branch as home: elbow up,
        assert abs(q[4] + np.pi / 2) < 0.1  # wrist not turned over
        assert np.abs(q - ROBOT.home).max() < 1.5
    assert np.median(durations) < 0.003  # typical, in the project's terms


@given(
    x=st.floats(0.3, 0.6),
    y=st.floats(-0.3, 0.3),
    z=st.floats(0.0, 0.2),
    yaw=st.floats(-1.5, 1.5),
)
@settings(max_examples=40, deadline=None)
def test_full_pose_is_reached(x, y, z, yaw):
    target, rotation = np.array([x, y, z]), turned_down(yaw)
    position, reached = ROBOT.forward(ROBOT.solve_ik(target, rotation))
    assert np.linalg.norm(position - target) < 1e-4
    assert np.linalg.norm(pin.log3(rotation @ reached.T)) < 1e-4


def test_seed_at_the_solution_stays():
    np.testing.assert_allclose(
        ROBOT.solve_ik(ROBOT.forward(ROBOT.home)[0], seed=ROBOT.home), ROBOT.home, atol=1e-3
    )


def test_small_move_is_a_small_change():
    q = ROBOT.solve_ik(np.array([0.5, 0.1, 0.07]))
    moved = ROBOT.solve_ik(np.array([0.505, 0.1, 0.07]), seed=q)
    assert np.abs(moved - q).max() < 0.05


def test_free_yaw_is_kept_rather_than_turned():
    """With the yaw free, a move straight down leaves the tool's yaw nearly as it was."""
    q = ROBOT.solve_ik(np.array([0.5, 0.1, 0.07]))
    lower = ROBOT.solve_ik(np.array([0.5, 0.1, 0.01]), seed=q)
    before, after = ROBOT.forward(q)[1], ROBOT.forward(lower)[1]
    assert np.linalg.norm(pin.log3(after @ before.T)) < 0.01


@pytest.mark.parametrize("target", [(0.7, 0.35, 0.3), (1.2, 0.0, 0.1), (0.0, 0.0, 3.0)])
def test_out_of_reach_is_refused_with_the_error_left(target):
    with pytest.raises(UnreachableError, match="cannot reach x .* remains"):
        ROBOT.solve_ik(np.array(target))


@pytest.mark.parametrize("target", [(0.4, np.nan, 0.1), (0.4, 0.1)])
def test_bad_target_is_refused(target):
    with pytest.raises(UnreachableError, match="3 finite numbers"):
        ROBOT.solve_ik(np.array(target))


def test_tighter_limits_are_kept():
    """With the pan joint held where it is, the same spot is reached only if the limits allow."""
    target = ROBOT.forward(ROBOT.home)[0] - [0.0, 0.0, 0.1]
    lower, upper = ROBOT.home - 0.6, ROBOT.home + 0.6
    q = ROBOT.solve_ik(target, lower=lower, upper=upper)
    assert ((lower <= q) & (q <= upper)).all()
    with pytest.raises(UnreachableError):
        ROBOT.solve_ik(target, lower=ROBOT.home - 0.01, upper=ROBOT.home + 0.01)


def test_same_question_same_answer():
    target = np.array([0.55, -0.2, 0.05])
    np.testing.assert_array_equal(ROBOT.solve_ik(target), ROBOT.solve_ik(target))
