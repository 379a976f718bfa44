"""Color and depth against geometry."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.camera import Camera, Snapshot, to_millimeters
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.plant import Plant


@pytest.fixture(scope="module")
def exact(robot: RobotModel):
    """A plant and its camera without noise."""
    config = SimulationConfig(depth_noise=0.0)
    plant = Plant(config, robot.home, robot.velocity_limit)
    camera = Camera(plant.model, config, np.random.default_rng(0))
    yield plant, camera
    camera.close()


def test_depth_of_the_table_is_exact_everywhere(exact) -> None:
    plant, camera = exact
    camera.render(Snapshot.of(plant.data))
    v, u = np.mgrid[0 : camera.model.height, 0 : camera.model.width]
    f, cx, cy = camera.model.focal_length, camera.model.matrix[0, 2], camera.model.matrix[1, 2]
    rays = (
        np.stack([(u - cx) / f, (v - cy) / f, np.ones(u.shape)], axis=-1) @ camera.model.rotation.T
    )
    expected = -camera.model.position[2] / rays[..., 2]  # where a ray meets z = 0
    error = camera.depth - expected
    color = camera.color.astype(int)
    bare = color[..., 0] < 2 * color[..., 1]  # all but the target; the arm at home is out of view
    assert bare.mean() > 0.95
    assert np.abs(error[bare]).max() < 6e-4


@pytest.mark.parametrize("place", [(0.46, 0.0), (0.36, 0.15), (0.56, -0.15), (0.50, 0.10)])
def test_target_is_seen_where_it_is(exact, place: tuple[float, float]) -> None:
    plant, camera = exact
    plant.place_target(*place)
    camera.render(Snapshot.of(plant.data))
    u, v, depth = camera.model.project(plant.target)
    row, column = round(v), round(u)
    red, green, blue = (int(value) for value in camera.color[row, column])
    assert red > 2 * green + 40
    assert blue > 2 * green + 40
    assert camera.depth[row, column] == pytest.approx(depth, abs=1.5e-3)
    color = camera.color.astype(int)
    mask = (color[..., 0] > 2 * color[..., 1] + 40) & (color[..., 2] > 2 * color[..., 1] + 40)
    rows, columns = np.nonzero(mask)
    assert columns.mean() == pytest.approx(u, abs=1.5)
    assert rows.mean() == pytest.approx(v, abs=4.0)  # its rim is seen as well


def test_camera_is_near_the_work(exact) -> None:
    _, camera = exact
    config = SimulationConfig()
    for x in config.target_x:
        for y in config.target_y:
            corner = np.array([x, y, config.target_height])
            assert np.linalg.norm(camera.model.position - corner) < 0.6


def test_touching_tool_hides_little_of_the_target(exact, robot: RobotModel) -> None:
    plant, camera = exact
    home = np.array(plant.position)
    for place in ((0.46, 0.0), (0.38, 0.12), (0.55, -0.13)):
        plant.place_target(*place)
        seen = []
        for q in (home, robot.solve_ik(np.array([*place, 0.012]))):
            plant.position[:] = q
            mujoco.mj_forward(plant.model, plant.data)
            camera.render(Snapshot.of(plant.data))
            color = camera.color.astype(int)
            seen.append(int((color[..., 0] > 2 * color[..., 1] + 40).sum()))
        assert seen[0] > 250
        assert seen[1] > 0.8 * seen[0]
    plant.position[:] = home
    mujoco.mj_forward(plant.model, plant.data)


def test_snapshot_is_a_copy(exact) -> None:
    plant, camera = exact
    snapshot = Snapshot.of(plant.data, 42)
    camera.render(snapshot)
    before = camera.color.copy()
    plant.place_target(0.40, 0.1)
    camera.render(snapshot)
    np.testing.assert_array_equal(camera.color, before)
    assert snapshot.stamp_ns == 42


def test_bgr_is_rgb_with_channels_swapped(exact, robot: RobotModel) -> None:
    plant, camera = exact
    config = SimulationConfig(depth_noise=0.0, color_encoding="bgr8")
    other = Camera(plant.model, config, np.random.default_rng(0))
    snapshot = Snapshot.of(plant.data)
    other.render(snapshot)
    swapped = other.color[..., ::-1].copy()
    other.close()
    camera.render(snapshot)
    np.testing.assert_array_equal(camera.color, swapped)


def test_depth_encodings_agree() -> None:
    depth = np.array([[0.3004, 1.2346, np.nan, 0.0, 64.9]], np.float32)
    depth = np.hstack([depth, np.array([[70.0, np.inf]], np.float32)])
    millimeters = np.empty(depth.shape, np.uint16)
    to_millimeters(depth, millimeters)
    assert millimeters.tolist() == [[300, 1235, 0, 0, 64900, 0, 0]]


def test_nothing_is_measured_beyond_the_maximum(exact, robot: RobotModel) -> None:
    plant, _ = exact
    config = SimulationConfig(depth_noise=0.0, depth_maximum=0.5)
    other = Camera(plant.model, config, np.random.default_rng(0))
    other.render(Snapshot.of(plant.data))
    depth = other.depth.copy()
    other.close()
    assert np.isnan(depth).any()
    assert np.nanmax(depth) <= 0.5


def test_depth_noise_is_what_the_parameter_says(exact, robot: RobotModel) -> None:
    plant, camera = exact
    noisy = Camera(plant.model, SimulationConfig(depth_noise=0.002), np.random.default_rng(0))
    snapshot = Snapshot.of(plant.data)
    noisy.render(snapshot)
    depth = noisy.depth.copy()
    noisy.close()
    camera.render(snapshot)
    difference = depth - camera.depth
    assert np.nanstd(difference) == pytest.approx(0.002, rel=0.05)
    assert abs(np.nanmean(difference)) < 1e-4
