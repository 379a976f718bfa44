"""A camera that was tilted, raised or lowered is told; what lies on the table is not."""

import numpy as np
import pytest
from encoding_builders import CAMERA, CENTER, CONFIG, MS, SECOND, encoder, hide, look, origin

from kv_action_router.contracts import Sight
from kv_action_router.encoding.camera import Camera
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.surface_check import SurfaceCheck
from kv_action_router.encoding.synthetic import disc_on_table


def seen_from(shift=(0.0, 0.0, 0.0), turn=(0.0, 0.0, 0.0)):
    """Return the images of a camera that stands elsewhere than is believed."""
    half = np.array(turn) / 2.0
    x, y, z, w = CAMERA.orientation
    a, b, c = half
    turned = np.array(  # a small turn before the orientation
        [
            x + a * w + b * z - c * y,
            y + b * w + c * x - a * z,
            z + c * w + a * y - b * x,
            w - a * x - b * y - c * z,
        ]
    )
    turned /= np.linalg.norm(turned)
    camera = Camera(CAMERA.intrinsics, CAMERA.origin + shift, turned)
    return disc_on_table(camera, CENTER, CONFIG.target_radius, CONFIG.target_height)


@pytest.fixture
def check():
    return SurfaceCheck(CONFIG, CONFIG, CAMERA)


def test_camera_in_its_place_is_no_trouble(check):
    for seed in range(5):
        assert check.look(look(noise=2e-3, seed=seed)[1]) == ""


@pytest.mark.parametrize("height", [0.03, -0.02])
def test_height_is_told(check, height):
    assert "mm from its height" in check.look(seen_from(shift=(0.0, 0.0, height))[1])


@pytest.mark.parametrize("turn", [(0.05, 0.0, 0.0), (0.0, -0.05, 0.0), (0.0, 0.06, 0.0)])
def test_tilt_is_told(check, turn):
    assert "tilted" in check.look(seen_from(turn=turn)[1])


def test_a_box_in_view_is_no_trouble(check):
    color, depth = look()
    hide(color, depth, slice(0, 120), slice(0, 200))
    assert check.look(depth) == ""


def test_little_depth_says_nothing(check):
    depth = seen_from(shift=(0.0, 0.0, 0.05))[1]
    depth[20:] = np.nan
    assert check.look(depth) == ""
    assert check.look(np.full_like(depth, np.nan)) == ""


def test_zero_tolerance_looks_at_nothing():
    off = EncoderConfig(surface_tolerance=0.0)
    check = SurfaceCheck(off, off, CAMERA)
    assert check.trouble(seen_from(shift=(0.0, 0.0, 0.05))[1]) == ""


def test_key_of_a_moved_camera_has_no_target_and_says_why():
    made = encoder()
    color, depth = seen_from(turn=(0.06, 0.0, 0.0))
    key = made.on_image(color, depth, origin(SECOND), SECOND)
    assert key.target is None
    assert key.target_sight is Sight.CAMERA_MOVED
    assert not key.vector[:16].any()
    assert "moved" in made.perception.reason


def test_back_in_its_place_the_target_is_seen_again():
    made = encoder()
    made.on_image(*seen_from(turn=(0.06, 0.0, 0.0)), origin(SECOND), SECOND)
    for i in range(1, 9):  # every eighth image is looked at
        now = SECOND + i * MS
        key = made.on_image(*look(), origin(now), now)
    assert key.target_sight is Sight.SEEN
    assert np.linalg.norm(key.target.pose.position - CENTER) < 0.5e-3
