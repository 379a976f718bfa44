"""A checkpoint: a folder with two ONNX files and a card that says what they must be.

``card.json`` holds the checksum of each file, the shape of each weight, and the few numbers that
belong to the weights (size of the cut-out, thresholds, scale of the errors). Nothing in it is code:
weights are tensors, and a file is refused that is truncated, changed, of other sizes or not finite.
The ``encoder_id`` is a hash of checksums and numbers, of all that decides a key.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kv_action_router.contracts import Float32Array
from kv_action_router.encoding.network.layout import INPUTS
from kv_action_router.encoding.network.tensors import read_tensors
from kv_action_router.errors import CheckpointError

CARD = "card.json"
FORMAT = 1
NAMES = tuple(INPUTS)
SHIPPED = Path(__file__).resolve().parents[1] / "checkpoints"
_LARGEST = 8 << 20  # bytes of a file

_Bounds = tuple[float, float]
_NUMBERS: Mapping[str, _Bounds] = {
    "window": (0.002, 1.0),
    "fold": (0, 64),
    "likely_minimum": (0.0, 1.0),
    "present_minimum": (0.0, 1.0),
    "place_scale": (0.1, 100.0),
    "heading_scale": (0.1, 100.0),
}


@dataclass(frozen=True)
class Numbers:
    """What belongs to the weights.

    Attributes:
        window: width of the cut-out at the target [m].
        fold: turns by 2 pi / fold look the same; 0 = the target has no heading at all.
        likely_minimum: of the overview's map, below which a place is none.
        present_minimum: probability below which the close-up does not show the target.
        place_scale: what the network's standard deviations of the place are multiplied by, so that
            they are right on held-out frames.
        heading_scale: the same for the heading.
    """

    window: float
    fold: int
    likely_minimum: float
    present_minimum: float
    place_scale: float
    heading_scale: float


@dataclass(frozen=True)
class Checkpoint:
    """Both networks, read and checked.

    Attributes:
        folder: where it came from.
        encoder_id: of the keys that it makes.
        target: what it was trained to see.
        numbers: see :class:`Numbers`.
        models: name -> ONNX file.
        tensors: name -> weights of that file.
        card: all of ``card.json``.
    """

    folder: Path
    encoder_id: str
    target: str
    numbers: Numbers
    models: Mapping[str, bytes]
    tensors: Mapping[str, Mapping[str, Float32Array]]
    card: Mapping[str, Any]

    @classmethod
    def load(cls, where: str | Path) -> Checkpoint:
        """Read a checkpoint: the path of its folder, or the name of one that is shipped.

        Raises:
            CheckpointError: naming the file, what it must be and what it is.
        """
        folder = find(where)
        card = _card(folder / CARD)
        files = _section(card, "files", folder)
        models, tensors = {}, {}
        for name in NAMES:
            models[name], tensors[name] = _model(folder / f"{name}.onnx", files.get(name))
        numbers = _numbers(card, folder)
        target = card.get("target")
        if not isinstance(target, str) or not target:
            raise CheckpointError(f"{folder / CARD}: target", "a name", target)
        return cls(folder, encoder_id(card), target, numbers, models, tensors, card)


def find(where: str | Path) -> Path:
    """Return the folder of a checkpoint.

    Raises:
        CheckpointError: there is none.
    """
    for folder in (Path(where).expanduser(), SHIPPED / str(where)):
        if str(where) and (folder / CARD).is_file():
            return folder
    shipped = sorted(path.parent.name for path in SHIPPED.glob(f"*/{CARD}"))
    raise CheckpointError(
        "checkpoint", f"a folder with {CARD}, or one of {', '.join(shipped) or 'none shipped'}",
        str(where),
    )  # fmt: skip


def describe(data: bytes, source: str) -> dict[str, Any]:
    """Return what a card says about a file: checksum, and the shape of each weight.

    Raises:
        CheckpointError: the weights cannot be read, or are not finite.
    """
    tensors = read_tensors(data, source)
    _check_finite(tensors, source)
    return {
        "sha256": hashlib.sha256(data).hexdigest(),
        "tensors": {name: list(values.shape) for name, values in sorted(tensors.items())},
    }


def encoder_id(card: Mapping[str, Any]) -> str:
    """Return the name of all keys that a checkpoint makes: it changes with what decides a key."""
    files = card["files"]
    decisive = [files[name]["sha256"] for name in NAMES]
    decisive += [repr(float(card["numbers"][name])) for name in sorted(_NUMBERS)]
    return f"network-{hashlib.sha256(' '.join(decisive).encode()).hexdigest()[:16]}"


def _card(path: Path) -> dict[str, Any]:
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CheckpointError(str(path), "a JSON file that can be read", error) from error
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        found = card.get("format") if isinstance(card, dict) else card
        raise CheckpointError(f"{path}: format", str(FORMAT), found)
    return card


def _section(card: Mapping[str, Any], name: str, folder: Path) -> Mapping[str, Any]:
    section = card.get(name)
    if not isinstance(section, dict):
        raise CheckpointError(f"{folder / CARD}: {name}", "a table", section)
    return section


def _numbers(card: Mapping[str, Any], folder: Path) -> Numbers:
    section = _section(card, "numbers", folder)
    for name, (low, high) in _NUMBERS.items():
        value = section.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise CheckpointError(f"{folder / CARD}: {name}", "a number", value)
        if not (math.isfinite(value) and low <= value <= high):
            raise CheckpointError(f"{folder / CARD}: {name}", f"from {low} to {high}", value)
    values = {name: section[name] for name in _NUMBERS}
    return Numbers(**{**values, "fold": int(values["fold"])})


def _model(path: Path, told: Any) -> tuple[bytes, dict[str, Float32Array]]:
    if not isinstance(told, dict) or not isinstance(told.get("tensors"), dict):
        raise CheckpointError(f"{path.parent / CARD}: files.{path.stem}", "sha256, tensors", told)
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise CheckpointError(str(path), "a file that can be read", error) from error
    if len(data) > _LARGEST:
        raise CheckpointError(str(path), f"at most {_LARGEST} bytes", "more")
    tensors = read_tensors(data, str(path))
    _check_finite(tensors, str(path))
    shapes = {name: list(values.shape) for name, values in tensors.items()}
    for name in sorted(shapes.keys() | told["tensors"].keys()):
        wanted, found = told["tensors"].get(name), shapes.get(name)
        if wanted != found:
            raise CheckpointError(f"{path}: {name}", f"of shape {wanted}", found)
    checksum = hashlib.sha256(data).hexdigest()
    if checksum != told.get("sha256"):
        raise CheckpointError(f"{path}: sha256", str(told.get("sha256")), checksum)
    return data, tensors


def _check_finite(tensors: Mapping[str, Float32Array], source: str) -> None:
    for name, values in tensors.items():
        bad = int(np.count_nonzero(~np.isfinite(values)))
        if bad:
            raise CheckpointError(f"{source}: {name}", "finite", f"{bad} values that are not")
