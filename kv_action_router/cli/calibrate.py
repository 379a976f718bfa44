"""``kv_router calibrate``: thresholds per scene from the cache manager's decision log."""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from kv_action_router.caching.decision_log import LoggedDecision, read_log
from kv_action_router.errors import InputError
from kv_action_router.reporting.calibration import Calibration, Level, Trial, calibrate


def add_verb(verbs: Any) -> None:
    """Declare the verb."""
    parser = verbs.add_parser("calibrate", help="thresholds per scene from a decision log")
    parser.add_argument("log", type=Path, help="decision log (parameter decision_log)")
    parser.add_argument("--risk", type=float, default=0.01, help="share of false hits accepted")
    parser.add_argument("--confidence", type=float, default=0.95, help="of the exact bounds")
    parser.add_argument("--plot", type=Path, help="write the curves to this PNG file")
    parser.add_argument("--write", type=Path, help="write the thresholds as a parameter file")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=lambda options: run(options, Console()))


def run(options: argparse.Namespace, console: Console) -> int:
    """Calibrate; return 0 when every scene has a threshold, else 1.

    Raises:
        InputError: the log cannot be used, an argument is out of range, a file cannot be written.
    """
    decisions, bad = read_log(options.log)
    if not decisions:
        raise InputError("log", "decisions of a cache manager", f"{options.log} without any")
    by_scene: dict[str, list[Trial]] = defaultdict(list)
    for decision in decisions:
        by_scene[decision.scene].append(trial_of(decision))
    results = [
        calibrate(scene, trials, options.risk, options.confidence)
        for scene, trials in sorted(by_scene.items())
    ]
    in_force = {decision.scene: decision.threshold for decision in decisions}
    if options.json:
        console.print_json(json.dumps(_plain(results, in_force, bad)))
    else:
        _print(results, in_force, bad, console)
    try:
        if options.plot is not None:
            from kv_action_router.reporting.calibration_plot import write_plot

            write_plot(results, in_force, options.risk, options.plot)
        if options.write is not None:
            _write(results, in_force, options.write)
    except OSError as error:
        raise InputError("plot, write", "files that can be written", str(error)) from error
    return 0 if all(result.recommended for result in results) else 1


def trial_of(decision: LoggedDecision) -> Trial:
    """Return a logged decision as calibration sees it."""
    executed = decision.hit and decision.outcome in ("success", "failure")
    good = executed and decision.outcome == "success" and not decision.false_hit
    return Trial(decision.similarity, executed, good)


def _print(
    results: list[Calibration], in_force: dict[str, float], bad: int, console: Console
) -> None:
    table = Table("scene", "threshold", "hits", "false", "at most", "hit rate", "interval")
    for result in results:
        rows = [("recommended", result.recommended)]
        rows += [(f"literature {level.threshold:g}", level) for level in result.literature]
        table.add_row(f"[bold]{result.scene}[/]", f"{in_force[result.scene]:g} in force")
        for name, level in rows:
            table.add_row(f"  {name}", *_cells(level))
    console.print(table)
    for result in results:
        console.print(f"{result.scene}: {result.reason}")
    if bad:
        console.print(f"{bad} lines of the log are no decisions or outcomes, left out")


def _cells(level: Level | None) -> tuple[str, ...]:
    if level is None:
        return ("none",)
    return (
        f"{level.threshold:.4f}",
        str(level.hits),
        str(level.false_hits),
        "-" if math.isnan(level.false_rate_bound) else f"{level.false_rate_bound:.4f}",
        f"{level.hit_rate:.3f}",
        f"{level.hit_rate_low:.3f} to {level.hit_rate_high:.3f}",
    )


def _plain(results: list[Calibration], in_force: dict[str, float], bad: int) -> dict[str, Any]:
    scenes = {r.scene: {**asdict(r), "in_force": in_force[r.scene]} for r in results}
    plain: dict[str, Any] = json.loads(
        json.dumps({"scenes": scenes, "unreadable_lines": bad}),
        parse_constant=lambda _: None,  # NaN = not measured
    )
    return plain


def _write(results: list[Calibration], in_force: dict[str, float], path: Path) -> None:
    """Write thresholds as parameters of the cache manager; in force stays what was, else."""
    found = [
        (r.scene, r.recommended.threshold if r.recommended else in_force[r.scene]) for r in results
    ]
    parameters = {
        "scene_names": [scene for scene, _ in found],
        # rounded up: never below what the log vouches for
        "scene_thresholds": [math.ceil(threshold * 1e6) / 1e6 for _, threshold in found],
    }
    text = yaml.safe_dump({"/**": {"cache_manager": {"ros__parameters": parameters}}})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# Thresholds calibrated from a decision log.\n{text}", encoding="utf-8")
