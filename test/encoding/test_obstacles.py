"""Obstacle spheres cover what stands free, and nothing of robot, table or target."""

import numpy as np
import pytest
from encoding_builders import CAMERA, CENTER, CONFIG, look

from kv_action_router.contracts import Decision, ObstacleSpheres, Pose, TargetEstimate
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.obstacles import ObstacleFinder
from kv_action_router.errors import ImageError

TARGET = TargetEstimate(Pose(CENTER), np.eye(6))


def box_in_view(depth, low, high, columns, rows):
    """Put a surface at heights low to high [m] into a part of a depth image; return its points."""
    part = np.s_[rows, columns]
    rays = CAMERA.rays[part].astype(float)
    height = np.linspace(high, low, rays.shape[0])[:, None]
    depth[part] = (height - CAMERA.origin[2]) / rays[..., 2]
    return CAMERA.origin + depth[part][..., None] * rays


def find(depth, config=CONFIG, **filters):
    return ObstacleFinder(config, CAMERA).find(depth, Decision(trace_id=7), **filters)


def test_table_and_target_are_no_obstacles():
    _, depth = look(noise=5e-4)
    found = find(depth, target=TARGET)
    assert found.center.shape == (0, 3)
    assert found.radius.shape == (0,)
    assert found.decision.trace_id == 7


def test_every_point_of_an_obstacle_is_covered():
    _, depth = look()
    points = box_in_view(depth, 0.05, 0.16, slice(100, 170), slice(60, 150)).reshape(-1, 3)
    found = find(depth)
    assert 0 < len(found.radius) <= ObstacleSpheres.MAXIMUM
    apart = np.linalg.norm(points[:, None] - found.center[None], axis=2)
    covered = (apart <= found.radius[None]).any(axis=1)
    assert covered.mean() > 0.98
    assert found.radius.max() < 0.08  # and they are no larger than they must be


def test_robot_is_filtered_out():
    _, depth = look()
    points = box_in_view(depth, 0.05, 0.16, slice(100, 170), slice(60, 150)).reshape(-1, 3)
    robot = np.column_stack((points[::40], np.full(len(points[::40]), 0.02)))
    assert len(find(depth, robot=robot).radius) == 0


def test_raised_target_is_filtered_out_only_as_the_target():
    center = CENTER + np.array([0.0, 0.0, 0.05])
    _, depth = look(center)
    depth[depth > 3.9] = np.nan
    raised = TargetEstimate(Pose(center), np.eye(6))
    config = EncoderConfig(obstacle_height_minimum=0.055, obstacle_stride=2)
    assert len(find(depth, config).radius) > 0
    assert len(find(depth, config, target=raised).radius) == 0


def test_clutter_everywhere_still_fits():
    generator = np.random.default_rng(1)
    depth = generator.uniform(0.15, 0.35, (240, 320)).astype(np.float32)
    config = EncoderConfig(obstacle_stride=2, obstacle_cell=0.01, obstacle_points_minimum=1)
    found = find(depth, config)
    assert 0 < len(found.radius) <= ObstacleSpheres.MAXIMUM
    points = (CAMERA.origin + depth[..., None] * CAMERA.rays)[::2, ::2].reshape(-1, 3)
    points = points[points[:, 2] > config.obstacle_height_minimum]
    apart = np.linalg.norm(points[:, None] - found.center[None], axis=2)
    assert (apart <= found.radius[None] + 1e-6).any(axis=1).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_depth_without_points_has_no_obstacles(value):
    assert len(find(np.full((240, 320), value, np.float32)).radius) == 0


def test_lone_points_are_no_obstacles():
    _, depth = look()
    depth[60, 60] = 0.3
    assert len(find(depth, EncoderConfig(obstacle_stride=1)).radius) == 0


def test_far_points_are_left_out():
    config = EncoderConfig(obstacle_range=0.3)
    _, depth = look()
    box_in_view(depth, 0.05, 0.16, slice(100, 170), slice(60, 150))
    assert len(find(depth, config).radius) == 0


def test_size_must_be_the_cameras():
    with pytest.raises(ImageError, match="depth image must be"):
        find(np.zeros((10, 10), np.float32))
