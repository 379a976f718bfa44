"""Plots of working shifts: hit rates over the cycles by layer, and ours against a comparator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kv_action_router.contracts import FloatArray

_LAYER_COLORS = {"task": "#2a7f9e", "behavior": "#2a9d8f", "execution": "#e9c46a"}
_STYLES = (("#2a7f9e", 3.5), ("#d1603d", 2.0), ("#264653", 0.8))  # thinner on top: none hides
_WINDOW = 25  # cycles that a rate is taken over


@dataclass(frozen=True)
class ShiftSeries:
    """What is drawn of one shift; every sequence has one value a cycle.

    Attributes:
        name: for the legend.
        decisions: asked for.
        task_hits, behavior_hits: of them.
        confident_ticks: share of control ticks with a confident execution value.
        false_hits: of the task hits.
        entries: that the cache held afterwards.
    """

    name: str
    decisions: Sequence[float]
    task_hits: Sequence[float]
    behavior_hits: Sequence[float]
    confident_ticks: Sequence[float]
    false_hits: Sequence[float]
    entries: Sequence[float]


def write_all(shifts: Sequence[ShiftSeries], limit: float, folder: Path) -> list[Path]:
    """Write the plots; return the files.

    Args:
        shifts: ours first, then what it is compared with.
        limit: task hits over decisions that ours must reach.
        folder: is made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    figures = {"layers.png": _layers(shifts[0], limit), "comparison.png": _comparison(shifts)}
    files = []
    for name, figure in figures.items():
        figure.savefig(folder / name, dpi=110, bbox_inches="tight")
        plt.close(figure)
        files.append(folder / name)
    return files


def rates(counts: Sequence[float], of: Sequence[float]) -> FloatArray:
    """Return, for each cycle, the share over the last 25 cycles (n,); NaN where nothing counted."""
    ends = np.arange(1, len(of) + 1)
    begins = np.maximum(0, ends - _WINDOW)
    above, below = (np.concatenate(([0.0], np.cumsum(values))) for values in (counts, of))
    whole = below[ends] - below[begins]
    share = (above[ends] - above[begins]) / np.where(whole > 0.0, whole, np.nan)
    return np.asarray(share, dtype=float)


def _layers(shift: ShiftSeries, limit: float) -> Figure:
    figure, axis = plt.subplots(figsize=(8.0, 3.4))
    cycles = np.arange(len(shift.decisions))
    ones = [1.0] * len(cycles)
    for layer, counts, of in (
        ("execution", shift.confident_ticks, ones),
        ("task", shift.task_hits, shift.decisions),
        ("behavior", shift.behavior_hits, shift.decisions),
    ):
        axis.plot(cycles, rates(counts, of), label=layer, color=_LAYER_COLORS[layer])
    axis.axhline(limit, color="0.6", linestyle=":", linewidth=1.0, label="task hits, least")
    false = np.flatnonzero(np.asarray(shift.false_hits) > 0)
    axis.plot(false, np.zeros(len(false)), "x", color="#d1603d", label="false hit")
    _finish(axis, f"hits / decisions, last {_WINDOW} cycles")
    axis.set(xlabel="cycle", title="Hit rate by layer, from an empty cache")
    return figure


def _comparison(shifts: Sequence[ShiftSeries]) -> Figure:
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(8.0, 5.6), sharex=True)
    for shift, (color, width) in zip(shifts, _STYLES, strict=False):
        cycles = np.arange(len(shift.decisions))
        task = rates(shift.task_hits, shift.decisions)
        behavior = rates(shift.behavior_hits, shift.decisions)
        upper.plot(cycles, task, color=color, linewidth=width, label=shift.name)
        upper.plot(cycles, behavior, color=color, linewidth=width, linestyle="--")
        lower.plot(cycles, shift.entries, color=color, linewidth=width, label=shift.name)
    _finish(upper, "hits / decisions")
    upper.set(title=f"Task hits (solid), behavior hits (dashed), last {_WINDOW} cycles")
    lower.set(xlabel="cycle", ylabel="entries held")
    lower.legend(fontsize=8)
    return figure


def _finish(axis: Axes, label: str) -> None:
    axis.set(ylabel=label, ylim=(-0.05, 1.05))
    axis.legend(fontsize=8, loc="lower right")
