"""The distance of obstacles from what the arm sweeps before it could stand."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from monitoring_builders import MS, feedback

from kv_action_router.errors import InputError
from kv_action_router.monitoring.detectors.proximity import FAR, ArmOutline, ProximityDetector
from kv_action_router.monitoring.samples import ObstacleSample
from kv_action_router.monitoring.signals import SignalTable
from kv_action_router.robots.model import RobotModel

REACTION, DECELERATION = 0.25, 2.0


def slide(q: np.ndarray) -> np.ndarray:
    """Return two spheres, the second one the tool, that slide along x with the sum of the joints.

    A third one stands at the origin for ever.
    """
    x = float(q.sum())
    return np.array([[x, 0.0, 0.0, 0.05], [x, 0.3, 0.0, 0.05], [0.0, 0.0, 0.0, 0.05]])


SLIDE = ArmOutline(
    lambda names: np.array([0, 1]), slide, moving=np.array([0, 1]), without_tool=np.array([0])
)


def detector(*, contact: bool = False, active: bool = True) -> ProximityDetector:
    made = ProximityDetector(SLIDE, reaction=REACTION, deceleration=DECELERATION)
    made.on_task(active=active, contact=contact, held=False)
    return made


def ball(x: float, y: float = 0.0, r: float = 0.05) -> np.ndarray:
    return np.array([[x, y, 0.0, r]])


def clearance(x: float, speed: float, *, contact: bool = False) -> float:
    """Return the clearance of a ball at x from an arm at 0 with a speed [m/s]."""
    made = detector(contact=contact)
    return made.clearance(np.zeros(2), np.array([speed, 0.0]), ball(x))


def test_at_rest_it_is_the_distance_of_the_surfaces() -> None:
    assert clearance(0.3, 0.0) == pytest.approx(0.2)
    assert clearance(-0.3, 0.0) == pytest.approx(0.2)
    assert clearance(0.08, 0.0) == pytest.approx(-0.02)
    assert clearance(5.0, 0.0) == FAR


def test_it_falls_by_the_way_of_reaction_and_brake() -> None:
    speed = 0.4
    way = speed * REACTION + speed**2 / (2.0 * DECELERATION)
    assert clearance(0.35, speed) == pytest.approx(0.25 - way)


def test_who_moves_away_keeps_its_distance() -> None:
    assert clearance(0.3, -0.5) == pytest.approx(clearance(0.3, 0.0))


def test_in_the_middle_of_the_way_nothing_is_overlooked() -> None:
    speed = 1.0
    way = speed * REACTION + speed**2 / (2.0 * DECELERATION)
    assert clearance(0.5 * way, speed) == pytest.approx(-0.1)


@settings(max_examples=40)
@given(st.floats(0.11, 0.6), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_the_faster_the_nearer(x: float, first: float, second: float) -> None:
    slow, fast = sorted((first, second))
    assert clearance(x, fast) <= clearance(x, slow) + 1e-9


def test_the_tool_may_come_near_what_may_be_touched() -> None:
    made = detector(contact=True)
    near_tool = ball(0.0, 0.42)
    assert made.clearance(np.zeros(2), np.zeros(2), near_tool) == FAR
    made.on_task(active=True, contact=False, held=False)
    assert made.clearance(np.zeros(2), np.zeros(2), near_tool) == pytest.approx(0.02)


def told(made: ProximityDetector, ms: float, *, speed: float = 0.0, x: float = 0.0) -> float:
    table = SignalTable()
    made.on_feedback(feedback(ms, position=(x, 0.0), velocity=(speed, 0.0)), table)
    return table.value("clearance", int(ms * MS))


def test_each_image_is_judged_once_and_only_under_a_task() -> None:
    made = detector(active=False)
    made.on_obstacles(ObstacleSample(ball(0.3), 10 * MS))
    assert math.isnan(told(made, 12))
    made.on_task(active=True, contact=False, held=False)
    assert told(made, 20) == pytest.approx(0.2)
    assert math.isnan(told(made, 30))  # nothing new
    made.on_obstacles(ObstacleSample(np.zeros((0, 4)), 110 * MS))
    assert told(made, 120) == FAR
    made.reset()
    assert math.isnan(told(made, 130))


def test_an_interrupted_arm_counts_as_going_on() -> None:
    made = detector()
    made.on_obstacles(ObstacleSample(ball(0.3), 10 * MS))
    near = told(made, 20, speed=0.5)
    assert near < 0.1
    made.on_task(active=True, contact=False, held=True)
    made.on_obstacles(ObstacleSample(ball(0.3), 110 * MS))
    assert told(made, 120, speed=0.0) == pytest.approx(near)
    made.on_obstacles(ObstacleSample(ball(0.3, 0.4), 210 * MS))  # beside its way
    assert told(made, 220, speed=0.0) > near
    made.on_task(active=True, contact=False, held=False)
    made.on_obstacles(ObstacleSample(ball(0.3), 310 * MS))
    assert told(made, 320, speed=0.0) == pytest.approx(0.2)


def test_a_position_that_is_not_measured_has_no_clearance() -> None:
    made = detector()
    made.on_obstacles(ObstacleSample(ball(0.3), 10 * MS))
    assert math.isnan(told(made, 20, x=math.nan))


def test_obstacles_that_are_not_renewed_turn_stale() -> None:
    made, table = detector(), SignalTable()
    made.on_obstacles(ObstacleSample(ball(0.3), 10 * MS))
    made.on_feedback(feedback(20), table)
    assert table.value("clearance", 400 * MS) == pytest.approx(0.2)
    assert math.isnan(table.value("clearance", 600 * MS))


def test_without_an_arm_nothing_is_judged() -> None:
    made = ProximityDetector(None)
    made.on_task(active=True, contact=False, held=False)
    made.on_obstacles(ObstacleSample(ball(0.3), 10 * MS))
    assert math.isnan(told(made, 20))


@pytest.fixture(scope="module")
def model() -> RobotModel:
    return RobotModel.load("ur5e")


def test_the_outline_of_a_robot_leaves_its_base_out(model: RobotModel) -> None:
    outline = ArmOutline.of(model, ("spindle", "tool"))
    links = np.array(model.sphere_links)
    assert "base_link_inertia" not in links[outline.moving]
    assert {"upper_arm_link", "wrist_3_link", "spindle"} <= set(links[outline.moving])
    assert set(links[outline.moving]) - set(links[outline.without_tool]) == {"spindle", "tool"}
    with pytest.raises(InputError, match="tool_links must be of .*spindle.*gripper"):
        ArmOutline.of(model, ("gripper",))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_robots_clearance_is_that_of_the_nearest_of_all_spheres(
    model: RobotModel, seed: int
) -> None:
    """Against the plain loop over all pairs, at rest and, sampled finely, on the way."""
    rng = np.random.default_rng(seed)
    made = ProximityDetector(ArmOutline.of(model, ("spindle", "tool")))
    made.on_task(active=True, contact=False, held=False)
    q = model.home + rng.uniform(-0.5, 0.5, model.n)
    v = rng.uniform(-0.6, 0.6, model.n)
    obstacles = np.column_stack((rng.uniform(-1.0, 1.0, (60, 3)), rng.uniform(0.0, 0.05, 60)))
    rows = made._arm.moving  # type: ignore[union-attr]

    def nearest(at: np.ndarray) -> float:
        arm = model.link_spheres(at)[rows]
        apart = np.linalg.norm(arm[:, None, :3] - obstacles[None, :, :3], axis=2)
        return float((apart - arm[:, 3:4] - obstacles[:, 3]).min())

    still = made.clearance(q, np.zeros(model.n), obstacles)
    assert still == pytest.approx(min(FAR, nearest(q)), abs=1e-6)
    swept = min(nearest(q + v * t) for t in np.linspace(0.0, 0.25, 26))
    assert made.clearance(q, v, obstacles) <= swept + 0.02  # it leaves arcs by that much


def test_joints_of_another_robot_measure_nothing(model: RobotModel) -> None:
    made, table = ProximityDetector(ArmOutline.of(model, ())), SignalTable()
    made.on_task(active=True, contact=False, held=False)
    made.on_obstacles(ObstacleSample(ball(0.3), 10 * MS))
    made.on_feedback(feedback(20), table)  # of elbow and wrist
    assert math.isnan(table.value("clearance", 20 * MS))


def test_samples_are_not_changed() -> None:
    made = detector()
    obstacles = ball(0.3)
    made.on_obstacles(dataclasses.replace(ObstacleSample(obstacles, 0), receipt_ns=10 * MS))
    told(made, 20, speed=0.5)
    np.testing.assert_array_equal(obstacles, ball(0.3))
