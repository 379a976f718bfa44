"""Contact truth against geometry."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.drives import Interface
from kv_action_router.simulation.truth import ContactTruth

CENTER = np.array([0.46, 0.02, 0.010])


@settings(max_examples=15, deadline=None)
@given(radius=st.floats(0.0, 0.018), angle=st.floats(-3.1, 3.1))
def test_error_is_the_distance_of_tip_and_center(
    robot: RobotModel, shared, radius: float, angle: float
) -> None:
    offset = radius * np.array([np.cos(angle), np.sin(angle), 0.0])
    plant = shared.plant
    plant.place_target(CENTER[0], CENTER[1])
    # Pressed in by 0.05 mm: the point where the surfaces meet lies half as deep.
    q = robot.solve_ik(CENTER + offset - np.array([0.0, 0.0, 5e-5]))
    plant.position[:] = q
    mujoco.mj_forward(plant.model, plant.data)
    contact = plant.truth.check(plant.data)
    assert contact is not None
    assert contact.geom == "tip_collision"
    assert contact.error == pytest.approx(radius, abs=2e-4)
    np.testing.assert_allclose(contact.point, CENTER + offset, atol=2e-4)
    np.testing.assert_allclose(contact.target, CENTER, atol=1e-9)
    assert contact.force > 0.0


def test_a_touch_is_reported_once_and_again_after_the_tip_was_clear(
    stepped, robot: RobotModel
) -> None:
    stepped.plant.place_target(CENTER[0], CENTER[1])
    above = robot.solve_ik(CENTER + np.array([0.004, 0.0, 0.006]))
    below = robot.solve_ik(CENTER + np.array([0.004, 0.0, -0.0003]), seed=above)
    far = robot.solve_ik(CENTER + np.array([0.004, 0.0, 0.050]), seed=above)

    def move(goal: np.ndarray, seconds: float) -> None:
        start, begin = np.array(stepped.plant.position), stepped.now_ns

        def command(now: int) -> None:
            share = min(1.0, (now - begin) * 1e-9 / (0.8 * seconds))
            place = start + share * (goal - start)
            stepped.drives.command(Interface.POSITION, place, (), now)

        stepped.run(seconds, command)

    stepped.plant.position[:] = above
    for goal in (above, below, above, below):
        move(goal, 0.25)
    assert len(stepped.contacts) == 1
    move(far, 0.5)
    move(below, 0.5)
    assert len(stepped.contacts) == 2
    for contact in stepped.contacts:
        assert contact.error == pytest.approx(0.004, abs=3e-4)


def test_nothing_is_reported_without_contact(stepped) -> None:
    truth = ContactTruth(stepped.plant.model)
    assert truth.check(stepped.plant.data) is None
