"""Examples as torch takes them, varied anew each time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kv_action_router.contracts import Float32Array
from kv_action_router.encoding.images import ColorImage
from kv_action_router.encoding.network import layout
from kv_action_router.encoding.network.pictures import write_closeup, write_overview
from kv_action_router.learning.dataset import MARGIN, Arrays

_SCENES, _LOOKS = 24, 2  # a batch of overviews
_CUTS = 96  # a batch of cut-outs
_GAIN, _TINT, _LIFT = 0.15, 0.05, 0.004  # largest change of brightness, color, and height [m]
_RECOLORED = 0.25  # share of the target's cut-outs that get other hues, which makes them no target
_HUES = (40.0, 320.0)  # [deg] by which hues are turned then


@dataclass(frozen=True)
class Overviews:
    """One batch: planes (n, 5, 120, 160), spot (n, 2), visible (n,), scene number (n,)."""

    planes: Tensor
    spot: Tensor
    visible: Tensor
    scene: Tensor


@dataclass(frozen=True)
class Cutouts:
    """One batch; see ``losses.closeup_loss``."""

    planes: Tensor
    place: Tensor
    face: Tensor
    visible: Tensor
    heading: Tensor


def overviews(data: Arrays, generator: np.random.Generator) -> Iterator[Overviews]:
    """Yield batches of an epoch: two looks at each of some scenes."""
    scene = data["scene"]
    groups = [np.flatnonzero(scene == number) for number in np.unique(scene)]
    pairs = []
    for group in groups:
        mixed = generator.permutation(group)
        pairs += [mixed[i : i + _LOOKS] for i in range(0, len(mixed) - _LOOKS + 1, _LOOKS)]
    order = generator.permutation(len(pairs))
    for start in range(0, len(order) - _SCENES + 1, _SCENES):
        chosen = np.concatenate([pairs[i] for i in order[start : start + _SCENES]])
        yield overview_batch(data, chosen, generator)


def overview_batch(
    data: Arrays, chosen: npt.NDArray[Any], generator: np.random.Generator | None
) -> Overviews:
    """Return some examples; without a generator as they are."""
    planes = np.zeros((len(chosen), layout.PLANES, *layout.OVERVIEW), np.float32)
    for out, i in zip(planes, chosen, strict=True):
        write_overview(data["color"][i], data["height"][i].astype(np.float32), out)
        if generator is not None:
            _vary(out, layout.OVERVIEW_HEIGHT, generator)
    return Overviews(
        torch.from_numpy(planes),
        torch.from_numpy(data["spot"][chosen]),
        torch.from_numpy(data["visible"][chosen]),
        torch.from_numpy(data["scene"][chosen]),
    )


def cutouts(data: Arrays, window: float, generator: np.random.Generator) -> Iterator[Cutouts]:
    """Yield batches of an epoch: each cut-out once, shifted."""
    usable = np.argwhere(data["cut_visible"] >= 0.0)
    order = generator.permutation(len(usable))
    for start in range(0, len(order) - _CUTS + 1, _CUTS):
        yield cutout_batch(data, usable[order[start : start + _CUTS]], window, generator)


def cutout_batch(
    data: Arrays,
    chosen: npt.NDArray[Any],
    window: float,
    generator: np.random.Generator | None,
) -> Cutouts:
    """Return some cut-outs (frame, number) (n, 2); without a generator from the middle."""
    n, size, cells = len(chosen), layout.CLOSEUP, layout.CLOSEUP_MAP
    planes = np.zeros((n, layout.PLANES, size, size), np.float32)
    face = np.zeros((n, 1, cells, cells), np.float32)
    frame, number = chosen.T
    place = data["cut_place"][frame, number].copy()
    visible = data["cut_visible"][frame, number].copy()
    for i, (j, k) in enumerate(chosen):
        shift = np.full(2, MARGIN // 2)
        if generator is not None:
            shift = generator.integers(0, MARGIN + 1, 2)
        here = np.s_[shift[1] : shift[1] + size, shift[0] : shift[0] + size]
        color, height = data["cut_color"][j, k][here], data["cut_height"][j, k][here]
        whole = data["cut_face"][j, k][here].astype(np.float32) / 255.0
        if generator is not None and visible[i] > 0.0 and generator.uniform() < _RECOLORED:
            color = _recolored(color, generator.uniform(*_HUES))
            visible[i], whole = 0.0, np.zeros_like(whole)
        write_closeup(color, height.astype(np.float32), window, planes[i])
        if generator is not None:
            _vary(planes[i], layout.CLOSEUP_HEIGHT * window, generator)
        step = layout.CLOSEUP_CELL
        face[i, 0] = whole.reshape(cells, step, cells, step).mean(axis=(1, 3))
        place[i] -= (shift - MARGIN // 2) / size
    return Cutouts(
        torch.from_numpy(planes),
        torch.from_numpy(place),
        torch.from_numpy(face),
        torch.from_numpy(visible),
        torch.from_numpy(data["cut_heading"][frame, number]),
    )


def _recolored(color: ColorImage, turn: float) -> ColorImage:
    """Return an image whose hues are turned by an angle [deg]."""
    hsv = cv2.cvtColor(np.ascontiguousarray(color), cv2.COLOR_RGB2HSV_FULL)
    hsv[..., 0] += np.uint8(round(turn * 256.0 / 360.0))  # wraps around
    turned: ColorImage = np.empty_like(color)
    cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB_FULL, dst=turned)
    return turned


def _vary(planes: Float32Array, unit: float, generator: np.random.Generator) -> None:
    """Make planes brighter or darker, another tint, and all heights a little off."""
    gain = 1.0 + generator.uniform(-_GAIN, _GAIN) + generator.uniform(-_TINT, _TINT, 3)
    color = planes[: layout.HEIGHT_PLANE]
    color += np.float32(0.5)
    color *= gain.astype(np.float32)[:, None, None]
    np.clip(color, 0.0, 1.0, out=color)
    color -= np.float32(0.5)
    lift = np.float32(generator.uniform(-_LIFT, _LIFT) / unit)
    planes[layout.HEIGHT_PLANE] += lift * planes[layout.MEASURED_PLANE]
