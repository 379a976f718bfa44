"""The service that places a box: every answer, without DDS."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="no ROS 2 here")

from kv_action_router.robots.model import RobotModel
from kv_action_router.ros import topics
from kv_action_router.ros.box_service import BoxService
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.plant import Plant
from kv_action_router.srv import PlaceBox

ROBOT = RobotModel.load()


def at_once(work: Callable[[], None]) -> bool:
    work()
    return True


def offered(call: Callable[[Callable[[], None]], bool] = at_once) -> tuple[Plant, Any]:
    """Return a plant and the service's callback."""
    plant = Plant(SimulationConfig(), ROBOT.home, ROBOT.velocity_limit)
    made: list[Any] = []
    node = SimpleNamespace(create_service=lambda *service: made.append(service))
    BoxService(node, plant, call)  # type: ignore[arg-type]
    kind, name, answer = made[0]
    assert (kind, name) == (PlaceBox, topics.PLACE_BOX.name)
    return plant, lambda request: answer(request, PlaceBox.Response())


def request(x: float, y: float, z: float = 0.0, size: tuple[float, ...] = (0.1, 0.05, 0.15)) -> Any:
    """Return a request to place a box."""
    wanted = PlaceBox.Request()
    wanted.pose.position.x, wanted.pose.position.y, wanted.pose.position.z = x, y, z
    wanted.size.x, wanted.size.y, wanted.size.z = size
    return wanted


def test_places_and_takes_away() -> None:
    plant, ask = offered()
    response = ask(request(0.5, 0.25))
    assert (response.success, response.present, response.touched_by) == (True, True, "")
    assert response.message == "box at x 0.500 m, y 0.250 m"
    assert plant.box.present
    response = ask(PlaceBox.Request(remove=True))
    assert (response.success, response.present) == (True, False)
    assert response.message == "the box is away"


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (request(0.5, 0.25, 0.1), "pose.position.z must be 0 m"),
        (request(0.5, 0.25, float("nan")), "pose.position.z must be 0 m"),
        (request(0.5, 0.25, size=(0.1, 0.05, 2.0)), "size must be 3 edges of 0.01 to 0.6 m"),
        (request(0.46, 0.0), "position must be free"),
    ],
)
def test_says_why_not_and_leaves_the_box_where_it_was(wanted: Any, text: str) -> None:
    plant, ask = offered()
    assert ask(request(0.5, 0.3)).success
    response = ask(wanted)
    assert not response.success
    assert text in response.message
    assert response.present
    assert plant.box.covers(plant.target * 0.0 + [0.5, 0.3, 0.0])


def test_a_tilted_box_is_refused() -> None:
    _, ask = offered()
    tilted = request(0.5, 0.25)
    tilted.pose.orientation.x = tilted.pose.orientation.w = 0.5**0.5
    response = ask(tilted)
    assert not response.success
    assert "a turn about z only" in response.message


def test_physics_that_does_not_answer_is_said() -> None:
    _, ask = offered(lambda _: False)
    response = ask(request(0.5, 0.25))
    assert not response.success
    assert "did not answer" in response.message
    assert not response.present
