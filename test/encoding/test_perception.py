"""The disc's center from RGB-D: exact, honest about what it cannot see, and never a guess."""

import math

import cv2
import numpy as np
import pytest
from encoding_builders import CAMERA, CENTER, CONFIG, hide, look, pixel_of

from kv_action_router.contracts import Sight
from kv_action_router.encoding.perception import TargetPerception, hue_bands
from kv_action_router.encoding.perception_config import TargetConfig
from kv_action_router.errors import ImageError


@pytest.fixture
def finder():
    return TargetPerception(CONFIG, CAMERA)


def places(count, seed=3):
    generator = np.random.default_rng(seed)
    x, y = generator.uniform(0.36, 0.56, count), generator.uniform(-0.15, 0.15, count)
    return np.column_stack((x, y, np.full(count, CONFIG.target_height)))


def error_of(found, center):
    return found.target.pose.position - center


def test_center_of_the_top_face_over_the_table(finder):
    errors = [
        np.linalg.norm(error_of(finder.find(*look(p, noise=5e-4, seed=i)), p))
        for i, p in enumerate(places(40))
    ]
    assert np.percentile(errors, 95) < 0.5e-3


def test_side_wall_does_not_pull(finder):
    # toward the camera: with the wall in it, a centroid of all colored points would be some
    # millimeters nearer and lower
    biases = np.array([error_of(finder.find(*look(p)), p) for p in places(25)])
    assert np.abs(biases.mean(axis=0)).max() < 0.15e-3


def test_height_of_the_table_does_not_matter(finder):
    raised = CENTER + np.array([0.0, 0.0, 0.05])
    assert np.linalg.norm(error_of(finder.find(*look(raised)), raised)) < 0.5e-3


def test_covariance_is_honest(finder):
    normalized = []
    for i, place in enumerate(places(40, seed=8)):
        found = finder.find(*look(place, noise=1e-3, seed=i))
        error = error_of(found, place)
        normalized.append(error @ np.linalg.solve(found.target.covariance[:3, :3], error))
    assert np.mean(normalized) < 5.0  # 3 for a perfect model
    covariance = found.target.covariance
    assert np.linalg.eigvalsh(covariance).min() > 0.0
    assert covariance[5, 5] == pytest.approx(math.pi**2 / 3.0)  # a disc has no heading


@pytest.mark.parametrize("side", ["left", "right", "far", "near"])
@pytest.mark.parametrize("share", [0.3, 0.5])
def test_partly_hidden_is_right_and_less_certain(finder, side, share):
    color, depth = look(noise=5e-4)
    whole = finder.find(color, depth)
    mask = whole.color_mask.copy()
    rows, columns = np.nonzero(mask)
    top, bottom, left, right = rows.min(), rows.max() + 1, columns.min(), columns.max() + 1
    height, width = round(share * (bottom - top)), round(share * (right - left))
    everywhere = slice(None)
    where = {
        "left": (everywhere, slice(0, left + width)),
        "right": (everywhere, slice(right - width, None)),
        "far": (slice(0, top + height), everywhere),
        "near": (slice(bottom - height, None), everywhere),
    }[side]
    hide(color, depth, *where)
    part = finder.find(color, depth)
    assert part.sight is Sight.SEEN
    assert np.linalg.norm(error_of(part, CENTER)) < 1.5e-3

    def spread(found):
        return np.linalg.eigvalsh(found.target.covariance[:2, :2])[-1]

    assert spread(part) > spread(whole)


def test_bar_across_the_disc(finder):
    color, depth = look()
    _, column = pixel_of(CENTER)
    hide(color, depth, slice(None), slice(column - 3, column + 3))
    assert np.linalg.norm(error_of(finder.find(color, depth), CENTER)) < 1.0e-3


@pytest.mark.parametrize("seed", range(12))
def test_hidden_at_random_is_right_or_none(finder, seed):
    generator = np.random.default_rng(seed)
    center = places(1, seed=seed)[0]
    for _ in range(8):
        color, depth = look(center, noise=5e-4, seed=seed)
        row, column = pixel_of(center)
        angle, reach = generator.uniform(0.0, 2.0 * math.pi), generator.uniform(-10.0, 8.0)
        rows, columns = np.mgrid[0:240, 0:320]
        cover = (columns - column) * math.cos(angle) + (rows - row) * math.sin(angle) > reach
        color[cover] = (120, 120, 125)
        depth[cover] -= 0.1
        found = finder.find(color, depth)
        if found.target is not None:
            error = error_of(found, center)
            assert np.linalg.norm(error) < 3e-3
            assert error @ np.linalg.solve(found.target.covariance[:3, :3], error) < 30.0


def test_only_the_side_wall_in_view_is_none(finder):
    color, depth = look()
    mask = finder.find(color, depth).color_mask > 0
    # what is darker is wall: hide all that is brighter
    bright = mask & (color.max(axis=2) > 200)
    color[bright] = (120, 120, 125)
    depth[bright] -= 0.1
    assert finder.find(color, depth).sight is Sight.HIDDEN
    assert 0 < bright.sum() < mask.sum()  # a piece of wall is left


def test_fully_hidden_is_none(finder):
    color, depth = look()
    row, column = pixel_of(CENTER)
    hide(color, depth, slice(row - 25, row + 25), slice(column - 25, column + 25))
    found = finder.find(color, depth)
    assert found.sight is Sight.ABSENT
    assert found.target is None
    assert found.reason


@pytest.mark.parametrize("hue", [0.0, 60.0, 120.0, 200.0, 260.0])
def test_wrong_color_is_none(finder, hue):
    assert finder.find(*look(hue=hue)).target is None


def test_gray_image_is_none(finder):
    color, depth = look()
    gray = np.repeat(color.mean(axis=2, keepdims=True).astype(np.uint8), 3, axis=2)
    assert finder.find(gray, depth).sight is Sight.ABSENT


@pytest.mark.parametrize("radius", [0.010, 0.014, 0.028, 0.060])
def test_disc_of_another_size_is_none(finder, radius):
    assert finder.find(*look(radius=radius)).target is None


def test_colored_cloth_is_none(finder):
    color, depth = look(radius=0.001)
    color[40:200, 60:260] = (230, 13, 191)
    assert finder.find(color, depth).target is None


def test_smaller_decoy_does_not_distract(finder):
    color, depth = look()
    color[20:26, 20:26] = (230, 13, 191)
    assert np.linalg.norm(error_of(finder.find(color, depth), CENTER)) < 0.5e-3


def test_missing_depth(finder):
    color, depth = look(noise=5e-4)
    whole = finder.find(color, depth).target
    generator = np.random.default_rng(2)
    holes = depth.copy()
    holes[generator.random(depth.shape) < 0.3] = np.nan
    assert np.linalg.norm(error_of(finder.find(color, holes), CENTER)) < 1.0e-3
    for nothing in (np.nan, 0.0, np.inf):
        found = finder.find(color, np.full_like(depth, nothing))
        assert found.sight is Sight.NO_DEPTH
        assert found.target is None
    lost = depth.copy()
    row, column = pixel_of(CENTER)
    lost[row - 25 : row + 25, column - 25 : column + 25] = np.nan
    assert finder.find(color, lost).sight is Sight.HIDDEN
    assert whole is not None


def test_whole_millimeters_are_enough(finder):
    color, depth = look()
    coarse = (np.round(depth * 1000) / 1000).astype(np.float32)
    assert np.linalg.norm(error_of(finder.find(color, coarse), CENTER)) < 0.7e-3


def test_at_the_border_of_the_image(finder):
    # half of the disc lies outside: it may be found, but not wrongly
    corner = CAMERA.origin + 0.0
    ray = CAMERA.rays[120, 2].astype(float)
    corner = CAMERA.origin + (0.010 - CAMERA.origin[2]) / ray[2] * ray
    found = finder.find(*look(corner))
    if found.target is not None:
        assert np.linalg.norm(error_of(found, corner)) < 2e-3


def test_empty_place_is_told_from_a_hidden_one(finder):
    target = finder.find(*look()).target
    empty = look(CENTER + np.array([0.1, 0.0, 0.0]))
    mask = finder.find(*empty).color_mask
    assert finder.place_is_empty(target, mask, empty[1])
    color, depth = look()
    assert not finder.place_is_empty(target, finder.find(color, depth).color_mask, depth)
    row, column = pixel_of(CENTER)
    hide(color, depth, slice(row - 25, row + 25), slice(column - 25, column + 25))
    assert not finder.place_is_empty(target, finder.find(color, depth).color_mask, depth)
    depth[:] = np.nan
    assert not finder.place_is_empty(target, np.zeros_like(mask), depth)


def test_size_must_be_the_cameras(finder):
    color, depth = look()
    with pytest.raises(ImageError, match="color image must be 320x240"):
        finder.find(color[:120], depth)
    with pytest.raises(ImageError, match="depth image must be 320x240"):
        finder.find(color, depth[:, :160])


def test_red_band_wraps_around():
    bands = hue_bands(TargetConfig(target_hue_tolerance=15.0), 355.0)
    covered = {hue for low, high in bands for hue in range(low[0], high[0] + 1)}
    assert covered == {*range(170, 180), *range(6)}


@pytest.mark.parametrize("seed", range(6))
def test_mask_is_that_of_every_pixel_around_the_target(seed):
    # one finder for all images: nothing of an earlier image may stay in the mask
    one, generator = TargetPerception(CONFIG, CAMERA), np.random.default_rng(seed)
    low, high = hue_bands(CONFIG, CONFIG.target_hue)[0]
    for place in places(5, seed=seed):
        color, depth = look(place, noise=5e-4, seed=seed)
        row, _ = pixel_of(place)
        shift = generator.integers(-12, 12)
        hide(color, depth, slice(row + shift, row + shift + 5), slice(0, 320))
        hsv = cv2.cvtColor(color, cv2.COLOR_RGB2HSV)
        everywhere = cv2.inRange(hsv, low, high)
        assert np.array_equal(one.segment(color), everywhere)
    assert not one.segment(np.zeros_like(color)).any()
