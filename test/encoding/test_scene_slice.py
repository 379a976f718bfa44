"""The scene slice: the surroundings count, target and robot do not."""

import numpy as np
import pytest
from encoding_builders import CAMERA, CENTER, CONFIG, look, pixel_of

from kv_action_router.contracts import SLICE_NORMS
from kv_action_router.encoding.perception import TargetPerception
from kv_action_router.encoding.scene_slice import SceneEncoder, inside_spheres

FINDER = TargetPerception(CONFIG, CAMERA)


def encode(color, depth, robot=None):
    mask = FINDER.segment(color)
    return SceneEncoder(CAMERA).encode(color, depth, mask, robot)


def cosine(first, second):
    return float(first @ second) / SLICE_NORMS["scene"] ** 2


HERE = encode(*look())


def test_norm_and_determinism():
    assert np.linalg.norm(HERE) == pytest.approx(SLICE_NORMS["scene"], abs=1e-6)
    assert np.array_equal(HERE, encode(*look()))


def test_place_of_the_target_does_not_matter():
    for offset in ([0.1, 0.0, 0.0], [-0.05, 0.12, 0.0], [0.05, -0.15, 0.0]):
        assert cosine(HERE, encode(*look(CENTER + offset))) > 0.999


def test_arm_in_the_image_does_not_matter():
    color, depth = look()
    row, column = pixel_of(CENTER)
    point = CENTER + np.array([0.0, 0.0, 0.12])
    robot = np.array([[*point, 0.1]])
    rows, columns = np.mgrid[0:240, 0:320]
    arm = np.hypot(rows - row + 60, columns - column) < 45
    color[arm] = (20, 20, 22)
    surface = CAMERA.origin + depth[..., None] * CAMERA.rays
    depth[arm] = np.linalg.norm(point - CAMERA.origin) - 0.05
    surface = CAMERA.origin + depth[arm][:, None] * CAMERA.rays[arm]
    robot = np.column_stack((surface[::20], np.full(len(surface[::20]), 0.05)))
    filtered = cosine(HERE, encode(color, depth, robot))
    assert filtered > 0.999
    assert filtered > cosine(HERE, encode(color, depth))


def test_noise_and_millimeters_do_not_matter():
    color, depth = look(noise=5e-4)
    assert cosine(HERE, encode(color, depth)) > 0.999
    coarse = (np.round(depth * 1000) / 1000).astype(np.float32)
    assert cosine(HERE, encode(color, coarse)) > 0.999
    depth[np.random.default_rng(1).random(depth.shape) < 0.3] = np.nan
    assert cosine(HERE, encode(color, depth)) > 0.99


def test_another_table_matters():
    color, depth = look()
    table = (color == color[0, 0]).all(axis=2)
    color[table] = (40, 110, 45)
    assert cosine(HERE, encode(color, depth)) < 0.9
    color, depth = look()
    assert cosine(HERE, encode(color, depth + np.float32(0.6))) < 0.95


def test_nothing_but_robot_in_view_holds_the_scene():
    scene = SceneEncoder(CAMERA)
    color, depth = look()
    mask = FINDER.segment(color).copy()
    first = scene.encode(color, depth, mask)
    everywhere = np.array([[*CAMERA.origin, 10.0]])
    assert np.array_equal(scene.encode(color, depth, mask, everywhere), first)


@pytest.mark.parametrize("value", [0, 255])
def test_black_and_white_images_are_finite(value):
    color = np.full((240, 320, 3), value, np.uint8)
    values = encode(color, np.full((240, 320), np.nan, np.float32))
    assert np.isfinite(values).all()
    assert np.linalg.norm(values) == pytest.approx(SLICE_NORMS["scene"], abs=1e-6)


def test_inside_spheres():
    spheres = np.array([[0.0, 0.0, 0.0, 0.5], [2.0, 0.0, 0.0, 0.1]])
    points = np.array([[0.4, 0.0, 0.0], [0.6, 0.0, 0.0], [2.05, 0.0, 0.0], [1.0, 1.0, 1.0]])
    assert inside_spheres(points, spheres).tolist() == [True, False, True, False]
    assert inside_spheres(points, spheres, 0.15).tolist() == [True, True, True, False]
