"""A shift of 500 cycles with drifting work-pieces, from an empty cache: what the cache is worth.

    .venv/bin/python benchmarks/hit_rate.py [--cycles 500] [--seed 1] [--check]

The real stages in simulated time on a kinematic cell; nothing is rendered. In the middle of the
shift the approach that was used last is spoiled on purpose. Beside it, at the same time, runs the
same shift with what it is compared with: a cache whose keys have no body slice and that merges
nothing; and one with room for six entries only, to see what eviction keeps.

Writes ``build/reports/hit_rate.json`` and plots in ``build/reports/hit_rate/``; with ``--check`` it
exits with 1 and names each figure that falls short.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from kv_action_router.encoding.warm_up import limit_threads
from kv_action_router.reporting.benchmark import conclude
from kv_action_router.reporting.bounds import Bound, at
from kv_action_router.reporting.footprint import footprint
from kv_action_router.reporting.shift_plots import ShiftSeries, write_all
from kv_action_router.reporting.statistics import quantiles, share_of
from kv_action_router.simulation.episode import EpisodeConfig
from kv_action_router.simulation.shift import Shift, ShiftConfig, ShiftCycle, shift_episode

OURS, PLAIN, SMALL = "ours", "no body slice, no merging", "room for few entries"
LATE = 300  # cycles at the end that the bounds are about
WINDOW = 50  # cycles
TASK_HITS = 0.89
TOUCH_TOLERANCE = 0.005  # [m] of the task's stage
SMALL_CAPACITY = 6
COUNTED = (
    "decisions",
    "task_hits",
    "behavior_hits",
    "false_hits",
    "insertions",
    "merges",
    "evictions",
    "lost_confidence",
)

BOUNDS = (
    Bound("task hits, last 300 cycles", at(OURS, "late", "task_hits"), ">=", TASK_HITS),
    Bound("false hits [share of task hits]", at(OURS, "false_hits_share"), "<=", 0.01),
    Bound("memory growth, last 300 cycles", at(OURS, "late", "memory_growth"), "<=", 0.02),
    Bound("failed cycles", at(OURS, "failed"), "==", 0),
    Bound("failures until the spoiled entry was out", at(OURS, "spoiled", "failures"), "==", 2),
)


@dataclass(frozen=True)
class Run:
    """One shift.

    Attributes:
        cycles: of the task.
        bytes_held: size of the cache after each.
        learned: what became of the drives' execution value, newest change.
    """

    cycles: tuple[ShiftCycle, ...]
    bytes_held: tuple[int, ...]
    learned: str


def variants() -> dict[str, EpisodeConfig]:
    """Return what is run, by name."""
    ours = shift_episode()
    plain = dataclasses.replace(ours.caching, merge_threshold=1.0)
    small = dataclasses.replace(ours.caching, capacity=SMALL_CAPACITY)
    return {
        OURS: ours,
        PLAIN: dataclasses.replace(ours, masked_slices=("body",), caching=plain),
        SMALL: dataclasses.replace(ours, caching=small),
    }


def run(name: str, cycles: int, seed: int) -> Run:
    """Run a shift with one variant."""
    limit_threads()
    config = ShiftConfig(
        cycles=cycles, seed=seed, spoiled_before=cycles // 2, episode=variants()[name]
    )
    shift = Shift(config)
    manager = shift.episode.caching.manager
    done, held = [], []
    for cycle in shift.cycles():
        done.append(cycle)
        held.append(footprint(manager, without=(manager.config, shift.episode.robot)))
    value = manager.execution_value()
    assert value is not None
    return Run(tuple(done), tuple(held), f"version {value.version}: {value.provenance}")


def summarize(result: Run) -> dict[str, Any]:
    """Return the figures of a shift."""
    cycles, held = result.cycles, result.bytes_held
    late = min(LATE, len(cycles) - 1)
    failed = [cycle.reason for cycle in cycles if not cycle.success and not cycle.canceled]
    hits = total(cycles, "task_hits")
    return {
        "cycles": len(cycles),
        "failed": len(failed),
        "reasons": failed,
        **counts(cycles),
        "rates": {
            "cycles": share_of(
                sum(cycle.success for cycle in cycles if not cycle.canceled),
                sum(not cycle.canceled for cycle in cycles),
            ),
            "task_hits": hits_of(cycles, "task_hits"),
            "behavior_hits": hits_of(cycles, "behavior_hits"),
            "late_task_hits": hits_of(cycles[-late:], "task_hits"),
            "false_hits": share_of(round(total(cycles, "false_hits")), max(1, round(hits))),
        },
        "false_hits_share": total(cycles, "false_hits") / max(1, hits),
        "late": {
            "cycles": late,
            **rates(cycles[-late:]),
            "false_hits": total(cycles[-late:], "false_hits"),
            "entries_before": cycles[-late - 1].entries,
            "entries_after": cycles[-1].entries,
            "memory_growth": held[-1] / held[-late - 1] - 1.0,
        },
        "memory_bytes": held[-1],
        "touches_beyond_tolerance": sum(c.touch_error > TOUCH_TOLERANCE for c in cycles),
        "touch_error_mm": quantiles(
            [cycle.touch_error * 1e3 for cycle in cycles], p50=0.5, p95=0.95, max=1.0
        ),
        "cycle_s": quantiles([cycle.duration for cycle in cycles], p50=0.5, p95=0.95, max=1.0),
        "spoiled": after_spoiling(cycles),
        "execution_value": result.learned,
        "over_time": [
            {"from": begin, **rates(cycles[begin : begin + WINDOW])}
            for begin in range(0, len(cycles), WINDOW)
        ],
    }


def counts(cycles: Sequence[ShiftCycle]) -> dict[str, int]:
    """Return what is counted over all cycles."""
    counted = {name: round(total(cycles, name)) for name in COUNTED}
    return {"canceled": sum(cycle.canceled for cycle in cycles), **counted}


def rates(cycles: Sequence[ShiftCycle]) -> dict[str, float]:
    """Return hits over decisions of each layer; of the execution layer, over control ticks."""
    decisions = max(1.0, total(cycles, "decisions"))
    return {
        "task_hits": total(cycles, "task_hits") / decisions,
        "behavior_hits": total(cycles, "behavior_hits") / decisions,
        "execution_hits": total(cycles, "confident_ticks") / len(cycles),
    }


def hits_of(cycles: Sequence[ShiftCycle], layer: str) -> dict[str, Any]:
    """Return hits of a layer over decisions, with exact bounds."""
    return share_of(round(total(cycles, layer)), round(total(cycles, "decisions")))


def after_spoiling(cycles: Sequence[ShiftCycle]) -> dict[str, int | None]:
    """Return how many failures and cycles it took until the spoiled entry was out."""
    begin = next(index for index, cycle in enumerate(cycles) if cycle.spoiled)
    failures = 0
    for index, cycle in enumerate(cycles[begin:]):
        failures += cycle.false_hits
        if cycle.lost_confidence:
            return {"failures": failures, "cycles": index + 1}
    return {"failures": None, "cycles": None}


def total(cycles: Sequence[ShiftCycle], field: str) -> float:
    """Return the sum of a field over cycles."""
    return float(sum(getattr(cycle, field) for cycle in cycles))


def series(name: str, result: Run) -> ShiftSeries:
    """Return what is drawn of a shift."""
    fields = [field.name for field in dataclasses.fields(ShiftSeries) if field.name != "name"]
    return ShiftSeries(
        name, **{field: [getattr(c, field) for c in result.cycles] for field in fields}
    )


def show(report: dict[str, Any], console: Console) -> None:
    """Print the variants beside each other."""
    table = Table("figure", *report, title="A shift with drifting work-pieces")
    for name in report[OURS]:
        if name != "over_time":
            table.add_row(name, *(json.dumps(shown(figures[name])) for figures in report.values()))
    console.print(table)
    over_time = Table("cycles from", *(f"{name}: task, behavior" for name in report))
    for rows in zip(*(figures["over_time"] for figures in report.values()), strict=True):
        shares = (f"{row['task_hits']:.3f}, {row['behavior_hits']:.3f}" for row in rows)
        over_time.add_row(str(rows[0]["from"]), *shares)
    console.print(over_time)


def shown(value: Any) -> Any:
    """Return a figure with four digits."""
    if isinstance(value, dict):
        return {name: shown(part) for name, part in value.items()}
    return (
        float(np.format_float_positional(value, 4, fractional=False))
        if (isinstance(value, float))
        else value
    )


def main() -> int:
    """Run the shifts, print, draw and write what came of them; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("build/reports/hit_rate.json"))
    options = parser.parse_args()
    console = Console()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=2, mp_context=context) as pool:
        runs = {name: pool.submit(run, name, options.cycles, options.seed) for name in variants()}
        results = {name: future.result() for name, future in runs.items()}
    report = {name: summarize(result) for name, result in results.items()}
    show(report, console)
    drawn = write_all(
        [series(name, result) for name, result in results.items()],
        TASK_HITS,
        options.output.with_suffix(""),
    )
    console.print("plots: " + ", ".join(str(file) for file in drawn))
    return conclude(report, BOUNDS, options.output, console, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
