"""How many robots one machine carries before deadlines drop, and how the costs grow.

    .venv/bin/python benchmarks/throughput.py [--robots 1 2 4 8] [--check]

Robots in namespaces of their own, each with its five nodes, its physics and its 30 Hz camera; each
decides about twice a second and moves all the time. A robot is *carried* if less than 0.1 % of its
decisions are dropped and its control loop misses less than 0.1 % of its periods. Writes
``build/reports/bench/throughput.json``; with ``--check`` it exits with 1 and names each figure that
falls short. Physics and cameras run on the same machine and take their share, which a real robot's
do not: their part is told apart.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.table import Table

from harness.console import wide_console
from harness.driven import measure_several
from harness.phases import Phase, period_of
from harness.pipeline_bounds import measured
from harness.setting import ros_setting, setting
from kv_action_router.reporting.benchmark import conclude, write
from kv_action_router.reporting.bounds import NODES, Bound
from kv_action_router.ros.arguments import Arguments

CAMERA_RATE = 30.0  # [Hz]
HOLD_S = 0.4
LOST = 0.001
BOUNDS = (Bound("robots carried", measured("carried"), ">=", 1),)


def of_fleet(robots: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a fleet costs a robot, and how many of it are carried."""
    phases = [robot["fleet"] for robot in robots if "fleet" in robot]
    return {
        "robots": len(robots),
        "measured": len(phases),
        "carried": sum(is_carried(robot) for robot in robots),
        "nodes_cpu_percent": _mean([phase["nodes_cpu_percent"] for phase in phases]),
        "rest_cpu_percent": _mean([_rest(phase["cpu_percent"]) for phase in phases]),
        "nodes_rss_mb": _mean([phase["nodes_rss_mb"] for phase in phases]),
        "mean_ms": _mean([phase["total"]["mean"] for phase in phases]),
        "p99_ms": _mean([phase["total"]["p99"] for phase in phases]),
        "dropped": _mean([phase["dropped"]["share"] for phase in phases]),
        "missed_ticks": _mean([missed_ticks(phase) for phase in phases]),
        "stops": sum(len(phase["stops"]) for phase in phases),
        "trouble": [robot["trouble"] for robot in robots if robot["trouble"]],
    }


def is_carried(robot: dict[str, Any]) -> bool:
    """Return whether a robot kept its deadlines, was never stopped and was measured to the end."""
    phase = robot.get("fleet")
    if phase is None or robot["trouble"] or phase["stops"]:
        return False
    dropped, missed = phase["dropped"]["share"], missed_ticks(phase)
    return dropped is not None and dropped <= LOST and missed is not None and missed <= LOST


def missed_ticks(phase: dict[str, Any]) -> float | None:
    """Return the share of the control loop's periods that were skipped."""
    counters = phase["counters"]
    periods = counters.get("ticks", 0) + counters.get("missed_ticks", 0)
    return counters["missed_ticks"] / periods if periods else None


def _rest(shares: dict[str, float]) -> float | None:
    others = [share for name, share in shares.items() if name not in NODES]
    return sum(others) if others else None


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def show(report: dict[str, Any]) -> Table:
    """Return a table with a row for each fleet; costs are those of one robot."""
    table = Table(title="costs of one robot")
    for name in ("robots", "carried", "mean ms", "p99 ms", "dropped", "missed", "stops"):
        table.add_column(name, justify="right")
    for name in ("nodes CPU %", "physics, camera CPU %", "nodes MB"):
        table.add_column(name, justify="right")
    for fleet in report["fleets"]:
        cells = (
            ("mean_ms", "{:.1f}"),
            ("p99_ms", "{:.1f}"),
            ("dropped", "{:.2%}"),
            ("missed_ticks", "{:.2%}"),
            ("stops", "{}"),
            ("nodes_cpu_percent", "{:.0f}"),
            ("rest_cpu_percent", "{:.0f}"),
            ("nodes_rss_mb", "{:.0f}"),
        )
        shown = ("-" if fleet[key] is None else form.format(fleet[key]) for key, form in cells)
        table.add_row(str(fleet["robots"]), str(fleet["carried"]), *shown)
    return table


def main() -> int:
    """Measure, print and write the figures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--robots", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--cycles", type=int, default=25, help="hits of each robot")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("build/reports/bench/throughput.json"))
    options = parser.parse_args()
    console = wide_console()
    plan = [Phase("fleet", "hit", options.cycles, period_ns=period_of(CAMERA_RATE), hold_s=HOLD_S)]
    report: dict[str, Any] = {
        "setting": setting(**ros_setting(), cycles=options.cycles, warm_up=plan[0].warm_up),
        "fleets": [],
    }
    for count in options.robots:
        robots = [Arguments(namespace=f"robot{number}") for number in range(1, count + 1)]
        with console.status(f"{count} robots"):
            folder = options.output.with_suffix("") / str(count)
            report["fleets"].append(of_fleet(measure_several(plan, folder, robots)))
        write(report, options.output)  # a run that is cut short keeps what it has measured
    whole = [fleet["robots"] for fleet in report["fleets"] if fleet["carried"] == fleet["robots"]]
    report["carried"] = max(whole, default=0)
    console.print(show(report))
    return conclude(report, BOUNDS, options.output, console, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
