"""What cannot be seen is stated, by both perceptions, and the key of it claims no target.

Hidden by the tool, of another color, seen by a camera that was moved, or not there at all.
"""

import colorsys
import dataclasses

import numpy as np
import pytest

from kv_action_router.contracts import Sight
from kv_action_router.encoding.camera import Camera
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.encoder import KeyEncoder, Origin
from kv_action_router.learning.surroundings import BOX, Thing
from kv_action_router.robots.model import RobotModel

SECOND = 1_000_000_000
PLACE = np.array([0.46, 0.03, 0.010])
AWAY = np.array([0.0, 0.0, -10.0])
BLUE, ORANGE, GREEN = (colorsys.hsv_to_rgb(hue / 360.0, 0.95, 0.9) for hue in (230, 30, 120))
UNSEEN = (Sight.HIDDEN, Sight.ABSENT)


@pytest.fixture(scope="module", params=["touch", "screw"])
def maker(request, frames_of):
    with frames_of(request.param) as made:
        yield made


@pytest.fixture(scope="module")
def scene(maker):
    return maker.plain_scene()


@pytest.fixture(scope="module", params=["segmentation", "onnx"])
def config(request):
    return EncoderConfig(perception=request.param)


@pytest.fixture
def see(config, scene):
    """Return the key of a frame, and what was said of it, by an encoder that remembers nothing."""
    robot = RobotModel.load("ur5e")
    zeros = np.zeros(robot.n)

    def look(frame, camera=None):
        encoder = KeyEncoder(config, robot)
        encoder.set_camera(scene.camera.intrinsics)
        if camera is not None:
            encoder._finder = encoder._perceiver.of(camera)
        encoder.joints.update(robot.joint_names, robot.home, zeros, zeros, SECOND, SECOND)
        origin = Origin(SECOND, SECOND, SECOND)
        return encoder.on_image(frame.color, frame.depth, origin, SECOND), encoder.perception

    return look


def check_stated(key, said, sights):
    assert said.sight in sights
    assert said.target is None
    assert said.reason
    assert key.target is None
    assert key.target_sight is said.sight
    assert not key.vector[:16].any()  # no pose of something that was not seen
    assert np.isfinite(key.vector).all()


def test_in_plain_view_it_is_seen(maker, scene, see):
    key, said = see(maker.look(scene, PLACE, 0.0, maker.home))
    assert (said.sight, said.reason) == (Sight.SEEN, "")
    assert key.target_sight is Sight.SEEN
    offset = scene.eye - scene.camera.origin  # the camera's own error is in what it sees
    assert np.linalg.norm(key.target.pose.position - PLACE + offset) < 2e-3


@pytest.mark.parametrize("toward", [0.0, 0.01, 0.02, 0.03])
def test_hidden_by_the_tool(maker, scene, see, toward):
    """The arm before the target: right, or none with a reason."""
    arm = maker.over(PLACE + np.array([toward, 0.0, 0.004]))
    frame = maker.look(scene, PLACE, 0.0, arm)
    assert frame.visible < 1.0
    key, said = see(frame)
    if key.target is None:
        check_stated(key, said, UNSEEN)
    else:
        assert np.linalg.norm(key.target.pose.position - PLACE) < 4e-3


def test_hidden_altogether(maker, scene, see):
    wall = Thing(BOX, np.array([0.004, 0.06, 0.045]), PLACE + np.array([0.03, 0.0, 0.035]),
                 0.0, 0.0, (0.5, 0.5, 0.5))  # fmt: skip
    frame = maker.look(scene, PLACE, 0.0, maker.home, extra=[wall])
    assert frame.visible < 0.05
    check_stated(*see(frame), UNSEEN)


@pytest.mark.parametrize("paint", [BLUE, ORANGE, GREEN])
def test_of_another_color(maker, scene, see, paint):
    check_stated(*see(maker.look(scene, PLACE, 0.0, maker.home, paint=paint)), UNSEEN)


def test_not_there_at_all(maker, scene, see):
    check_stated(*see(maker.look(scene, AWAY, 0.0, maker.home)), (Sight.ABSENT,))


def test_camera_that_was_raised(maker, scene, see):
    moved = dataclasses.replace(scene, eye=scene.eye + np.array([0.0, 0.0, 0.03]))
    key, said = see(maker.look(moved, PLACE, 0.0, maker.home))
    check_stated(key, said, (Sight.CAMERA_MOVED,))
    assert "the work surface is -30 mm from its height" in said.reason


def test_camera_that_was_tilted(maker, scene, see):
    x, y, z, w = scene.camera.orientation
    tilted = np.array([x, y, z, w]) + 0.03 * np.array([y, -x, w, -z])
    tilted /= np.linalg.norm(tilted)
    believed = Camera(scene.camera.intrinsics, scene.camera.origin.tolist(), tilted.tolist())
    key, said = see(maker.look(scene, PLACE, 0.0, maker.home), believed)
    check_stated(key, said, (Sight.CAMERA_MOVED,))
    assert "tilted" in said.reason


def test_image_of_one_shade(maker, scene, see):
    frame = maker.look(scene, PLACE, 0.0, maker.home)
    gray = dataclasses.replace(frame, color=np.full_like(frame.color, 128))
    check_stated(*see(gray), UNSEEN)
