"""The numbers that belong to trained networks, found on examples they were not trained with."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kv_action_router.encoding.network import layout
from kv_action_router.encoding.network.checkpoint import Numbers
from kv_action_router.encoding.network.pictures import write_closeup, write_overview
from kv_action_router.encoding.network.runner import OnnxNetwork
from kv_action_router.learning.cells import Cell
from kv_action_router.learning.dataset import MARGIN, Arrays

SHOWN, HIDDEN = 0.22, 0.08  # share of the face, as in ``losses``
_LOST = 0.02  # share of shown targets that may fall below the overview's threshold
_LIKELY = (0.08, 0.5)  # range of that threshold
_FALSE = 0.002  # share of other things that may pass the close-up's threshold
_PRESENT = (0.5, 0.95)  # range of that threshold
_OUTLIER = 6.0  # standard deviations beyond which an error counts as that many
_SCALE = (0.3, 20.0)

_Floats = npt.NDArray[np.float64]


def calibrate(models: dict[str, bytes], data: Arrays, cell: Cell) -> Numbers:
    """Return thresholds and scales.

    Args:
        models: name -> ONNX file.
        data: held-out examples.
        cell: that they are of.
    """
    likely = _scores_of_targets(models["overview"], data)
    presence, place, turn = _closeups(models["closeup"], data, cell)
    other = presence[data["cut_visible"].ravel()[_usable(data)] < HIDDEN]
    return Numbers(
        window=cell.window,
        fold=cell.fold,
        likely_minimum=_within(float(np.quantile(likely, _LOST)), _LIKELY),
        present_minimum=_within(float(np.quantile(other, 1.0 - _FALSE)), _PRESENT),
        place_scale=_scale(place),
        heading_scale=_scale(turn) if cell.fold else 1.0,
    )


def _scores_of_targets(model: bytes, data: Arrays) -> _Floats:
    """Return the map's highest value next to each target that is shown (k,)."""
    network = OnnxNetwork(model, "overview")
    scores = []
    for i in np.flatnonzero(data["visible"] > SHOWN):
        write_overview(data["color"][i], data["height"][i].astype(np.float32), network.input[0])
        network.run()
        row, column = (int(value) for value in np.rint(data["spot"][i]))
        likely = network.outputs["likely"][0, 0]
        around = likely[max(0, row - 1) : row + 2, max(0, column - 1) : column + 2]
        scores.append(float(around.max()) if around.size else 0.0)
    return np.array(scores)


def _closeups(model: bytes, data: Arrays, cell: Cell) -> tuple[_Floats, _Floats, _Floats]:
    """Return presence of all cut-outs, and errors over standard deviations of shown targets."""
    network = OnnxNetwork(model, "closeup")
    half, size = MARGIN // 2, layout.CLOSEUP
    middle = np.s_[half : half + size, half : half + size]
    presence, place, turn = [], [], []
    for flat in _usable(data):
        i, k = divmod(int(flat), data["cut_visible"].shape[1])
        height = data["cut_height"][i, k][middle].astype(np.float32)
        write_closeup(data["cut_color"][i, k][middle], height, cell.window, network.input[0])
        network.run()
        answers = network.outputs["answers"][0].astype(float)
        presence.append(1.0 / (1.0 + np.exp(-answers[layout.PRESENT])))
        if data["cut_visible"][i, k] > SHOWN:
            error = network.outputs["place"][0] - data["cut_place"][i, k]
            place += list(error / np.exp(answers[layout.SPREAD]))
            if cell.fold:
                told = np.arctan2(*answers[layout.HEADING])
                off = told - np.arctan2(*data["cut_heading"][i, k])
                off = np.arctan2(np.sin(off), np.cos(off))
                turn.append(off / np.exp(answers[layout.HEADING_SPREAD]))
    return np.array(presence), np.array(place), np.array(turn)


def _usable(data: Arrays) -> npt.NDArray[np.intp]:
    return np.flatnonzero(data["cut_visible"].ravel() >= 0.0)


def _scale(normalized: _Floats) -> float:
    """Return the root mean square, outliers cut: what the standard deviations are too small by."""
    return _within(float(np.sqrt(np.mean(np.clip(normalized, -_OUTLIER, _OUTLIER) ** 2))), _SCALE)


def _within(value: float, limits: tuple[float, float]) -> float:
    return round(min(max(value, limits[0]), limits[1]), 4)
