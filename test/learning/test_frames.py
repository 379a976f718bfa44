"""What frames say is true is true: the simulator's pose, its pixels, what hides them."""

import colorsys
import math

import numpy as np
import pytest

from kv_action_router.errors import InputError
from kv_action_router.learning import surroundings
from kv_action_router.learning.cells import CELLS, cell, cells_of
from kv_action_router.learning.surroundings import BOX, Thing

PLACE = np.array([0.46, 0.03, 0.010])
SIDE = np.array([0.06, 0.0, 0.03])  # toward the camera


def centroid(mask):
    rows, columns = np.nonzero(mask)
    return np.array([columns.mean(), rows.mean()])


def test_face_of_a_free_target_lies_around_its_projected_center(maker):
    frame = maker.look(maker.plain_scene(), PLACE, 0.3, maker.home)
    assert frame.visible > 0.9
    pixel = frame.camera.project(PLACE[None, :])[0]
    # the middle of a circle in perspective lies behind that of its picture
    assert np.linalg.norm(centroid(frame.face) - pixel) < 0.8
    assert np.array_equal(frame.position, PLACE)


def test_depth_of_the_face_is_its_height(maker):
    frame = maker.look(maker.plain_scene(), PLACE, 0.0, maker.home)
    heights = frame.camera.origin[2] + frame.depth * frame.camera.rays[..., 2]
    assert np.median(heights[frame.face]) == pytest.approx(PLACE[2], abs=2e-4)


def test_what_stands_before_the_target_hides_it(maker):
    scene = maker.plain_scene()
    wall = Thing(BOX, np.array([0.03, 0.1, 0.03]), PLACE + SIDE, 0.0, 0.0, (1, 1, 1))
    frame = maker.look(scene, PLACE, 0.0, maker.home, extra=[wall])
    assert frame.visible < 0.1
    assert frame.face.sum() < 10


def test_target_that_is_away_is_nowhere(maker):
    frame = maker.look(maker.plain_scene(), np.array([0.0, 0.0, -10.0]), 0.0, maker.home)
    assert np.isnan(frame.position).all()
    assert frame.visible == 0.0
    assert not frame.face.any()


def test_a_target_that_leans_shows_it_in_its_depth(maker):
    frame = maker.look(maker.plain_scene(), PLACE, 0.0, maker.home, slopes=np.array([0.06, -0.03]))
    rays = frame.camera.rays[frame.face].astype(float)
    points = frame.camera.origin + rays * frame.depth[frame.face][:, None]
    design = np.column_stack((points[:, :2] - PLACE[:2], np.ones(len(points))))
    solution = np.linalg.lstsq(design, points[:, 2], rcond=None)[0]
    assert solution == pytest.approx(
        [0.06, -0.03, PLACE[2]], abs=8e-3
    )  # a few pixels of its wall are among them
    assert frame.axis == pytest.approx(np.array([-0.06, 0.03, 1.0]) / math.sqrt(1.0045))


def test_same_seed_same_frame(maker):
    frames = []
    for _ in range(2):
        generator = np.random.default_rng(4)
        frames.append(maker.frame(maker.scene(generator), generator))
    first, second = frames
    assert np.array_equal(first.color, second.color)
    assert np.array_equal(first.depth, second.depth, equal_nan=True)
    assert first.yaw == second.yaw


def test_random_frames_stay_true(maker):
    """In a scene seen by a camera that stands elsewhere, with noise: the label still fits."""
    generator = np.random.default_rng(8)
    checked = 0
    for _ in range(6):
        frame = maker.frame(maker.scene(generator), generator)
        if frame.visible < 0.9:
            continue
        pixel = frame.camera.project(frame.position[None, :])[0]
        assert np.linalg.norm(centroid(frame.face) - pixel) < 1.5
        checked += 1
    assert checked


def test_decoys_are_never_the_target():
    generator = np.random.default_rng(1)
    target = surroundings.Target(0.02, 0.01, 308.0)
    everywhere = np.array([0.3, 0.6])
    seen = 0
    for _ in range(200):
        for thing in surroundings.things(generator, target, everywhere, everywhere):
            if not thing.decoy:
                continue
            seen += 1
            same_shape = thing.kind == "cylinder" and 0.8 < thing.size[0] / target.radius < 1.2
            hue = 360.0 * colorsys.rgb_to_hsv(*thing.color)[0]
            same_hue = abs(math.remainder(hue - target.hue, 360.0)) < 35.0
            assert not (same_shape and same_hue), thing
    assert seen > 50


def test_unknown_cell_is_named():
    with pytest.raises(InputError, match="cell must be one of touch, screw"):
        cell("weld")
    assert set(CELLS) == {"touch", "screw"}
    assert [each.name for each in cells_of("disc")] == ["touch", "screw"]
    with pytest.raises(InputError, match="target must be one of disc, got 'nut'"):
        cells_of("nut")
