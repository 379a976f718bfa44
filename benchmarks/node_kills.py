"""How long the arm needs to come to rest when one of the five nodes is killed.

    .venv/bin/python benchmarks/node_kills.py [--kills 3] [--controller effort] [--check]

Each kill has a system of its own (simulated, in a DDS domain of its own), and comes while a joint
moves at 0.47 to 0.5 rad/s. Writes ``build/reports/node_kills.json``; with ``--check`` it exits with
1 and names each figure that falls short. The figures want an idle machine.
"""

from __future__ import annotations

import argparse
import os
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from harness.setting import ros_setting, setting
from kv_action_router.errors import RouterError
from kv_action_router.reporting.benchmark import conclude, write
from kv_action_router.reporting.kills import KillRecord, figures, kill_bounds
from kv_action_router.ros.arguments import CONTROLLERS
from kv_action_router.ros.node_kills import kill_while_moving
from kv_action_router.ros.shared_memory import without_orphans
from kv_action_router.ros.topics import NODES

SPEED = 0.47  # [rad/s]


def show(report: dict[str, Any], title: str) -> Table:
    """Return a table with a row for each node."""
    table = Table("node killed", "n", "rest mean [ms]", "max [ms]", "named [ms]", "rad/s", "faults")
    table.title = title
    for node, found in report["nodes"].items():
        rest, named, speed = found["rest_ms"], found["named_ms"], found["peak_speed"]
        cells = (rest["mean"], rest["max"], named["max"])
        table.add_row(
            node,
            str(rest["n"]),
            *("-" if cell is None else f"{cell:.0f}" for cell in cells),
            f"{speed['max']:.2f}",
            "; ".join(found["faults"]) or "none",
        )
    return table


def main() -> int:
    """Kill, print and write the figures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=3, help="of each node, at least 1")
    parser.add_argument("--nodes", nargs="+", default=list(NODES), choices=NODES, metavar="NODE")
    parser.add_argument("--controller", default="effort", choices=CONTROLLERS)
    parser.add_argument("--domain", type=int, default=99, help="DDS domain; no robot's")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("build/reports/node_kills.json"))
    options = parser.parse_args()
    if options.kills < 1:
        parser.error(f"--kills must be at least 1, got {options.kills}")
    os.environ["ROS_DOMAIN_ID"] = str(options.domain)
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    console = Console()
    records: list[KillRecord] = []
    missing: list[str] = []
    logs = options.output.with_suffix("")
    report: dict[str, Any] = {}
    conditions = setting(**ros_setting(), kills=options.kills)
    for turn, node in product(range(1, options.kills + 1), options.nodes):
        with without_orphans(), console.status(f"{turn} of {options.kills}: {node}"):
            folder = logs / f"{node}_{turn}"
            try:
                records.append(
                    kill_while_moving(node, folder, speed=SPEED, controller=options.controller)
                )
            except RouterError as error:
                missing.append(f"kill {turn} of {node}: {error}")
        report = {
            "controller": options.controller,
            "setting": conditions,
            "not_measured": missing,
            **figures(records),
        }
        write(report, options.output)  # a run that is cut short keeps what it has measured
    console.print(show(report, f"killed while moving, {options.controller} interface"))
    for line in missing:
        console.print(f"not measured: {line}")
    bounds = kill_bounds(list(report["nodes"]))
    code = conclude(report, bounds, options.output, console, check=options.check)
    return 1 if missing and options.check else code


if __name__ == "__main__":
    raise SystemExit(main())
