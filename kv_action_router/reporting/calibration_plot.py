"""The curves behind calibrated thresholds, as a PNG file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt

from kv_action_router.reporting.calibration import LITERATURE, Calibration

_HITS, _FALSE, _LINE = "#2a7f9e", "#d1603d", "#555555"


def write_plot(
    results: Sequence[Calibration], in_force: Mapping[str, float], risk: float, path: Path
) -> None:
    """Draw hit rate and share of false hits over the threshold, a row a scene."""
    figure, rows = plt.subplots(
        len(results), 1, figsize=(7.5, 3.2 * len(results)), squeeze=False, layout="constrained"
    )
    for axis, result in zip(rows[:, 0], results, strict=True):
        levels = result.curve
        x = [level.threshold for level in levels]
        axis.plot(x, [level.hit_rate for level in levels], color=_HITS, label="hit rate")
        axis.fill_between(
            x,
            [level.hit_rate_low for level in levels],
            [level.hit_rate_high for level in levels],
            color=_HITS,
            alpha=0.2,
        )
        axis.set(xlabel="threshold", ylabel="hits / decisions", ylim=(0.0, 1.05))
        axis.set_title(f"{result.scene}: {result.reason}", fontsize=9)
        share = axis.twinx()
        share.plot(x, [level.false_rate for level in levels], color=_FALSE, label="false hits")
        share.fill_between(
            x,
            [level.false_rate for level in levels],
            [level.false_rate_bound for level in levels],
            color=_FALSE,
            alpha=0.2,
        )
        share.axhline(risk, color=_FALSE, linestyle=":", linewidth=1.0)
        share.set_ylabel("false hits / hits")
        share.set_ylim(0.0, max([5.0 * risk, *(level.false_rate_bound for level in levels)]))
        marks = [(value, "--", f"literature {value:g}") for value in LITERATURE]
        marks.append((in_force[result.scene], "-.", f"in force {in_force[result.scene]:g}"))
        if result.recommended is not None:
            value = result.recommended.threshold
            marks.append((value, "-", f"recommended {value:.4f}"))
        for value, style, label in marks:
            axis.axvline(value, color=_LINE, linestyle=style, linewidth=1.0, label=label)
        axis.legend(fontsize=7, loc="lower left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
