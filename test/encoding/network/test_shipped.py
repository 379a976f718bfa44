"""The shipped checkpoint on rendered frames: what is seen is right, all else is stated."""

import colorsys
import dataclasses
from pathlib import Path

import numpy as np
import pytest

from kv_action_router.contracts import Sight
from kv_action_router.encoding.backend import SEGMENTATION_ID, Perceiver
from kv_action_router.encoding.camera import Camera
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.encoder import KeyEncoder, Origin
from kv_action_router.encoding.images import decode_color, decode_depth
from kv_action_router.encoding.network.checkpoint import Checkpoint
from kv_action_router.encoding.warm_up import warm_up
from kv_action_router.errors import CheckpointError, ImageError
from kv_action_router.learning.surroundings import BOX, Thing
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.camera import to_millimeters

SECOND = 1_000_000_000
CONFIG = EncoderConfig(perception="onnx")
PLACES = [np.array([x, y, 0.010]) for x in (0.38, 0.46, 0.54) for y in (-0.12, 0.02, 0.13)]
CENTER = np.array([0.46, 0.03, 0.010])
AWAY = np.array([0.0, 0.0, -10.0])


@pytest.fixture(scope="module")
def maker(frames_of):
    with frames_of("touch") as made:
        yield made


@pytest.fixture(scope="module")
def scene(maker):
    return maker.plain_scene()


@pytest.fixture(scope="module")
def looker(scene):
    return Perceiver(CONFIG).of(scene.camera)


def find(looker, frame):
    return looker.find(frame.color, frame.depth)


def wall(share):
    """Return a box that hides about this share of the face at CENTER from the camera."""
    height = 0.004 + 0.022 * share
    size = np.array([0.004, 0.06, height / 2])
    place = CENTER + np.array([0.03, 0.0, height / 2 - 0.01])  # toward the camera, on the table
    return Thing(BOX, size, place, 0.0, 0.0, (0.5, 0.5, 0.5))


def test_seen_over_the_table(maker, scene, looker):
    for place in PLACES:
        found = find(looker, maker.look(scene, place, 0.0, maker.home))
        assert found.sight is Sight.SEEN
        assert np.linalg.norm(found.target.pose.position - place) < 3e-3


def test_no_target_at_all(maker, scene, looker):
    found = find(looker, maker.look(scene, AWAY, 0.0, maker.home))
    assert (found.sight, found.target) == (Sight.ABSENT, None)
    assert "nothing in view is like the target" in found.reason


@pytest.mark.parametrize("hue", [0, 20, 40, 90, 150, 200, 230, 250])
def test_wrong_color(maker, scene, looker, hue):
    paint = colorsys.hsv_to_rgb(hue / 360.0, 0.95, 0.9)
    for place in PLACES[::4]:
        found = find(looker, maker.look(scene, place, 0.0, maker.home, paint=paint))
        assert found.target is None
        assert found.sight in (Sight.ABSENT, Sight.HIDDEN)
        assert found.reason


def test_hidden_altogether(maker, scene, looker):
    frame = maker.look(scene, CENTER, 0.0, maker.home, extra=[wall(4.0)])
    assert frame.visible < 0.05
    found = find(looker, frame)
    assert found.target is None
    assert found.reason


def test_partly_hidden_is_right_or_none_and_less_certain(maker, scene, looker):
    whole = find(looker, maker.look(scene, CENTER, 0.0, maker.home)).target
    estimates = 0
    for share in (0.2, 0.4, 0.6, 0.8, 1.0):
        frame = maker.look(scene, CENTER, 0.0, maker.home, extra=[wall(share)])
        found = find(looker, frame)
        if found.target is None:
            assert found.reason
            continue
        estimates += 1
        error = found.target.pose.position - CENTER
        assert np.linalg.norm(error) < 5e-3
        if frame.visible < 0.7:
            spread = np.trace(found.target.covariance[:2, :2])
            assert spread > 1.2 * np.trace(whole.covariance[:2, :2])
    assert estimates


def test_under_the_tool(maker, scene, looker):
    arm = maker.over(CENTER + np.array([0.0, 0.0, 0.012]))
    found = find(looker, maker.look(scene, CENTER, 0.0, arm))
    if found.target is not None:
        assert np.linalg.norm(found.target.pose.position - CENTER) < 3e-3


@pytest.mark.parametrize("rise", [0.03, -0.03])
def test_camera_that_was_moved(maker, scene, rise):
    looker = Perceiver(CONFIG).of(scene.camera)
    moved = dataclasses.replace(scene, eye=scene.eye + np.array([0.0, 0.0, rise]))
    found = find(looker, maker.look(moved, CENTER, 0.0, maker.home))
    assert (found.sight, found.target) == (Sight.CAMERA_MOVED, None)
    assert "moved" in found.reason


def test_camera_that_was_tilted(maker, scene):
    x, y, z, w = scene.camera.orientation
    tilted = np.array([x, y, z, w]) + 0.03 * np.array([y, -x, w, -z])
    tilted /= np.linalg.norm(tilted)
    camera = Camera(scene.camera.intrinsics, scene.camera.origin.tolist(), tilted.tolist())
    looker = Perceiver(CONFIG).of(camera)  # what the encoder believes
    found = find(looker, maker.look(scene, CENTER, 0.0, maker.home))
    assert (found.sight, found.target) == (Sight.CAMERA_MOVED, None)


def test_depth_with_holes_and_without(maker, scene, looker):
    frame = maker.look(scene, CENTER, 0.0, maker.home)
    generator = np.random.default_rng(3)
    holes = frame.depth.copy()
    holes[generator.uniform(size=holes.shape) < 0.3] = np.nan
    found = looker.find(frame.color, holes)
    assert np.linalg.norm(found.target.pose.position - CENTER) < 3e-3
    for nothing in (np.nan, 0.0, np.inf):
        found = looker.find(frame.color, np.full_like(holes, nothing))
        assert (found.sight, found.target) == (Sight.NO_DEPTH, None)


@pytest.mark.parametrize("shade", [0, 128, 255])
def test_image_of_one_shade(maker, scene, looker, shade):
    frame = maker.look(scene, CENTER, 0.0, maker.home)
    assert looker.find(np.full_like(frame.color, shade), frame.depth).target is None


def test_wrong_sizes_are_named(maker, scene, looker):
    frame = maker.look(scene, CENTER, 0.0, maker.home)
    with pytest.raises(ImageError, match="color image must be 320x240"):
        looker.find(frame.color[:120, :160], frame.depth)
    with pytest.raises(ImageError, match="depth image must be 320x240"):
        looker.find(frame.color, frame.depth[:-1])


def encoder(scene, **values):
    robot = RobotModel.load("ur5e")
    made = KeyEncoder(dataclasses.replace(CONFIG, **values), robot)
    made.set_camera(scene.camera.intrinsics)
    zeros = np.zeros(robot.n)
    made.joints.update(robot.joint_names, robot.home, zeros, zeros, SECOND, SECOND)
    return made


def key(made, color, depth):
    return made.on_image(color, depth, Origin(SECOND, SECOND, SECOND), SECOND)


def test_millimeters_meters_and_channel_orders_give_one_key(maker, scene):
    frame = maker.look(scene, CENTER, 0.0, maker.home)
    height, width = frame.depth.shape
    whole = np.zeros((height, width), np.uint16)
    to_millimeters(frame.depth, whole)
    small = decode_depth(whole.tobytes(), "16UC1", height, width, 2 * width)
    swapped = np.ascontiguousarray(frame.color[..., ::-1])
    bgr = decode_color(swapped.tobytes(), "bgr8", height, width, 3 * width)
    made = encoder(scene)
    first = key(made, frame.color, frame.depth)
    assert np.array_equal(key(made, bgr, frame.depth).vector, first.vector)
    assert key(made, frame.color, small).vector == pytest.approx(first.vector, abs=0.01)


def test_keys_are_whole_and_of_another_encoder(maker, scene):
    made = encoder(scene)
    frame = maker.look(scene, CENTER, 0.0, maker.home)
    found = key(made, frame.color, frame.depth)
    shipped = Checkpoint.load(CONFIG.checkpoint)
    assert found.decision.encoder_id == shipped.encoder_id != SEGMENTATION_ID
    assert found.target_sight is Sight.SEEN
    assert np.linalg.norm(found.vector[16:40]) == pytest.approx(0.5, rel=1e-5)
    absent = maker.look(scene, AWAY, 0.0, maker.home)
    fresh = key(encoder(scene), absent.color, absent.depth)
    assert fresh.target is None
    assert not fresh.vector[:16].any()
    assert fresh.target_sight is Sight.ABSENT


def test_scene_slice_keeps_while_target_and_arm_move(maker, scene, looker):
    slices = []
    for place in PLACES[:4]:
        arm = maker.over(place + np.array([0.02, 0.0, 0.08]))
        frame = maker.look(scene, place, 0.0, arm)
        find(looker, frame)
        slices.append(4.0 * looker.scene(frame.color, frame.depth, None))
    likeness = np.array(slices) @ np.array(slices).T / 4.0
    assert likeness.min() > 0.8


def threads():
    """Return the process's threads, native ones among them."""
    return len(list(Path("/proc/self/task").iterdir()))


def test_one_thread_does_it_all(maker, scene):
    frame = maker.look(scene, CENTER, 0.0, maker.home)
    key(encoder(scene), frame.color, frame.depth)  # what libraries start once
    before = threads()
    made = encoder(scene)
    for _ in range(3):
        assert key(made, frame.color, frame.depth).target_sight is Sight.SEEN
    assert threads() == before


def test_first_image_after_a_warm_up_needs_nothing_more(maker, scene):
    """All that is laid out once was laid out: a first image allocates what a later one does."""
    robot = RobotModel.load("ur5e")
    found, _ = warm_up(CONFIG, robot)
    assert found.decision.encoder_id == Checkpoint.load(CONFIG.checkpoint).encoder_id
    frame = maker.look(scene, CENTER, 0.0, maker.home)
    made = encoder(scene)
    runs = []
    for network in made._perceiver._networks.values():
        plain = network.run
        network.run = lambda plain=plain, n=network: (runs.append(n.input.ctypes.data), plain())
    first = key(made, frame.color, frame.depth)
    again = key(made, frame.color, frame.depth)
    assert runs[:2] == runs[2:]  # the same buffers, bound before the first image
    assert np.array_equal(first.vector, again.vector)


def test_checkpoint_that_cannot_be_used_fails_by_name(scene, tmp_path):
    with pytest.raises(CheckpointError, match="checkpoint must be a folder"):
        encoder(scene, checkpoint=str(tmp_path))
