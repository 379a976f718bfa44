"""Plots of a run, as PNG files."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from kv_action_router.reporting.records import PARTS, RunRecord

_HIT, _MISS = "#2a7f9e", "#d1603d"
_PART_COLORS = ("#264653", "#2a9d8f", "#e9c46a", "#e76f51")


def write_all(run: RunRecord, folder: Path) -> list[Path]:
    """Write every plot that the run has data for; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        "hit_rate.png": _hit_rate(run),
        "latency.png": _latency(run),
        "tracking.png": _tracking(run),
        "target.png": _target(run),
    }
    files = []
    for name, figure in figures.items():
        if figure is None:
            continue
        figure.savefig(folder / name, dpi=110, bbox_inches="tight")
        plt.close(figure)
        files.append(folder / name)
    return files


def _hit_rate(run: RunRecord) -> Figure | None:
    if not run.cycles:
        return None
    figure, axis = plt.subplots(figsize=(7.0, 3.0))
    index = [cycle.index for cycle in run.cycles]
    rates = [cycle.hit_rate for cycle in run.cycles]
    axis.bar(index, rates, color=[_HIT if cycle.succeeded else _MISS for cycle in run.cycles])
    axis.set(xlabel="cycle", ylabel="task hits / decisions", ylim=(0.0, 1.05))
    axis.set_title("Hit rate from an empty cache")
    return figure


def _latency(run: RunRecord) -> Figure | None:
    groups = {kind: run.of_kind(kind) for kind in ("hit", "miss", "refresh")}
    groups = {kind: passages for kind, passages in groups.items() if passages}
    if not groups:
        return None
    figure, axis = plt.subplots(figsize=(7.0, 1.2 + 0.7 * len(groups)))
    for row, passages in enumerate(groups.values()):
        left = 0.0
        for part, color in zip(PARTS, _PART_COLORS, strict=True):
            width = float(np.mean([passage.part_ms(part) for passage in passages]))
            axis.barh(row, width, left=left, color=color, label=part if row == 0 else None)
            left += width
        worst = max(passage.total_ms for passage in passages)
        axis.plot([worst], [row], "k|", markersize=14, label="max" if row == 0 else None)
    axis.set_yticks(range(len(groups)), [f"{kind} ({len(p)})" for kind, p in groups.items()])
    axis.set(xlabel="camera or joint sample to first command, mean of each part [ms]")
    axis.axvline(15.0, color="0.6", linestyle=":", linewidth=1.0)
    axis.legend(ncols=5, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 1.28))
    return figure


def _tracking(run: RunRecord) -> Figure | None:
    if len(run.tracking) < 2:
        return None
    time = np.array([sample.time for sample in run.tracking])
    time -= time[0]
    setpoint = np.array([sample.setpoint for sample in run.tracking])
    measured = np.array([sample.measured for sample in run.tracking])
    figure, (upper, lower) = plt.subplots(
        2, 1, figsize=(7.0, 4.6), sharex=True, height_ratios=(2, 1)
    )
    for joint in range(setpoint.shape[1]):
        name = run.joint_names[joint] if joint < len(run.joint_names) else str(joint)
        (line,) = upper.plot(time, measured[:, joint], label=name.removesuffix("_joint"))
        upper.plot(time, setpoint[:, joint], linestyle="--", color=line.get_color(), linewidth=0.8)
        lower.plot(time, 1e3 * (setpoint - measured)[:, joint], color=line.get_color())
    upper.set(ylabel="position [rad]", title="One cycle: measured (solid), set-point (dashed)")
    upper.legend(fontsize=7, ncols=3)
    lower.set(xlabel="time [s]", ylabel="error [mrad]")
    return figure


def _target(run: RunRecord) -> Figure | None:
    if run.frame is None:
        return None
    figure, axis = plt.subplots(figsize=(5.2, 4.0))
    axis.imshow(run.frame.image)
    axis.add_patch(
        Circle(run.frame.pixel, run.frame.radius, fill=False, color="#17f9ff", linewidth=1.5)
    )
    axis.plot(*run.frame.pixel, "+", color="#17f9ff", markersize=12)
    axis.set_axis_off()
    axis.set_title("Camera frame with the decoded target")
    return figure
