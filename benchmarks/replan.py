"""A full replan against what a user would plan with, on the same problems.

    .venv/bin/python benchmarks/replan.py [--problems 300] [--check]

Ours (inverse kinematics, jerk-limited motion, spline, limits and collision tested) against plain
inverse kinematics with a quintic, where nothing is tested, and against OMPL's RRTConnect with
TOPP-RA, which knows no limit of the jerk, so its motions leave that one. All share the robot's
model and its collision test, one thread. OMPL and toppra stand in
requirements/bench.txt; where ``make bench`` has installed them, this program goes on in their
environment. Writes ``build/reports/bench/replan.json``; with ``--check`` it exits with 1 and names
each figure that falls short. The first problems are warm-up.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from threadpoolctl import threadpool_limits

from harness.console import wide_console
from harness.planners import Cell, Planner, Problem, Trajectory, problems, quintic, replan
from harness.planners import rrt_connect as rrt
from harness.setting import interpreter_of_comparisons, setting
from kv_action_router.errors import RouterError
from kv_action_router.reporting.benchmark import conclude
from kv_action_router.reporting.bounds import Bound, at
from kv_action_router.reporting.statistics import distribution

WARM_UP = 20
PLANNERS: dict[str, Callable[[Cell], Planner]] = {
    "replan": replan,
    "quintic": quintic,
    "rrt_connect": rrt,
}
_CHECKED = 60  # configurations of a motion that are tested for collision


def _ratio(report: dict[str, Any]) -> float | None:
    ours, theirs = report["replan"]["ms"]["p50"], report["rrt_connect"]["ms"]["p50"]
    return None if ours is None or theirs is None else theirs / ours


BOUNDS = (
    Bound("replan: motions that touch something", at("replan", "touching"), "==", 0),
    Bound("replan: motions outside a limit", at("replan", "outside_limits"), "==", 0),
    Bound("replan: p99.9 [ms]", at("replan", "ms", "p999"), "<=", 12.7),
    Bound("RRTConnect with TOPP-RA over replan, median", _ratio, ">=", 1.0),
)


def measure(cell: Cell, planner: Planner, given: list[Problem]) -> dict[str, Any]:
    """Return times [ms], durations [s] and what is wrong with the motions."""
    times, durations, failures = [], [], {}
    touching = outside = 0
    for index, problem in enumerate(given):
        begin = time.perf_counter_ns()
        try:
            found = planner(problem)
        except RouterError as error:
            if index >= WARM_UP:
                times.append((time.perf_counter_ns() - begin) / 1e6)
                name = type(error).__name__
                failures[name] = failures.get(name, 0) + 1
            continue
        spent = (time.perf_counter_ns() - begin) / 1e6
        if index < WARM_UP:
            continue
        times.append(spent)
        durations.append(found.duration)
        checked = np.linspace(0, len(found.positions) - 1, _CHECKED).round().astype(int)
        touching += cell.touches(found.positions[checked], problem.obstacles)
        outside += leaves_limits(cell, found)
    return {
        "ms": distribution(times),
        "duration_s": distribution(durations),
        "failures": failures,
        "touching": touching,
        "outside_limits": outside,
    }


def leaves_limits(cell: Cell, found: Trajectory, slack: float = 0.05) -> bool:
    """Return whether a motion exceeds velocity, acceleration or jerk, by differences of its steps.

    The ends of a path that begins with a jump of the acceleration count too: drives feel them.
    """
    step = found.duration / (len(found.positions) - 1)
    derivative = found.positions
    for limit in (cell.velocity, cell.acceleration, cell.jerk):
        derivative = np.diff(derivative, axis=0) / step
        if (np.abs(derivative) > limit * (1.0 + slack)).any():
            return True
    return False


def show(report: dict[str, Any]) -> Table:
    """Return a table with a row for each planner."""
    table = Table("planner", "n", "mean", "p50", "p99", "p99.9", "max", title="planning time in ms")
    for name in ("motion in s", "failed", "touch", "outside limits"):
        table.add_column(name, justify="right")
    for name in PLANNERS:
        found = report[name]
        if "trouble" in found:
            table.add_row(name, found["trouble"])
            continue
        times = found["ms"]
        table.add_row(
            name,
            str(times["n"]),
            *(f"{times[key]:.2f}" for key in ("mean", "p50", "p99", "p999", "max")),
            f"{found['duration_s']['p50'] or float('nan'):.2f}",
            str(sum(found["failures"].values())),
            str(found["touching"]),
            str(found["outside_limits"]),
        )
    return table


def main() -> int:
    """Plan, print and write the figures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=300)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("build/reports/bench/replan.json"))
    options = parser.parse_args()
    threadpool_limits(1)
    console = wide_console()
    cell = Cell()
    given = problems(cell, options.problems + WARM_UP)
    report: dict[str, Any] = {"setting": setting(problems=options.problems, warm_up=WARM_UP)}
    for name, make in PLANNERS.items():
        try:
            planner = make(cell)
        except ImportError as error:
            report[name] = {"trouble": f"{error}: `make bench` installs it", "ms": distribution([])}
            continue
        with console.status(name):
            report[name] = measure(cell, planner, given)
    console.print(show(report))
    return conclude(report, BOUNDS, options.output, console, check=options.check)


def go_on_with_comparisons() -> None:
    """Go on in the environment of what is compared with, if there is one."""
    wanted = interpreter_of_comparisons()
    if wanted.is_file() and Path(sys.prefix) != wanted.parents[1]:
        os.execv(wanted, [str(wanted), *sys.orig_argv[1:]])


if __name__ == "__main__":
    go_on_with_comparisons()
    raise SystemExit(main())
