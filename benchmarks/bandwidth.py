"""What the cache gains while somebody else takes the memory bus, against a quiet machine.

    .venv/bin/python benchmarks/bandwidth.py [--cycles 500] [--check]

The pipeline in processes of their own (see ``pipeline.py``), and the end-to-end policies, quiet and
beside a process that copies 256 MB without a pause. The gain is the time of a replan, or of a
policy's answer, over that of a hit. Writes ``build/reports/bench/bandwidth.json``; with ``--check``
it exits with 1 and names each figure that falls short.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.table import Table

from harness.console import wide_console
from harness.driven import measure
from harness.end_to_end import POLICIES, EndToEnd
from harness.load import busy_memory
from harness.phases import WARM_UP, Phase
from harness.pipeline_bounds import measured
from harness.setting import ros_setting, setting
from kv_action_router.reporting.benchmark import conclude
from kv_action_router.reporting.bounds import Bound
from kv_action_router.ros.arguments import Arguments

HOGS = 1
STATES = ("quiet", "hog")
BOUNDS = tuple(
    Bound(f"{state}: replan over hit", measured("gain", state, "replan"), ">=", 1.0)
    for state in STATES
)


def phases(cycles: int) -> list[Phase]:
    """Return hits and misses of both states."""
    return [
        Phase(
            f"{kind}_{state}",
            kind,
            cycles,
            new_subtasks=kind == "miss",
            busy_memory=HOGS if state == "hog" else 0,
        )
        for state in STATES
        for kind in ("hit", "miss")
    ]


def gains(pipeline: dict[str, Any], policies: dict[str, Any]) -> dict[str, Any]:
    """Return by state: means over the mean of a hit; None where something was not measured."""
    found: dict[str, Any] = {}
    for state in STATES:
        hit = measured(f"hit_{state}", "total", "mean")(pipeline)
        others = {"replan": measured(f"miss_{state}", "total", "mean")(pipeline)}
        others |= {name: measured(state, name, "ms", "mean")(policies) for name in POLICIES}
        found[state] = {
            name: None if value is None or not hit else value / hit
            for name, value in others.items()
        }
    return found


def show(report: dict[str, Any]) -> Table:
    """Return a table with a row for each gain."""
    table = Table("over a hit", *STATES)
    for name in report["gain"]["quiet"]:
        values = (report["gain"][state][name] for state in STATES)
        table.add_row(name, *("-" if value is None else f"{value:.2f}" for value in values))
    for kind in ("hit", "miss"):
        means = (measured(f"{kind}_{s}", "total", "mean")(report["pipeline"]) for s in STATES)
        shown = ("-" if mean is None else f"{mean:.2f}" for mean in means)
        table.add_row(f"{kind}: mean [ms]".replace("[", r"\["), *shown)
    return table


def main() -> int:
    """Measure, print and write the figures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=500, help="of each kind")
    parser.add_argument("--frames", type=int, default=60, help="of each end-to-end policy")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("build/reports/bench/bandwidth.json"))
    options = parser.parse_args()
    console = wide_console()
    report: dict[str, Any] = {
        "setting": setting(**ros_setting(), cycles=options.cycles, warm_up=WARM_UP, hogs=HOGS)
    }
    with console.status("pipeline, quiet and beside a hog"):
        plan = phases(options.cycles)
        report["pipeline"] = measure(plan, options.output.with_suffix(""), Arguments())
    policies: dict[str, Any] = {}
    for state in STATES:
        with console.status(f"end-to-end policies, {state}"):
            end_to_end = EndToEnd(options.frames)
            with busy_memory(HOGS if state == "hog" else 0):
                end_to_end.measure()
            policies[state] = end_to_end.figures()
    report["end_to_end"] = policies
    report["gain"] = gains(report["pipeline"], policies)
    console.print(show(report))
    return conclude(report, BOUNDS, options.output, console, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
