"""From the networks' answers to an estimate: geometry, covariance, a reason for each refusal."""

import math

import numpy as np
import pytest
from encoding_builders import CAMERA, CENTER, CONFIG, hide, look, pixel_of

from kv_action_router.contracts import Sight
from kv_action_router.encoding.network import layout
from kv_action_router.encoding.network.checkpoint import Numbers
from kv_action_router.encoding.network.perception import NetworkPerception
from kv_action_router.encoding.network.pictures import Overview
from kv_action_router.errors import ImageError

WINDOW, LIMITS = 0.08, (0.1, 4.0)
SPREAD = math.log(0.01)  # of the answers [cut-out widths]


class Scripted:
    """Answers what it was told to, whatever it looks at."""

    def __init__(self, name):
        self.input = np.zeros(layout.INPUTS[name], np.float32)
        self.outputs = {
            key: np.zeros(shape, np.float32) for key, shape in layout.OUTPUTS[name].items()
        }
        self.runs = 0

    def run(self):
        self.runs += 1


class Rig:
    """A perception whose networks know where the disc is."""

    def __init__(self, fold=0):
        self.overview, self.closeup = Scripted("overview"), Scripted("closeup")
        numbers = Numbers(WINDOW, fold, 0.3, 0.5, 2.0, 1.0)
        networks = {"overview": self.overview, "closeup": self.closeup}
        self.perception = NetworkPerception(CONFIG, CAMERA, numbers, networks)
        self.likely = self.overview.outputs["likely"][0, 0]
        self.overview.outputs["scene"][0] = np.full(24, 24**-0.5)
        self.answers = self.closeup.outputs["answers"][0]
        self.answers[layout.PRESENT] = 4.0
        self.answers[layout.SPREAD] = SPREAD
        self.answers[layout.HEADING_SPREAD] = math.log(0.02)
        face = self.closeup.outputs["face"][0, 0]
        face[8:16, 8:16] = 1.0
        self.face = face
        self.point_at(CENTER)

    def point_at(self, center):
        """Let the overview name the cell, and the close-up the exact place."""
        view = Overview(CAMERA, LIMITS)
        pixel = CAMERA.project(center[None, :])[0]
        row, column = (round(value) for value in view.cell(*pixel.tolist()))
        self.likely[:] = 0.0
        self.likely[row, column] = 0.9
        middle = np.array(view.pixel(row, column))
        width = WINDOW * CAMERA.focal_length / CAMERA.depth_of(center)
        self.closeup.outputs["place"][0] = (pixel - middle) / width


@pytest.fixture
def rig():
    return Rig()


def test_center_is_where_the_ray_meets_the_face(rig):
    for offset in ((0.0, 0.0, 0.0), (0.04, -0.09, 0.0), (-0.08, 0.08, 0.0)):
        place = CENTER + np.array(offset)
        rig.point_at(place)
        found = rig.perception.find(*look(place))
        assert found.sight is Sight.SEEN
        # the cut-out's width follows from the lowest part of the surroundings: some pixels
        assert np.linalg.norm(found.target.pose.position - place) < 1.5e-3


def test_covariance_is_of_pixels_and_height(rig):
    found = rig.perception.find(*look()).target
    distance = CAMERA.depth_of(CENTER)
    deviation = 2.0 * 0.01 * WINDOW  # scaled, at the target [m]
    assert math.sqrt(found.covariance[1, 1]) == pytest.approx(deviation, rel=0.1)  # across
    away = math.sqrt(found.covariance[0, 0])  # along the line of sight it is as oblique as the face
    steep = -float(CAMERA.rays[pixel_of(CENTER)][2])
    assert away > deviation * 1.05
    assert away == pytest.approx(deviation / steep, rel=0.25)
    assert found.covariance[5, 5] == pytest.approx(math.pi**2 / 3.0)
    assert np.linalg.eigvalsh(found.covariance).min() > 0.0
    assert distance > 0.0


def test_larger_spread_is_larger_covariance_then_no_estimate(rig):
    whole = rig.perception.find(*look()).target.covariance[1, 1]
    rig.answers[layout.SPREAD] = SPREAD + math.log(1.2)
    assert rig.perception.find(*look()).target.covariance[1, 1] == pytest.approx(
        1.44 * whole, rel=0.1
    )
    rig.answers[layout.SPREAD] = SPREAD + math.log(4.0)
    found = rig.perception.find(*look())
    assert (found.sight, found.target) == (Sight.HIDDEN, None)
    assert "fixes the center to" in found.reason


@pytest.mark.parametrize("yaw", [-0.4, 0.0, 0.3, 0.5])
def test_heading_is_relative_to_the_line_of_sight(yaw):
    rig = Rig(fold=6)
    sight = CENTER - CAMERA.origin
    relative = 6 * (yaw - math.atan2(sight[1], sight[0]))
    rig.answers[layout.HEADING] = math.sin(relative), math.cos(relative)
    found = rig.perception.find(*look()).target
    assert math.remainder(found.yaw - yaw, math.pi / 3) == pytest.approx(0.0, abs=1e-2)
    assert abs(found.yaw) <= math.pi / 6 + 1e-6
    assert math.sqrt(found.covariance[5, 5]) == pytest.approx(0.02 / 6, rel=1e-3)


def test_nothing_likely_is_absent(rig):
    rig.likely[:] = 0.29
    found = rig.perception.find(*look())
    assert (found.sight, found.target) == (Sight.ABSENT, None)
    assert "0.29, 0.30 is needed" in found.reason
    assert rig.closeup.runs == 0


def test_what_is_not_the_target_is_refused_and_the_next_place_looked_at(rig):
    rig.answers[layout.PRESENT] = -2.0
    rig.likely[3, 3] = 0.5
    found = rig.perception.find(*look())
    assert (found.sight, found.target) == (Sight.HIDDEN, None)
    assert "is not (0.12, 0.50 is needed)" in found.reason
    assert rig.closeup.runs == 2


def test_face_without_depth_is_refused(rig):
    color, depth = look()
    row, column = pixel_of(CENTER)
    depth[row - 14 : row + 14, column - 14 : column + 14] = np.nan
    found = rig.perception.find(color, depth)
    assert (found.sight, found.target) == (Sight.HIDDEN, None)
    assert "depth" in found.reason


def test_no_depth_at_all_asks_no_network(rig):
    color, depth = look()
    for nothing in (np.nan, 0.0, np.inf):
        found = rig.perception.find(color, np.full_like(depth, nothing))
        assert (found.sight, found.target) == (Sight.NO_DEPTH, None)
    assert rig.overview.runs == 0


def test_answers_that_are_not_finite_are_no_estimate(rig):
    rig.answers[layout.SPREAD] = np.nan
    assert rig.perception.find(*look()).target is None
    rig.answers[layout.PRESENT] = np.nan
    assert rig.perception.find(*look()).target is None
    rig.likely[:] = np.nan
    assert rig.perception.find(*look()).target is None


@pytest.mark.parametrize("which", ["color", "depth"])
def test_wrong_size_is_named(rig, which):
    color, depth = look()
    images = (color[:-1], depth) if which == "color" else (color, depth[:, :-2])
    with pytest.raises(ImageError, match=f"{which} image must be 320x240"):
        rig.perception.find(*images)


def test_empty_place_is_gone_hidden_place_is_not(rig):
    color, depth = look()
    target = rig.perception.find(color, depth).target
    assert not rig.perception.place_is_empty(target, depth)
    rig.likely[:] = 0.0
    assert rig.perception.place_is_empty(target, depth)
    row, column = pixel_of(CENTER)
    hide(color, depth, slice(row - 25, row + 25), slice(column - 25, column + 25))
    assert not rig.perception.place_is_empty(target, depth)


def test_scene_slice_has_its_norm(rig):
    images = look()
    rig.perception.find(*images)
    scene = rig.perception.scene(*images, None)
    assert scene.dtype == np.float32
    assert np.linalg.norm(scene) == pytest.approx(0.5, rel=1e-5)


def test_place_on_the_map_and_pixel_are_inverse():
    view = Overview(CAMERA, LIMITS)
    for row, column in ((0.0, 0.0), (12.25, 30.5), (29.0, 39.0)):
        assert view.cell(*view.pixel(row, column)) == pytest.approx((row, column))
