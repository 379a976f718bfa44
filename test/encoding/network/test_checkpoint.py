"""A checkpoint is whole, or it is refused by name; what decides a key decides its encoder id."""

import json

import numpy as np
import pytest
from onnx_builder import model

from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.network.checkpoint import (
    CARD,
    FORMAT,
    SHIPPED,
    Checkpoint,
    describe,
    encoder_id,
)
from kv_action_router.errors import CheckpointError, ConfigError

NUMBERS = {
    "window": 0.08,
    "fold": 0,
    "likely_minimum": 0.2,
    "present_minimum": 0.5,
    "place_scale": 1.0,
    "heading_scale": 1.0,
}


@pytest.fixture
def folder(tmp_path):
    """A whole checkpoint with two small files."""
    models = {
        "overview": model({"a.weight": np.ones((2, 3)), "a.bias": np.zeros(2)}),
        "closeup": model({"b.weight": np.full((4,), 0.5)}),
    }
    for name, data in models.items():
        (tmp_path / f"{name}.onnx").write_bytes(data)
    files = {name: describe(data, name) for name, data in models.items()}
    write(tmp_path, {"format": FORMAT, "target": "disc", "numbers": NUMBERS, "files": files})
    return tmp_path


def write(folder, card):
    (folder / CARD).write_text(json.dumps(card))


def card_of(folder):
    return json.loads((folder / CARD).read_text())


def test_whole_one_is_read(folder):
    found = Checkpoint.load(folder)
    assert found.target == "disc"
    assert found.numbers.window == 0.08
    assert found.tensors["overview"]["a.weight"].shape == (2, 3)
    assert found.encoder_id == encoder_id(card_of(folder))


def test_truncated_file_is_refused(folder):
    file = folder / "closeup.onnx"
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(CheckpointError, match=r"closeup\.onnx must be a complete ONNX file"):
        Checkpoint.load(folder)


def test_one_changed_weight_is_refused(folder):
    (folder / "closeup.onnx").write_bytes(model({"b.weight": np.array([0.5, 0.5, 0.5, 0.6])}))
    with pytest.raises(CheckpointError, match="sha256 must be"):
        Checkpoint.load(folder)


def test_wrong_size_is_refused_even_with_its_checksum(folder):
    other = model({"b.weight": np.ones(5)})
    (folder / "closeup.onnx").write_bytes(other)
    card = card_of(folder)
    card["files"]["closeup"]["sha256"] = describe(other, "x")["sha256"]
    write(folder, card)
    with pytest.raises(CheckpointError, match=r"b\.weight must be of shape \[4\], got \[5\]"):
        Checkpoint.load(folder)


def test_a_missing_weight_is_refused(folder):
    card = card_of(folder)
    card["files"]["overview"]["tensors"]["c.bias"] = [2]
    write(folder, card)
    with pytest.raises(CheckpointError, match=r"c\.bias must be of shape \[2\], got None"):
        Checkpoint.load(folder)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_weight_that_is_not_finite_is_refused_at_save_and_load(folder, bad):
    other = model({"b.weight": np.array([0.5, bad, 0.5, 0.5])})
    with pytest.raises(CheckpointError, match=r"b\.weight must be finite, got '1 values"):
        describe(other, "closeup")
    (folder / "closeup.onnx").write_bytes(other)
    with pytest.raises(CheckpointError, match=r"b\.weight must be finite"):
        Checkpoint.load(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [("window", 0.0), ("window", None), ("fold", -1), ("place_scale", float("nan")),
     ("present_minimum", 1.5), ("likely_minimum", "0.2"), ("heading_scale", True)],
)  # fmt: skip
def test_numbers_out_of_bounds_are_named(folder, name, value):
    card = card_of(folder)
    card["numbers"][name] = value
    write(folder, card)
    with pytest.raises(CheckpointError, match=f"{name} must be"):
        Checkpoint.load(folder)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": 99}', '{"format": 1}'])
def test_a_card_that_is_none_is_refused(folder, text):
    (folder / CARD).write_text(text)
    with pytest.raises(CheckpointError, match=CARD):
        Checkpoint.load(folder)


def test_no_checkpoint_names_the_shipped_ones(tmp_path):
    with pytest.raises(CheckpointError, match="checkpoint must be a folder with card.json"):
        Checkpoint.load(tmp_path / "nothing")


def test_encoder_id_follows_what_decides_a_key(folder):
    card = card_of(folder)
    first = encoder_id(card)
    assert encoder_id({**card, "held_out": {"p95": 1.0}, "training": {"seed": 3}}) == first
    assert encoder_id({**card, "numbers": {**NUMBERS, "present_minimum": 0.6}}) != first
    other = json.loads(json.dumps(card))
    other["files"]["closeup"]["sha256"] = "0" * 64
    assert encoder_id(other) != first


def test_shipped_ones_are_whole_and_small():
    folders = sorted(path.parent for path in SHIPPED.glob(f"*/{CARD}"))
    assert folders
    for each in folders:
        found = Checkpoint.load(each.name)
        assert found.folder == each
        assert sum(map(len, found.models.values())) < 1_000_000
        told = found.card["held_out"]
        for cell in told.get("cells", {"the only one": told}).values():
            assert cell["random"]["network"]["error_mm"]["p95"] <= 3.0


def test_parameter_without_a_checkpoint_is_refused():
    with pytest.raises(ConfigError, match="checkpoint must be"):
        EncoderConfig(perception="onnx", checkpoint="")
    with pytest.raises(ConfigError, match="perception must be"):
        EncoderConfig(perception="magic")
