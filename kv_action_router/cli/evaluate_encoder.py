"""Errors of a perception network on frames that no training has seen, beside the segmentation.

    .venv/bin/python -P -m kv_action_router.cli.evaluate_encoder [--target disc] [--check]
                                                                          (make evaluate)

Renders random scenes of each cell that has the target, and the cell's own scene, lets both look at
the same frames in turn, and writes ``build/reports/encoder.json``. ``--check`` fails above 3 mm or
3 degrees at the 95th percentile, on estimates of nothing, and where a figure is more than a tenth
worse than the model card says.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from kv_action_router.encoding.backend import SEGMENTATION
from kv_action_router.encoding.network.checkpoint import Checkpoint
from kv_action_router.learning import card
from kv_action_router.learning.cells import Cell, cells_of
from kv_action_router.learning.evaluation import LIKENESS_STEPS, backend, compare, likeness
from kv_action_router.learning.frames import FrameMaker
from kv_action_router.reporting.benchmark import conclude
from kv_action_router.reporting.bounds import Bound, at

ERROR_MM, DEGREES = 3.0, 3.0  # at the 95th percentile
SCENES = 120  # random ones of each cell
CARDS = Path("docs/model_cards")
_WORSE = 1.1  # than the model card
_LEAST_MM, _LEAST_DEGREES = 0.2, 0.2  # below that a difference says nothing
_FALSE_SHARE = 0.01  # of frames without a visible target
_LIKENESS = "likeness"  # what is compared beside the cells


def evaluate(cells: Sequence[Cell], checkpoint: str, engine: str, scenes: int) -> dict[str, Any]:
    """Return the report of a checkpoint, and of the segmentation on the same frames."""
    cv2.setNumThreads(1)
    report: dict[str, Any] = {"cells": {}}
    with Progress(transient=True) as progress:
        bar = progress.add_task("held-out scenes", total=scenes * len(cells) + LIKENESS_STEPS)

        def step(_: int) -> None:
            progress.advance(bar)

        for number, cell in enumerate(cells):
            maker = FrameMaker(cell)  # one at a time: a thread draws with one of them
            network = backend(engine, checkpoint, cell)
            lookers = {"network": network, SEGMENTATION: backend(SEGMENTATION, "", cell)}
            try:
                report["cells"][cell.name] = compare(maker, cell, lookers, scenes, step)
                if number == 0:
                    report[_LIKENESS] = likeness(maker, network, step)
            finally:
                maker.close()
    first = report["cells"][cells[0].name]["plain"]
    times = {name: first[name]["cpu_ms"]["p50"] for name in ("network", SEGMENTATION)}
    report["time_over_segmentation"] = times["network"] / times[SEGMENTATION]
    report["of_nothing"] = _false_share(report)
    return report


def bounds(report: Mapping[str, Any], shipped: Mapping[str, Any], fold: int) -> list[Bound]:
    """Return what a report must keep, given the card that was shipped.

    Args:
        report: whose cells are judged.
        shipped: the card; figures of cells that it does not tell of are held against nothing.
        fold: of the target's heading; 0 = it has none.
    """
    made = [Bound("estimates of nothing [share]", at("of_nothing"), "<=", _FALSE_SHARE)]
    figures = [("error_mm", "error p95 [mm]", ERROR_MM, _LEAST_MM),
               ("axis_degrees", "axis p95 [degrees]", DEGREES, _LEAST_DEGREES)]  # fmt: skip
    if fold:
        figures.append(("heading_degrees", "heading p95 [degrees]", DEGREES, _LEAST_DEGREES))
    told_cells = (shipped.get("held_out") or {}).get("cells", {})
    for cell in report["cells"]:
        for scene in ("random", "plain"):
            for key, name, limit, least in figures:
                value = at("cells", cell, scene, "network", key, "p95")
                made.append(Bound(f"{name}, {scene} scenes, {cell}", value, "<=", limit))
                if cell in told_cells:
                    told = told_cells[cell][scene]["network"][key]["p95"] or math.inf
                    title = f"{name}, {scene} scenes, {cell}, against the model card"
                    made.append(Bound(title, value, "<=", _WORSE * max(told, least)))
        if cell in told_cells:
            seen = float(told_cells[cell]["random"]["network"]["estimates"])
            value = at("cells", cell, "random", "network", "estimates")
            title = f"estimates, random scenes, {cell}, against the model card"
            made.append(Bound(title, value, ">=", seen / _WORSE))
    return made


def table(report: Mapping[str, Any]) -> Table:
    """Return the figures as a table."""
    shown = Table(
        "cell", "scenes", "perception", "frames", "estimates", "error p50 [mm]", "p95", "max",
        "axis p50 [deg]", "p95", "guesses", "of nothing", "CPU p50 [ms]",
    )  # fmt: skip
    for cell, kinds in report["cells"].items():
        for where, both in kinds.items():
            for who, figures in both.items():
                error, axis = figures["error_mm"], figures["axis_degrees"]
                cells = [error["p50"], error["p95"], error["max"], axis["p50"], axis["p95"]]
                shown.add_row(
                    cell,
                    where,
                    who,
                    str(figures["frames"]),
                    str(figures["estimates"]),
                    *("-" if value is None else f"{value:.2f}" for value in cells),
                    str(figures["guesses"]),
                    f"{figures['false']} of {figures['nothing_to_see']}",
                    f"{figures['cpu_ms']['p50']:.2f}",
                )
    return shown


def _false_share(report: Mapping[str, Any]) -> float:
    """Return the share of all cells' frames without a visible target that got an estimate."""
    of_network = [kinds["random"]["network"] for kinds in report["cells"].values()]
    nothing = sum(figures["nothing_to_see"] for figures in of_network)
    return float(sum(figures["false"] for figures in of_network) / max(1, nothing))


def main(arguments: list[str] | None = None) -> int:
    """Evaluate and report; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="disc", help="that the network was trained to see")
    parser.add_argument("--checkpoint", default="", help="a folder; default: the shipped one")
    parser.add_argument("--engine", default="onnx", choices=("onnx", "torch"))
    parser.add_argument("--scenes", type=int, default=SCENES, help="of each cell, 4 frames each")
    parser.add_argument("--check", action="store_true", help="fail where a figure falls short")
    parser.add_argument("--write-card", action="store_true", help="take the figures over into it")
    parser.add_argument("--output", type=Path, default=Path("build/reports/encoder.json"))
    options = parser.parse_args(arguments)
    console = Console(width=132)
    cells = cells_of(options.target)
    shipped = Checkpoint.load(options.target)
    checkpoint = Checkpoint.load(options.checkpoint or options.target)
    report = evaluate(cells, str(checkpoint.folder), options.engine, options.scenes)
    report["encoder_id"] = checkpoint.encoder_id
    console.print(table(report))
    console.print(f"time over the segmentation's: {report['time_over_segmentation']:.2f}")
    console.print(card.likeness_table(report[_LIKENESS]), markup=False)
    if options.write_card:
        told = {**checkpoint.card, "held_out": report}
        card.write_json(checkpoint.folder, told)
        card.write(CARDS / f"{checkpoint.target}.md", told, checkpoint.encoder_id)
    limits = bounds(report, shipped.card, checkpoint.numbers.fold)
    return conclude(report, limits, options.output, console, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
