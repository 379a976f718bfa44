"""The scene's name: known scenes are recognized, unknown ones say so, bad input changes nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.scene_name import (
    SIZE,
    UNKNOWN,
    SceneClassifier,
    check_scene,
    load_scenes,
    save_scenes,
)
from kv_action_router.errors import ConfigError, InputError


def slice_of(axis: int) -> np.ndarray:
    row = np.zeros(SIZE, dtype=np.float32)
    row[axis] = 1.0
    return row


def classifier(patience: int = 3) -> SceneClassifier:
    scenes = {"corridor": slice_of(0), "warehouse": slice_of(1)}
    return SceneClassifier(scenes, minimum=0.9, patience=patience)


def test_a_scene_is_known_by_its_look_once_images_agree() -> None:
    names = classifier()
    seen = [names.update(0.5 * slice_of(0)) for _ in range(3)]
    assert seen == [UNKNOWN, UNKNOWN, "corridor"]
    seen = [names.update(slice_of(axis)) for axis in (1, 1, 0, 1, 1, 1)]
    assert seen == ["corridor"] * 5 + ["warehouse"]


def test_a_look_like_none_is_unknown() -> None:
    names = classifier(patience=1)
    assert names.update(slice_of(1)) == "warehouse"
    assert names.update(slice_of(5)) == UNKNOWN
    assert names.update(np.zeros(SIZE, np.float32)) == UNKNOWN
    assert names.update(np.full(SIZE, np.nan, np.float32)) == UNKNOWN


@given(st.lists(st.sampled_from([0, 1, 5]), max_size=60))
def test_the_name_changes_only_when_images_in_a_row_agree(axes: list[int]) -> None:
    names, history = classifier(), []
    for axis in axes:
        before = names.name
        after = names.update(slice_of(axis))
        history.append(axis)
        if after != before:
            assert len(set(history[-3:])) == 1


def test_scenes_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "scenes.yaml"
    save_scenes(path, {"aisle 3": 7.0 * slice_of(2)})
    assert np.allclose(load_scenes(path)["aisle 3"], slice_of(2))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scenes: [1]", "a table of scene names, got [1]"),
        ("scenes: {}", "a table of scene names"),
        ("{}", "a table of scene names, got None"),
        ("scenes: {a: [1, 2]}", "24 finite numbers that are not all zero, got [1, 2]"),
        ("scenes: {a: text}", "must be 24"),
        (f"scenes: {{a: {[0.0] * SIZE}}}", "not all zero"),
        ("scenes: {'': [1]}", "1 to 64 printable characters, got ''"),
        ("\t", "a YAML file that can be read"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "scenes.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_scenes(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="scenes_file must be a YAML file that can be read"):
        load_scenes(tmp_path / "none.yaml")


@pytest.mark.parametrize("name", ["", "x" * 65, "two\nlines", 5])
def test_what_is_no_name_is_refused(name: object) -> None:
    with pytest.raises(InputError, match="scene must be 1 to 64 printable characters"):
        check_scene("scene", name)


def test_a_scene_by_look_needs_a_file() -> None:
    with pytest.raises(ConfigError, match="scenes_file"):
        EncoderConfig(scene_source="slice")
