"""From launch to five active nodes: with an empty cache, and with 100,000 entries on disk.

    .venv/bin/python benchmarks/startup.py [--starts 5] [--check]

All processes are new, a simulated robot's among them; the files lie in the kernel's cache after the
first start, which is the warm-up. Loading the entries is measured in a process of its own too.
Writes ``build/reports/bench/startup.json``; with ``--check`` it exits with 1 and names each figure
that falls short.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rich.table import Table

from harness.console import wide_console
from harness.pipeline_bounds import measured
from harness.setting import ros_setting, setting
from harness.store_file import ROBOT_ID, write_entries
from harness.waking import wake
from kv_action_router.errors import RouterError
from kv_action_router.reporting.benchmark import conclude
from kv_action_router.reporting.bounds import Bound
from kv_action_router.reporting.statistics import summary
from kv_action_router.ros.arguments import Arguments
from kv_action_router.ros.system import SYSTEMS, System
from kv_action_router.ros.topics import NODES

ENTRIES = 100_000
_PROGRAM = Path(__file__).resolve().parent / "harness" / "store_file.py"
BOUNDS = (
    Bound("100,000 entries: loaded in [s]", measured("load", "seconds", "max"), "<=", 2.0),
    Bound("100,000 entries: memory [MB]", measured("load", "rss_mb", "max"), "<=", 200.0),
    Bound("entries that came back [share]", measured("load", "share"), "==", 1.0),
    Bound("starts that failed", measured("failed"), "==", 0),
)


def system_with(store: str, capacity: int) -> System:
    """Return a simulated UR5e's system whose cache lies in a file; ``:memory:`` = in none."""
    values = {"store_path": store, "robot_id": ROBOT_ID, "capacity": capacity}
    return SYSTEMS["ur5e"](Arguments()).with_parameters("cache_manager", values)


def measure_starts(system: System, count: int, logs: Path) -> dict[str, Any]:
    """Start a system some times after a warm-up; return summaries of all and of each node [s]."""
    starts, failures = [], []
    for number in range(count + 1):
        try:
            seen = wake(system, logs / str(number))
        except RouterError as error:
            failures.append(str(error))
            continue
        if number:
            starts.append(seen)
    return {
        "all_active_s": summary([max(seen.values()) for seen in starts]),
        "nodes_s": {name: summary([seen[name] for seen in starts]) for name in NODES},
        "failures": failures,
    }


def measure_loads(file: Path, count: int) -> dict[str, Any]:
    """Load a store some times, each in a process of its own, after a warm-up."""
    runs = []
    for _ in range(count + 1):
        command = [sys.executable, "-P", str(_PROGRAM), str(file), "--capacity", str(ENTRIES)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    runs = runs[1:]
    return {
        "seconds": summary([run["seconds"] for run in runs]),
        "rss_mb": summary([run["rss_mb"] for run in runs]),
        "share": min(run["entries"] for run in runs) / ENTRIES,
        "file_mb": file.stat().st_size / 1e6,
        "told": runs[-1]["told"],
    }


def show(report: dict[str, Any]) -> Table:
    """Return a table with a row for each state of the cache."""
    table = Table("cache", "n", "all active [s]".replace("[", r"\["), "max", *NODES)
    for name in ("empty", "filled"):
        found = report[name]
        whole = found["all_active_s"]
        cells = [whole["p50"], whole["max"], *(found["nodes_s"][node]["p50"] for node in NODES)]
        shown = ("-" if cell is None else f"{cell:.1f}" for cell in cells)
        table.add_row(name, str(whole["n"]), *shown)
    load = report["load"]
    seconds, memory = load["seconds"]["p50"], load["rss_mb"]["p50"]
    table.caption = f"100,000 entries: loaded in {seconds:.2f} s, {memory:.0f} MB"
    return table


def main() -> int:
    """Measure, print and write the figures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=5, help="of each kind")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("build/reports/bench/startup.json"))
    options = parser.parse_args()
    console = wide_console()
    folder = options.output.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / "entries.sqlite3").resolve()
    report: dict[str, Any] = {
        "setting": setting(**ros_setting(), starts=options.starts, warm_up=1, entries=ENTRIES)
    }
    with console.status("writing 100,000 entries"):
        begin = time.monotonic()
        write_entries(file, ENTRIES)
        report["written_in_s"] = time.monotonic() - begin
    with console.status("loading them"):
        report["load"] = measure_loads(file, options.starts)
    for name, system in (
        ("empty", system_with(":memory:", 1000)),
        ("filled", system_with(str(file), ENTRIES)),
    ):
        with console.status(f"starting with a cache that is {name}"):
            report[name] = measure_starts(system, options.starts, folder / name)
    report["failed"] = sum(len(report[name]["failures"]) for name in ("empty", "filled"))
    file.unlink()
    console.print(show(report))
    return conclude(report, BOUNDS, options.output, console, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
