"""Which scene the robot is in: told by the parameter, by a topic, or by what the camera sees.

A scene's name chooses the threshold of a match, so a wrong name is worse than none: a look that is
like no known scene is ``UNKNOWN``, whose threshold is the one for scenes without their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import yaml

from kv_action_router.contracts import SCENE_SLICE, Float32Array
from kv_action_router.errors import InputError

UNKNOWN = "unknown"
NAME_LIMIT = 64
SIZE = SCENE_SLICE.stop - SCENE_SLICE.start


def check_scene(field: str, name: object) -> str:
    """Return a scene's name.

    Raises:
        InputError: it is none.
    """
    if not isinstance(name, str) or not 0 < len(name) <= NAME_LIMIT or not name.isprintable():
        raise InputError(field, f"1 to {NAME_LIMIT} printable characters", name)
    return name


def load_scenes(path: Path) -> dict[str, Float32Array]:
    """Return scene -> scene slice of unit norm (24,) from a YAML file ``{scenes: {name: [...]}}``.

    Raises:
        InputError: naming file, field, limit and value.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(
            "scenes_file", "a YAML file that can be read", f"{path}: {error}"
        ) from error
    scenes = content.get("scenes") if isinstance(content, dict) else None
    if not isinstance(scenes, dict) or not scenes:
        raise InputError(f"{path}: scenes", "a table of scene names", scenes)
    return {check_scene(f"{path}: scenes", name): _unit(f"{path}: {name}", row)
            for name, row in scenes.items()}  # fmt: skip


def save_scenes(path: Path, scenes: Mapping[str, npt.ArrayLike]) -> None:
    """Write scenes so that :func:`load_scenes` reads them.

    Raises:
        InputError: a name or a slice is none; nothing was written.
    """
    rows = {
        check_scene("scene", name): [round(float(value), 6) for value in _unit(name, row)]
        for name, row in scenes.items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump({"scenes": rows}, default_flow_style=None), encoding="utf-8")


class SceneClassifier:
    """Names the scene that the newest scene slices are most like.

    Invariant: the name changes only after ``patience`` images in a row agree on another one.
    """

    def __init__(
        self, scenes: Mapping[str, Float32Array], minimum: float, patience: int = 5
    ) -> None:
        """Know some scenes.

        Args:
            scenes: name -> slice of unit norm (24,).
            minimum: cosine below which a look is no known scene.
            patience: images in a row that change the name.
        """
        self._names = tuple(scenes)
        self._slices = np.array([scenes[name] for name in self._names], dtype=np.float32)
        self._minimum = minimum
        self._patience = patience
        self._candidate, self._seen = UNKNOWN, 0
        self.name = UNKNOWN

    def update(self, scene: Float32Array) -> str:
        """Take the scene slice (24,) of an image; return the name in force."""
        looks = self._look(scene)
        if looks == self.name:
            self._seen = 0
        else:
            self._seen = self._seen + 1 if looks == self._candidate else 1
            self._candidate = looks
            if self._seen >= self._patience:
                self.name, self._seen = looks, 0
        return self.name

    def _look(self, scene: Float32Array) -> str:
        norm = math.sqrt(float(scene.dot(scene)))
        if not norm > 0.0:  # NaN compares false
            return UNKNOWN
        likeness = self._slices.dot(scene)
        best = int(likeness.argmax())
        return self._names[best] if float(likeness[best]) >= self._minimum * norm else UNKNOWN


def _unit(field: str, row: npt.ArrayLike) -> Float32Array:
    try:
        values = np.asarray(row, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(field, f"{SIZE} numbers", row) from error
    norm = float(np.linalg.norm(values)) if values.shape == (SIZE,) else math.nan
    if not (math.isfinite(norm) and norm > 0.0):
        raise InputError(field, f"{SIZE} finite numbers that are not all zero", row)
    return np.asarray(values / norm, dtype=np.float32)
