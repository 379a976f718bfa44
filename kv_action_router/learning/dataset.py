"""Training examples on disk: rendered once, in shards; what is there already is not rendered again.

A shard is a few scenes, drawn from a seed of its own, so that the set is the same whatever was
rendered in which run. The folder's name holds a hash of all that decides what is in it.
"""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray
from kv_action_router.encoding.network import layout, pictures
from kv_action_router.encoding.network.pictures import Cutter, Overview
from kv_action_router.learning import frames as frames_module
from kv_action_router.learning import rendering, sensor, surroundings
from kv_action_router.learning.cells import Cell
from kv_action_router.learning.frames import Frame, FrameMaker

LOOKS = 4  # frames a scene
SCENES = 50  # a shard
MARGIN = 16  # [px] that a stored cut-out is wider than the network's, so that it can be shifted
SIZE = layout.CLOSEUP + MARGIN
NOWHERE = -1.0  # place on the map of a target that is not there
DEPTH_LIMITS = (0.10, 4.0)  # [m] the encoder's defaults
_JITTER = 6.0  # [px] by which a place may be off whose surroundings say how high it lies

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Plan:
    """How many examples of which cell, and from which seed.

    Attributes:
        cell: what is looked at.
        shards: of ``SCENES * LOOKS`` frames.
        seed: of all of them.
        folder: that holds data sets.
    """

    cell: Cell
    shards: int
    seed: int
    folder: Path

    @property
    def place(self) -> Path:
        """Folder of this set: another one where anything about the pictures has changed."""
        sources = "".join(
            map(inspect.getsource, (frames_module, rendering, sensor, surroundings, pictures))
        )
        cell = self.cell
        decisive = (cell.simulation, cell.face.tolist(), cell.window, cell.fold, cell.hue)
        told = f"{decisive}{self.seed}{LOOKS}{SCENES}{SIZE}{layout.OVERVIEW}{sources}"
        return self.folder / f"{cell.name}-{digest(told)}"


def digest(told: str) -> str:
    """Return a short hash of a text."""
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def render(plan: Plan, progress: Callable[[int], None] = lambda _: None) -> list[Path]:
    """Render what is missing; return the shards' files.

    Args:
        plan: of the set.
        progress: told of each shard that is there.
    """
    place = plan.place
    place.mkdir(parents=True, exist_ok=True)
    files = [place / f"{number:04d}.npz" for number in range(plan.shards)]
    maker: FrameMaker | None = None
    for number, file in enumerate(files):
        if not file.exists():
            maker = maker or FrameMaker(plan.cell)
            partial = file.with_suffix(".part.npz")
            shard: dict[str, Any] = _shard(maker, plan, number)
            np.savez(partial, **shard)
            partial.rename(file)
        progress(number)
    if maker is not None:
        maker.close()
    return files


def load(files: list[Path], wanted: Callable[[str], bool] = lambda _: True) -> Arrays:
    """Return all shards as one set of arrays (n, ...), of the names that are wanted.

    ``scene`` numbers all shards' scenes through.
    """
    shards = [np.load(file, allow_pickle=False) for file in files]
    data = {
        name: np.concatenate([shard[name] for shard in shards])
        for name in filter(wanted, shards[0].files)
    }
    if "scene" in data:
        sizes = [len(shard["visible"]) for shard in shards]
        data["scene"] = data["scene"] + np.repeat(np.arange(len(files)) * SCENES, sizes)
    return data


def _shard(maker: FrameMaker, plan: Plan, number: int) -> Arrays:
    generator = np.random.default_rng([plan.seed, number, *plan.cell.name.encode()])
    rows: dict[str, list[npt.ArrayLike]] = {}
    for scene_number in range(SCENES):
        scene = maker.scene(generator)
        for _ in range(LOOKS):
            frame = maker.frame(scene, generator)
            row = example(frame, plan.cell, generator)
            row["scene"] = np.int32(scene_number)
            for name, value in row.items():
                rows.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in rows.items()}


def example(frame: Frame, cell: Cell, generator: np.random.Generator) -> dict[str, npt.ArrayLike]:
    """Return what the networks are taught from a frame.

    ``color``, ``height``: overview. ``spot``: row and column of the target on its map.
    ``visible``: share of the face. Two cut-outs ``cut_*``, of the target and of something else:
    ``color``, ``height`` and ``face``, each (2, n, n, ...); ``place`` of the target's center from
    the middle, in widths of the network's cut-out (2, 2); ``visible`` (2), negative where nothing
    could be cut out; ``heading``, sine and cosine (2, 2).
    """
    overview = Overview(frame.camera, DEPTH_LIMITS)
    overview.take(frame.color, frame.depth)
    there = bool(np.isfinite(frame.position).all())
    pixel = frame.camera.project(frame.position[None, :])[0] if there else np.full(2, np.nan)
    rows, columns = frame.camera.shape
    there = there and bool(0.0 <= pixel[0] < columns and 0.0 <= pixel[1] < rows)
    spot = overview.cell(*pixel) if there else (NOWHERE, NOWHERE)
    cuts = [
        _cut(frame, cell, overview, pixel, pixel if there else None, generator),
        _cut(frame, cell, overview, _elsewhere(frame, pixel, generator), None, generator),
    ]
    result: dict[str, npt.ArrayLike] = {
        "color": overview.color.copy(),
        "height": overview.heights.astype(np.float16),
        "spot": np.array(spot, np.float32),
        "visible": np.float32(frame.visible if there else 0.0),
    }
    for name in cuts[0]:
        result[f"cut_{name}"] = np.array([cut[name] for cut in cuts])
    return result


def relative_yaw(frame: Frame) -> float:
    """Return the target's yaw, counted from the horizontal direction in which it is looked at."""
    sight = frame.position - frame.camera.origin
    return frame.yaw - math.atan2(float(sight[1]), float(sight[0]))


def _elsewhere(frame: Frame, pixel: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Return the pixel of the hardest decoy, else of anything that is not the target."""
    rows, columns = frame.camera.shape
    away = 0.12 * columns
    if len(frame.decoys) and generator.uniform() < 0.7:
        decoy = frame.decoys[0]  # of the target's color, where there is one
        there = frame.camera.project(decoy[None, :])[0]
        if not np.linalg.norm(there - pixel) < away:  # NaN: there is no target
            return there
    for _ in range(10):
        there = np.array([generator.uniform(0, columns), generator.uniform(0, rows)])
        if not np.linalg.norm(there - pixel) < away:
            break
    return there


def _cut(
    frame: Frame,
    cell: Cell,
    overview: Overview,
    pixel: FloatArray,
    center: FloatArray | None,
    generator: np.random.Generator,
) -> dict[str, npt.ArrayLike]:
    row: dict[str, npt.ArrayLike] = {
        "color": np.zeros((SIZE, SIZE, 3), np.uint8),
        "height": np.full((SIZE, SIZE), np.nan, np.float16),
        "face": np.zeros((SIZE, SIZE), np.uint8),
        "place": np.zeros(2, np.float32),
        "heading": np.zeros(2, np.float32),
        "visible": np.float32(-1.0),
    }
    if not np.isfinite(pixel).all():
        return row
    about = (pixel + generator.uniform(-_JITTER, _JITTER, 2)).tolist()
    level = overview.level((about[0], about[1]))
    cutter = Cutter(frame.camera, cell.window * SIZE / layout.CLOSEUP, SIZE, DEPTH_LIMITS)
    middle = (pixel + generator.uniform(-0.5, 0.5, 2)).tolist()
    where = (float(middle[0]), float(middle[1]))
    cut = None if level is None else cutter.cut(frame.color, frame.depth, where, level)
    if cut is None:
        return row
    row.update(color=cut.color, height=cut.heights.astype(np.float16), visible=np.float32(0.0))
    if center is None:
        return row
    same = cutter.cut(np.repeat(frame.face[..., None], 3, axis=2).astype(np.uint8) * 255,
                      frame.depth, where, level or 0.0)  # fmt: skip
    assert same is not None  # the same square as before
    width = cut.width * layout.CLOSEUP / SIZE
    angle = cell.fold * relative_yaw(frame)
    row.update(
        face=same.color[..., 0],
        place=((center - np.array(where)) / width).astype(np.float32),
        heading=np.array([math.sin(angle), math.cos(angle)], np.float32),
        visible=np.float32(frame.visible),
    )
    return row
