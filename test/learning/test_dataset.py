"""Examples: where a target is on map and cut-out, and shards that do not depend on the run."""

import dataclasses

import numpy as np
import pytest

from kv_action_router.encoding.network import layout
from kv_action_router.learning import dataset
from kv_action_router.learning.cells import cell
from kv_action_router.learning.dataset import MARGIN, SIZE, Plan, example

PLACE = np.array([0.46, 0.03, 0.010])


@pytest.fixture(scope="module")
def plain(maker):
    frame = maker.look(maker.plain_scene(), PLACE, 0.0, maker.home)
    return frame, example(frame, cell("touch"), np.random.default_rng(1))


def test_spot_is_the_cell_of_the_target(plain):
    frame, row = plain
    pixel = frame.camera.project(PLACE[None, :])[0]
    step = frame.camera.shape[1] / layout.OVERVIEW_MAP[1]
    assert (np.asarray(row["spot"])[::-1] + 0.5) * step - 0.5 == pytest.approx(pixel, abs=1e-3)


def test_cutout_of_the_target_shows_its_face_at_its_place(plain):
    _, row = plain
    face = row["cut_face"][0] > 127
    rows, columns = np.nonzero(face)
    middle = np.array([columns.mean(), rows.mean()]) - (SIZE - 1) / 2
    # the center of the visible face is the projected center but for perspective
    assert middle / layout.CLOSEUP == pytest.approx(row["cut_place"][0], abs=0.01)
    across = columns.max() - columns.min() + 1  # the window is twice the face
    assert across / layout.CLOSEUP == pytest.approx(0.5, abs=0.05)
    assert MARGIN < across < layout.CLOSEUP


def test_other_cutout_has_no_face(plain):
    _, row = plain
    assert row["cut_visible"][1] <= 0.0
    assert not row["cut_face"][1].any()


def test_heights_are_relative_to_the_surroundings(plain):
    _, row = plain
    height = row["cut_height"][0].astype(float)
    face = row["cut_face"][0] > 200
    edge = np.ones_like(face)
    edge[8:-8, 8:-8] = False
    assert np.nanmedian(height[face]) - np.nanmedian(height[edge]) == pytest.approx(0.010, abs=2e-3)


def test_shards_are_the_same_whatever_was_rendered_before(tmp_path, monkeypatch):
    monkeypatch.setattr(dataset, "SCENES", 1)
    monkeypatch.setattr(dataset, "LOOKS", 2)
    plan = Plan(cell("touch"), 2, 5, tmp_path / "a")
    files = dataset.render(plan)
    again = dataclasses.replace(plan, folder=tmp_path / "b")
    other = again.place
    other.mkdir(parents=True)
    (other / "0000.npz").write_bytes(files[0].read_bytes())  # as a run that was broken off
    second = dataset.render(again)
    one, two = dataset.load(files), dataset.load(second)
    assert one["scene"].tolist() == [0, 0, 1, 1]
    for name, values in one.items():
        equal_nan = values.dtype.kind == "f"
        assert np.array_equal(values, two[name], equal_nan=equal_nan), name


def test_another_seed_is_another_folder(tmp_path):
    plan = Plan(cell("touch"), 1, 1, tmp_path)
    assert plan.place == Plan(cell("touch"), 9, 1, tmp_path).place
    assert plan.place != dataclasses.replace(plan, seed=2).place
    assert plan.place != dataclasses.replace(plan, cell=cell("screw")).place
