"""All five stages around the simulated arm in one process, without ROS: what the pipeline does.

    .venv/bin/python benchmarks/episode.py [--cycles 20] [--seed 1] [--check]

Simulated time, rendered images. Writes ``build/reports/episode.json``; with ``--check`` it exits
with 1 and names each figure that falls short.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("MUJOCO_GL", "egl")

from rich.console import Console
from rich.table import Table

from harness.setting import setting
from kv_action_router.reporting.benchmark import conclude
from kv_action_router.reporting.bounds import Bound, at
from kv_action_router.reporting.statistics import lower_confidence_bound, quantiles
from kv_action_router.simulation.episode import Cycle, Episode, EpisodeConfig
from kv_action_router.simulation.sight import rendered_images

BOUNDS = (
    Bound("failed touches", at("failed"), "==", 0),
    Bound("touch error max [mm]", at("touch_error_mm", "max"), "<=", 5.0),
    Bound("peak force [N]", at("peak_force_n"), "<=", 30.0),
    Bound("tracking error [mrad]", at("tracking_error_mrad"), "<=", 10.0),
    Bound("task hits over decisions, last half", at("late_hit_rate"), ">=", 0.8),
    Bound("false hits", at("false_hits"), "==", 0),
)


def summarize(cycles: list[Cycle]) -> dict[str, Any]:
    """Return the figures of a run."""
    late = cycles[len(cycles) // 2 :]
    succeeded = sum(cycle.success for cycle in cycles)
    return {
        "cycles": len(cycles),
        "failed": len(cycles) - succeeded,
        "success_lower_bound_95": lower_confidence_bound(succeeded, len(cycles)),
        "decisions": sum(cycle.decisions for cycle in cycles),
        "task_hits": sum(cycle.task_hits for cycle in cycles),
        "behavior_hits": sum(cycle.behavior_hits for cycle in cycles),
        "false_hits": sum(cycle.false_hits for cycle in cycles),
        "late_hit_rate": sum(cycle.task_hits for cycle in late)
        / max(1, sum(cycle.decisions for cycle in late)),
        "touch_error_mm": quantiles(
            [cycle.touch_error * 1e3 for cycle in cycles], p50=0.5, p95=0.95, max=1.0
        ),
        "peak_force_n": max(cycle.peak_force for cycle in cycles),
        "tracking_error_mrad": max(cycle.tracking_error for cycle in cycles) * 1e3,
        "longest_cycle_s": max(cycle.duration for cycle in cycles),
        "reasons": [cycle.reason for cycle in cycles if not cycle.success],
    }


def main() -> int:
    """Run the cycles, print and write the figures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("build/reports/episode.json"))
    options = parser.parse_args()
    config = EpisodeConfig()
    config = dataclasses.replace(
        config, simulation=dataclasses.replace(config.simulation, seed=options.seed)
    )
    with Episode(rendered_images, config) as episode:
        cycles = [episode.touch() for _ in range(options.cycles)]
    figures = summarize(cycles)
    table = Table("figure", "value", title=f"{options.cycles} cycles, seed {options.seed}")
    for name, value in figures.items():
        table.add_row(name, json.dumps(value))
    console = Console()
    console.print(table)
    figures["setting"] = setting(cycles=options.cycles, seed=options.seed)
    return conclude(figures, BOUNDS, options.output, console, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
