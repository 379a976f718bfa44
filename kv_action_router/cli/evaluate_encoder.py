"""Errors of a perception network on frames that no training has seen, beside the segmentation.

    .venv/bin/python -P -m kv_action_router.cli.evaluate_encoder [--cell touch] [--check]
                                                                          (make evaluate)

Renders random scenes and the simulation's own, lets both look at the same frames in turn, and
writes ``build/reports/encoder.json``. ``--check`` fails above 3 mm or 3 degrees at the 95th
percentile, on estimates of nothing, and where a figure is more than a tenth worse than the model
card says.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from kv_action_router.encoding.backend import SEGMENTATION
from kv_action_router.encoding.network.checkpoint import Checkpoint
from kv_action_router.learning import card
from kv_action_router.learning.cells import CELLS, Cell, cell
from kv_action_router.learning.evaluation import backend, compare, likeness
from kv_action_router.learning.frames import FrameMaker
from kv_action_router.reporting.benchmark import conclude
from kv_action_router.reporting.bounds import Bound, at

ERROR_MM, HEADING_DEGREES = 3.0, 3.0  # at the 95th percentile
SCENES = 120
CARDS = Path("docs/model_cards")
_WORSE = 1.1  # than the model card
_LEAST = 0.1  # [mm] below that a difference says nothing
_FALSE_SHARE = 0.01  # of frames without a visible target


def evaluate(target: Cell, checkpoint: str, engine: str, scenes: int) -> dict[str, Any]:
    """Return the report of a checkpoint, and of the segmentation on the same frames."""
    cv2.setNumThreads(1)
    maker = FrameMaker(target)
    network = backend(engine, checkpoint, target)
    lookers = {"network": network, SEGMENTATION: backend(SEGMENTATION, "", target)}
    try:
        with Progress(transient=True) as progress:
            bar = progress.add_task("held-out scenes", total=scenes)
            report = compare(maker, target, lookers, scenes, lambda _: progress.advance(bar))
        report["likeness"] = likeness(maker, network)
    finally:
        maker.close()
    times = {name: report["plain"][name]["cpu_ms"]["p50"] for name in lookers}
    report["time_over_segmentation"] = times["network"] / times[SEGMENTATION]
    return report


def bounds(shipped_card: Mapping[str, Any], cell_name: str, fold: int) -> list[Bound]:
    """Return what a report must keep, given the card that was shipped.

    Only in the cell that the card speaks of is a report compared with it.
    """
    error = at("random", "network", "error_mm", "p95")
    made = [
        Bound("error p95 [mm]", error, "<=", ERROR_MM),
        Bound("error p95 on the own scene [mm]", at("plain", "network", "error_mm", "p95"),
              "<=", ERROR_MM),
        Bound("estimates of nothing [share]", _false_share, "<=", _FALSE_SHARE),
    ]  # fmt: skip
    same = shipped_card["training"].get("cell") == cell_name
    told = shipped_card.get("held_out") if same else None
    if told:
        shipped = max(_LEAST, told["random"]["network"]["error_mm"]["p95"])
        made.append(Bound("error p95 against the model card [mm]", error, "<=", _WORSE * shipped))
    if fold:
        heading = at("random", "network", "heading_degrees", "p95")
        made.append(Bound("heading p95 [degrees]", heading, "<=", HEADING_DEGREES))
        if told:
            shipped = told["random"]["network"]["heading_degrees"]["p95"]
            name = "heading p95 against the model card [degrees]"
            made.append(Bound(name, heading, "<=", _WORSE * shipped))
    return made


def table(report: Mapping[str, Any]) -> Table:
    """Return the figures as a table."""
    shown = Table(
        "perception", "frames", "estimates", "error p50 [mm]", "p95", "max", "heading p95",
        "guesses", "of nothing", "CPU p50 [ms]",
    )  # fmt: skip
    for where in ("random", "plain"):
        for who, figures in report[where].items():
            error = figures["error_mm"]
            cells = [error["p50"], error["p95"], error["max"], figures["heading_degrees"]["p95"]]
            shown.add_row(
                f"{who}, {where} scene",
                str(figures["frames"]),
                str(figures["estimates"]),
                *("-" if value is None else f"{value:.2f}" for value in cells),
                str(figures["guesses"]),
                f"{figures['false']} of {figures['nothing_to_see']}",
                f"{figures['cpu_ms']['p50']:.2f}",
            )
    return shown


def _false_share(report: dict[str, Any]) -> float:
    figures = report["random"]["network"]
    return float(figures["false"] / max(1, figures["nothing_to_see"]))


def main(arguments: list[str] | None = None) -> int:
    """Evaluate and report; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cell", default="touch", choices=tuple(CELLS))
    parser.add_argument("--checkpoint", default="", help="a folder, or a shipped one (the cell's)")
    parser.add_argument("--engine", default="onnx", choices=("onnx", "torch"))
    parser.add_argument("--scenes", type=int, default=SCENES, help="random scenes, 4 frames each")
    parser.add_argument("--check", action="store_true", help="fail where a figure falls short")
    parser.add_argument("--write-card", action="store_true", help="take the figures over into it")
    parser.add_argument("--output", type=Path, default=Path("build/reports/encoder.json"))
    options = parser.parse_args(arguments)
    console = Console(width=132)
    target = cell(options.cell)
    checkpoint = Checkpoint.load(options.checkpoint or target.checkpoint)
    report = evaluate(target, str(checkpoint.folder), options.engine, options.scenes)
    report["encoder_id"] = checkpoint.encoder_id
    console.print(table(report))
    console.print(f"time over the segmentation's: {report['time_over_segmentation']:.2f}")
    if options.write_card:
        told = {**checkpoint.card, "held_out": report}
        told["training"] = {**checkpoint.card["training"], "cell": target.name}
        card.write_json(checkpoint.folder, told)
        card.write(CARDS / f"{checkpoint.target}.md", told, checkpoint.encoder_id)
    limits = bounds(checkpoint.card, target.name, checkpoint.numbers.fold)
    return conclude(report, limits, options.output, console, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
