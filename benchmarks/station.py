"""A station's cycle in one process, without ROS: all its tasks one after the other, over and over.

    .venv/bin/python benchmarks/station.py [--station station] [--cycles 10] [--check]

Simulated time, rendered images; the work stands somewhere else in each cycle. Writes
``build/reports/station.json``; with ``--check`` it exits with 1 and names each figure that falls
short.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("MUJOCO_GL", "egl")

from rich.console import Console
from rich.table import Table

from harness.setting import setting
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.reporting.benchmark import conclude
from kv_action_router.reporting.bounds import Bound, at
from kv_action_router.reporting.statistics import quantiles, share_of
from kv_action_router.simulation.config import cell_of
from kv_action_router.simulation.connector import HUE
from kv_action_router.simulation.episode import Cycle, Episode, EpisodeConfig
from kv_action_router.simulation.plant import CONNECTOR
from kv_action_router.simulation.sight import rendered_images
from kv_action_router.tasks.station import Station, load_station

BOUNDS = (
    Bound("failed cycles", at("failed"), "==", 0),
    Bound("force in contact [N]", at("contact_force_n"), "<=", 30.0),
    Bound("task hits over decisions, last half", at("late_hit_rate"), ">=", 0.8),
    Bound("false hits", at("false_hits"), "==", 0),
    Bound("plugs that have not latched", at("not_latched"), "==", 0),
)


def run(station: Station, cycles: int, seed: int, console: Console) -> list[list[Cycle]]:
    """Return what came of each task of each cycle; a cycle ends with a task that failed.

    A stop ends the run: nobody is there to release it.
    """
    first, *others = (task.name for task in station.tasks)
    config = EpisodeConfig(
        task=first,
        further_tasks=tuple(others),
        simulation=cell_of(station.cell, seed=seed),
        encoding=EncoderConfig(other_targets=(CONNECTOR,), other_target_hues=(HUE,)),
    )
    runs: list[list[Cycle]] = []
    with Episode(rendered_images, config) as episode:
        for index in range(1, cycles + 1):
            runs.append(episode.cycle())
            last = runs[-1][-1]
            outcome = "done" if last.success else f"FAILED: {last.reason}"
            seconds = sum(cycle.duration for cycle in runs[-1])
            console.print(f"cycle {index:3d}  {outcome}  {seconds:.1f} s", highlight=False)
            if episode.injection.controller.modes.stop.engaged:
                break
    return runs


def summarize(station: Station, runs: list[list[Cycle]], asked: int) -> dict[str, Any]:
    """Return the figures of a run of which so many cycles were asked."""
    names = [task.name for task in station.tasks]
    every = [cycle for run in runs for cycle in run]
    late = [cycle for run in runs[len(runs) // 2 :] for cycle in run]
    whole = sum(len(run) == len(names) and run[-1].success for run in runs)
    plugs = [cycle for cycle in every if cycle.success and cycle.insertion == cycle.insertion]
    return {
        "cycles": asked,
        "failed": asked - whole,
        "rates": {
            "cycles": share_of(whole, asked),
            **{
                name: share_of(sum(run[index].success for run in begun), len(begun))
                for index, name in enumerate(names)
                if (begun := [run for run in runs if len(run) > index])
            },
        },
        "decisions": sum(cycle.decisions for cycle in every),
        "task_hits": sum(cycle.task_hits for cycle in every),
        "false_hits": sum(cycle.false_hits for cycle in every),
        "late_hit_rate": sum(cycle.task_hits for cycle in late)
        / max(1, sum(cycle.decisions for cycle in late)),
        "contact_force_n": max(cycle.contact_force for cycle in every),
        "not_latched": sum(not cycle.latched for cycle in plugs),
        "insertion_mm": [round(cycle.insertion * 1e3, 3) for cycle in plugs],
        "insertion_force_n": [round(cycle.insertion_force, 2) for cycle in plugs],
        "final_torque_nm": [
            round(cycle.final_torque, 3)
            for cycle in every
            if cycle.final_torque == cycle.final_torque
        ],
        "cycle_s": quantiles(
            [sum(cycle.duration for cycle in run) for run in runs], p50=0.5, max=1.0
        ),
        "task_s": {
            name: quantiles([run[i].duration for run in runs if len(run) > i], p50=0.5, max=1.0)
            for i, name in enumerate(names)
        },
        "reasons": [cycle.reason for cycle in every if not cycle.success],
    }


def main() -> int:
    """Run the cycles, print and write the figures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--station", default="station", help="a file of config/stations")
    parser.add_argument("--cycles", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("build/reports/station.json"))
    options = parser.parse_args()
    station = load_station(options.station)
    console = Console()
    runs = run(station, options.cycles, options.seed, console)
    figures = summarize(station, runs, options.cycles)
    title = f"station {station.name!r}: {options.cycles} cycles, seed {options.seed}"
    table = Table("figure", "value", title=title)
    for name, value in figures.items():
        table.add_row(name, json.dumps(value))
    console.print(table)
    figures["setting"] = setting(station=station.name, cycles=options.cycles, seed=options.seed)
    return conclude(figures, BOUNDS, options.output, console, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
