"""Where targets may lie."""

from __future__ import annotations

import numpy as np
import pytest

from kv_action_router.errors import InputError, SimulationError
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.camera import CameraModel
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.placement import Reach, TargetPlacement

CONFIG = SimulationConfig()
PRESENT = np.array([0.46, 0.0, 0.010])
HOME_TIP = np.array([0.45, 0.0, 0.35])
UPRIGHT = np.array([0.0, 0.0, 0.0, 1.0])


def make_placement(seed: int = 7, reachable=lambda _: True) -> TargetPlacement:
    return TargetPlacement(CONFIG, reachable, np.random.default_rng(seed))


def test_random_places_are_reproducible_and_differ() -> None:
    first = [make_placement().random(PRESENT, HOME_TIP).tolist() for _ in range(2)]
    assert first[0] == first[1]
    one, other = make_placement(1), make_placement(2)
    assert one.random(PRESENT, HOME_TIP).tolist() != other.random(PRESENT, HOME_TIP).tolist()
    series = {tuple(one.random(PRESENT, HOME_TIP)) for _ in range(20)}
    assert len(series) == 20


def test_random_places_are_on_the_region_in_view_and_in_reach(robot: RobotModel) -> None:
    camera = CameraModel.of(CONFIG)
    placement = make_placement()
    for _ in range(20):
        place = placement.random(PRESENT, HOME_TIP)
        assert CONFIG.target_x[0] <= place[0] <= CONFIG.target_x[1]
        assert CONFIG.target_y[0] <= place[1] <= CONFIG.target_y[1]
        u, v, _ = camera.project(np.array([*place, CONFIG.target_height]))
        assert 0 <= u < camera.width
        assert 0 <= v < camera.height
        for height in (0.010, 0.070):
            robot.solve_ik(np.array([*place, height]))  # raises when out of reach


def test_whole_region_is_in_reach_and_in_view(robot: RobotModel) -> None:
    placement = make_placement(reachable=Reach(robot))
    for x in (*CONFIG.target_x, 0.46):
        for y in (*CONFIG.target_y, 0.0):
            place, _ = placement.requested(np.array([x, y, 0.010]), UPRIGHT, PRESENT, HOME_TIP)
            assert place.tolist() == [x, y]


@pytest.mark.parametrize(
    ("position", "orientation", "field"),
    [
        ((0.9, 0.0, 0.010), UPRIGHT, "pose.position.x"),
        ((0.46, -0.4, 0.010), UPRIGHT, "pose.position.y"),
        ((0.46, 0.0, 0.200), UPRIGHT, "pose.position.z"),
        ((0.46, 0.0, -0.1), UPRIGHT, "pose.position.z"),
        ((np.nan, 0.0, 0.010), UPRIGHT, "pose.position"),
        ((0.46, 0.0, 0.010), (0.0, 0.0, 0.0, np.nan), "pose.orientation"),
        ((0.46, 0.0, 0.010), (0.0, 0.0, 0.0, 2.0), "pose.orientation"),
        ((0.46, 0.0, 0.010), (0.7071, 0.0, 0.0, 0.7071), "pose.orientation"),
    ],
)
def test_bad_requests_are_refused_with_the_field(position, orientation, field: str) -> None:
    with pytest.raises(InputError) as refused:
        make_placement().requested(np.array(position), np.array(orientation), PRESENT, HOME_TIP)
    assert refused.value.field == field


def test_good_request_keeps_place_and_yaw() -> None:
    turned = np.array([0.0, 0.0, np.sin(0.4), np.cos(0.4)])
    place, yaw = make_placement().requested(np.array([0.5, 0.1, 0.0]), turned, PRESENT, HOME_TIP)
    assert place.tolist() == [0.5, 0.1]
    assert yaw == pytest.approx(0.8)
    _, yaw = make_placement().requested(np.array([0.5, 0.1, 0.0]), np.zeros(4), PRESENT, HOME_TIP)
    assert yaw == 0.0


def test_nothing_moves_while_the_tip_is_near() -> None:
    near = PRESENT + np.array([0.0, 0.0, 0.020])
    placement = make_placement()
    with pytest.raises(InputError, match="distance of tip and target"):
        placement.random(PRESENT, near)
    with pytest.raises(InputError, match="distance of tip and target"):
        placement.requested(np.array([0.5, 0.1, 0.010]), UPRIGHT, PRESENT, near)
    with pytest.raises(InputError, match="distance of tip to be and target"):
        placement.requested(
            np.array([0.5, 0.1, 0.010]), UPRIGHT, PRESENT, np.array([0.5, 0.1, 0.03])
        )


def test_out_of_reach_is_refused() -> None:
    placement = make_placement(reachable=lambda _: False)
    with pytest.raises(InputError, match="in the arm's reach"):
        placement.requested(np.array([0.5, 0.1, 0.010]), UPRIGHT, PRESENT, HOME_TIP)
    with pytest.raises(SimulationError, match="no free place"):
        placement.random(PRESENT, HOME_TIP)
