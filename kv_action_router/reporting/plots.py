"""Plots of a run: PNG files, and the figures that stand in its page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.patches import Circle
from matplotlib.ticker import MaxNLocator

from kv_action_router.contracts import FloatArray
from kv_action_router.reporting.plot import Plot
from kv_action_router.reporting.records import PARTS, RunRecord
from kv_action_router.reporting.svg import (
    BLUE,
    GOLD,
    GRAY,
    INK,
    MUTED,
    ORANGE,
    PAPER,
    TEAL,
    VIOLET,
    style,
)
from kv_action_router.reporting.trace_plots import of_trace

_PART_COLORS = (VIOLET, TEAL, GOLD, ORANGE)
_KIND_COLORS = {"hit": BLUE, "miss": ORANGE, "refresh": TEAL}
_DEADLINE_MS = 15.0
_TARGET_LIMIT_MM = 3.0
_WIDTH = 7.0  # [in]
_STEPS = 300  # of a curve


def draw(run: RunRecord, report: dict[str, Any], tip: FloatArray | None = None) -> list[Plot]:
    """Draw every plot that the run has data for.

    Args:
        run: to draw.
        report: that was made of it.
        tip: of the tool at each sample of the trace, base frame (k, 3) [m]; None = not known.
    """
    with style():
        found = (
            _hit_rate(run),
            _latency(run),
            _tails(run),
            _image_age(run),
            _target_error(run),
            _stages(report),
            *of_trace(run, report, tip),
            _target(run),
        )
    return [plot for plot in found if plot is not None]


def write_all(plots: Sequence[Plot], folder: Path) -> list[Path]:
    """Write plots as PNG; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for plot in plots:
        figure = plot.figure
        top = figure.get_tightbbox().y1 + 0.08  # [in]
        title = figure.text(0.02, top / figure.get_figheight(), plot.title, weight="bold")
        files.append(folder / f"{plot.name}.png")
        figure.savefig(files[-1], dpi=110, bbox_inches="tight", facecolor=PAPER)
        title.remove()  # in a page it stands beside the figure
    return files


def close(plots: Sequence[Plot]) -> None:
    """Free the figures."""
    for plot in plots:
        plt.close(plot.figure)


def _hit_rate(run: RunRecord) -> Plot | None:
    if not run.cycles:
        return None
    figure, axis = plt.subplots(figsize=(_WIDTH, 2.5))
    index = [cycle.index for cycle in run.cycles]
    rates = [cycle.hit_rate for cycle in run.cycles]
    axis.bar(index, rates, color=[BLUE if cycle.succeeded else ORANGE for cycle in run.cycles])
    axis.plot(index, rates, ".", color=INK, markersize=4)  # a rate of 0 is to be seen too
    axis.set(xlabel="cycle", ylabel="task hits / decisions", ylim=(-0.03, 1.05))
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlim(0.3, len(run.cycles) + 0.7)
    failed = [cycle.index for cycle in run.cycles if not cycle.succeeded]
    alt = (
        f"Bars, one a cycle: {rates[0]:.2f} in the first, {rates[-1]:.2f} in the last of "
        f"{len(rates)} cycles, "
        + (f"failed: {', '.join(map(str, failed))}." if failed else "none failed.")
    )
    return Plot("hit_rate", "Task hits over decisions, cycle by cycle", alt, figure)


def _latency(run: RunRecord) -> Plot | None:
    groups = {kind: run.of_kind(kind) for kind in ("hit", "miss", "refresh")}
    groups = {kind: passages for kind, passages in groups.items() if passages}
    if not groups:
        return None
    figure, axis = plt.subplots(figsize=(_WIDTH, 1.0 + 0.5 * len(groups)))
    parts: list[str] = []
    for row, (kind, passages) in enumerate(groups.items()):
        left = 0.0
        for part, color in zip(PARTS, _PART_COLORS, strict=True):
            width = float(np.mean([passage.part_ms(part) for passage in passages]))
            axis.barh(row, width, 0.62, left=left, color=color, label=part if row == 0 else None)
            left += width
        worst = max(passage.total_ms for passage in passages)
        label = "longest" if row == 0 else None
        axis.plot([worst], [row], "|", color=INK, markersize=14, markeredgewidth=1.6, label=label)
        parts.append(f"{kind}: {left:.1f} ms on average, {worst:.1f} ms at most")
    axis.set_yticks(range(len(groups)), [f"{kind} ({len(p)})" for kind, p in groups.items()])
    axis.invert_yaxis()
    axis.set(xlabel="camera or joint sample to first command, mean of each part [ms]")
    _deadline(axis)
    axis.legend(ncols=5, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2)
    return Plot("latency", "Where the time goes", f"Stacked bars. {'; '.join(parts)}.", figure)


def _tails(run: RunRecord) -> Plot | None:
    groups = {kind: [p.total_ms for p in run.of_kind(kind)] for kind in _KIND_COLORS}  # type: ignore[arg-type]
    groups = {kind: values for kind, values in groups.items() if values}
    if not groups:
        return None
    figure, axis = plt.subplots(figsize=(_WIDTH, 2.6))
    for kind, values in groups.items():
        _share_above(axis, values, f"{kind} ({len(values)})", _KIND_COLORS[kind])
    axis.set(xlabel="camera or joint sample to first command [ms]")
    axis.set_xlim(left=0.0)
    _deadline(axis)
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    longest = ", ".join(f"{kind} {max(values):.1f} ms" for kind, values in groups.items())
    alt = f"Share of the passages that took longer than a time, falling steps; longest: {longest}."
    return Plot("latency_tails", "Tails of the latency", alt, figure)


def _image_age(run: RunRecord) -> Plot | None:
    ages = [age for age in run.image_ages_ms if np.isfinite(age)]
    if not ages:
        return None
    figure, axis = plt.subplots(figsize=(_WIDTH, 2.2))
    _share_above(axis, ages, "", BLUE)
    axis.set(xlabel="age of the newest image when a command from it went out [ms]")
    axis.set_xlim(left=0.0)
    alt = (
        f"Share of {len(ages)} chunks whose newest image was older than a time, falling steps; "
        f"median {np.median(ages):.1f} ms, oldest {max(ages):.1f} ms."
    )
    return Plot("image_age", "Age of the images", alt, figure)


def _target_error(run: RunRecord) -> Plot | None:
    found = [(c.index, [e for e in c.target_errors if np.isfinite(e)]) for c in run.cycles]
    looked = [(index, errors) for index, errors in found if errors]
    if not looked:
        return None
    figure, axis = plt.subplots(figsize=(_WIDTH, 2.4))
    for index, errors in looked:
        x = index + np.linspace(-0.25, 0.25, len(errors))
        axis.plot(x, 1e3 * np.array(errors), ".", color=BLUE, markersize=3, alpha=0.7)
    touches = [(c.index, 1e3 * c.touch_error) for c in run.cycles if np.isfinite(c.touch_error)]
    if touches:
        axis.plot(*zip(*touches, strict=True), "D", color=ORANGE, markersize=4, label="touch")
        axis.plot([], [], ".", color=BLUE, label="look (in the order of the images)")
        axis.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
    every = [error * 1e3 for _, errors in looked for error in errors]
    if max(every) > 0.6 * _TARGET_LIMIT_MM:
        axis.axhline(_TARGET_LIMIT_MM, color=GRAY, linestyle=":", linewidth=1.0)
    axis.set(xlabel="cycle", ylabel="off the true center [mm]")
    axis.set_ylim(bottom=0.0)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlim(0.3, len(run.cycles) + 0.7)
    alt = (
        f"Distance of {len(every)} looks from the true center over the cycles: median "
        f"{np.median(every):.2f} mm, largest {max(every):.2f} mm."
    )
    return Plot("target_error", "Error of the seen target", alt, figure)


def _stages(report: dict[str, Any]) -> Plot | None:
    durations = {
        name: figures for name, figures in report["stage_s"].items() if figures["p50"] is not None
    }
    if not durations:
        return None
    figure, axis = plt.subplots(figsize=(_WIDTH, 0.8 + 0.26 * len(durations)))
    for row, (name, figures) in enumerate(durations.items()):
        axis.barh(row, figures["p50"], 0.62, color=BLUE)
        axis.plot([figures["p50"], figures["max"]], [row, row], color=GRAY, linewidth=1.0)
        axis.plot([figures["max"]], [row], "|", color=INK, markersize=8, markeredgewidth=1.4)
        rate = report["stage_rate"][name]
        text = f"{rate['events']}/{rate['trials']}"
        axis.annotate(
            text, (figures["max"], row), (5, 0), textcoords="offset points", va="center",
            color=MUTED, fontsize=8,
        )  # fmt: skip
    axis.set_yticks(range(len(durations)), list(durations))
    axis.invert_yaxis()
    axis.margins(x=0.1)
    axis.set(xlabel="time [s]: median (bar), longest (line); completed / begun")
    alt = "Bars, one a stage: " + "; ".join(
        f"{name} {figures['p50']:.2f} s, at most {figures['max']:.2f} s"
        for name, figures in durations.items()
    )
    return Plot("stages", "Duration of each stage", f"{alt}.", figure)


def _target(run: RunRecord) -> Plot | None:
    if run.frame is None:
        return None
    figure, axis = plt.subplots(figsize=(5.2, 4.0))
    axis.imshow(run.frame.image)
    mark = "#17f9ff"
    axis.add_patch(Circle(run.frame.pixel, run.frame.radius, fill=False, color=mark, linewidth=1.5))
    axis.plot(*run.frame.pixel, "+", color=mark, markersize=12)
    axis.set_axis_off()
    alt = "Image of the camera over the table, a circle drawn around the target that was decoded."
    return Plot("target", "Camera frame with the decoded target", alt, figure)


def _share_above(axis: Any, values: Sequence[float], label: str, color: str) -> None:
    """Draw which share of the values lies above each of them, on a logarithmic axis."""
    data = np.sort(np.asarray(values, float))
    share = 1.0 - np.arange(len(data)) / len(data)
    if len(data) > _STEPS:  # even on a logarithmic axis, the last ones all
        ranks = len(data) - np.geomspace(1, len(data), _STEPS).astype(int)
        data, share = data[np.unique(ranks)], share[np.unique(ranks)]
    axis.step(data, share, where="pre", color=color, label=label)
    axis.plot(data[-1:], share[-1:], "o", color=color, markersize=3.5)
    axis.set(yscale="log", ylabel="share above")
    axis.grid(visible=True)


def _deadline(axis: Any) -> None:
    axis.axvline(_DEADLINE_MS, color=GRAY, linestyle=":", linewidth=1.2)
