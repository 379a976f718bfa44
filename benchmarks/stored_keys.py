"""Keys as a cache holds them after long use, for the benchmarks of the match.

Partitions (robot, intent, subtask) are of unequal size, the k-th holds a share proportional to 1/k.
Inside one, targets are spread over a table, at any yaw; the scene is one of a few, the body starts
from one of a few poses, both with noise of a quarter of their length. So keys lie in clusters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import (
    BODY_SLICE,
    KEY_SIZE,
    SCENE_SLICE,
    SLICE_NORMS,
    TARGET_SLICE,
    Float32Array,
)
from kv_action_router.encoding.target_slice import WAVELENGTHS, YAW_CYCLES

SCENES = 4  # of a partition
POSES = 6
NOISE = 0.25
LOWEST, HIGHEST = (-0.4, -0.9, 0.0), (0.4, -0.3, 0.3)  # of targets [m]
_SCENE_SIZE = SCENE_SLICE.stop - SCENE_SLICE.start
_BODY_SIZE = BODY_SLICE.stop - BODY_SLICE.start


@dataclass(frozen=True)
class Stored:
    """Keys and where they belong.

    Attributes:
        keys: as ``prepare_key`` returns them (n, 64).
        partitions: number of each key's partition (n,).
    """

    keys: Float32Array
    partitions: npt.NDArray[np.int32]


class World:
    """What keys are drawn from: the same seed gives the same world."""

    def __init__(self, partitions: int, seed: int = 1) -> None:
        random = np.random.default_rng(seed)
        self._scenes = random.normal(size=(partitions, SCENES, _SCENE_SIZE))
        self._bodies = random.normal(size=(partitions, POSES, _BODY_SIZE))
        share = 1.0 / np.arange(1, partitions + 1)
        self._share = share / share.sum()

    def draw(self, count: int, seed: int) -> Stored:
        """Return keys of this world; another seed gives others of the same kind."""
        random = np.random.default_rng(seed)
        partitions = random.choice(len(self._share), size=count, p=self._share).astype(np.int32)
        keys = np.zeros((count, KEY_SIZE), dtype=np.float32)
        keys[:, TARGET_SLICE] = _targets(random, count)
        for part, centers, name in (
            (SCENE_SLICE, self._scenes, "scene"),
            (BODY_SLICE, self._bodies, "body"),
        ):
            center = centers[partitions, random.integers(0, centers.shape[1], count)]
            values = center + NOISE * random.normal(size=center.shape)
            values *= SLICE_NORMS[name] / np.linalg.norm(values, axis=1, keepdims=True)
            keys[:, part] = values
        return Stored(keys, partitions)


def _targets(random: np.random.Generator, count: int) -> npt.NDArray[Any]:
    """Return target slices (count, 16) of random poses, laid out as the encoder does."""
    positions = random.uniform(LOWEST, HIGHEST, size=(count, 3))
    yaws = random.uniform(-math.pi, math.pi, count)
    waves = math.tau / np.array(WAVELENGTHS)
    angles = np.concatenate(
        [
            (positions[:, :, None] * waves).reshape(count, -1),
            yaws[:, None] * np.array(YAW_CYCLES),
        ],
        axis=1,
    )
    slices = np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(count, -1)
    return slices * (SLICE_NORMS["target"] / math.sqrt(angles.shape[1]))
