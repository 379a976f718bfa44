"""The crash matrix: real processes that are killed, and files that are damaged in every way.

    python test/crash/matrix.py [--kills 200] [--random 100] [--flips 300]

prints what was tried, what was lost, and writes ``build/reports/crash.json``. Ends with 1 when
anything that was confirmed or whole is lost. ``make test-crash`` runs it.
"""

from __future__ import annotations

import argparse
import dataclasses
import platform
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import damage
import killing
import logs
from rich.console import Console
from rich.table import Table

from kv_action_router.caching.store import schema
from kv_action_router.reporting import benchmark

ENTRIES = 150
REPORT = Path("build/reports/crash.json")


def run(
    folder: Path,
    kills: int,
    random_cuts: int,
    flips: int,
    seed: int = 1,
    tell: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Try everything in a folder; return the matrix as plain data."""
    draw = random.Random(seed)
    tell(f"{kills} kills")
    done = killing.kill_under_load(folder / "killed.sqlite3", kills, seed)
    original = damage.Original(folder / "original.sqlite3", ENTRIES)
    size = len(original.content)
    log = Path(f"{original.log_copy}-wal").stat().st_size
    place = folder / "damaged"
    boundaries = list(range(damage.BOUNDARY, size, damage.BOUNDARY))
    cuts = [draw.randrange(1, size) for _ in range(random_cuts)]
    log_cuts = [draw.randrange(log) for _ in range(random_cuts)]
    cases: dict[str, Callable[[], damage.Outcome]] = {
        f"truncated at every {damage.BOUNDARY} bytes": lambda: damage.truncated(
            original, place, boundaries
        ),
        "truncated at random bytes": lambda: damage.truncated(original, place, cuts),
        "log truncated at random bytes": lambda: logs.truncated_log(original, place, log_cuts),
        "log with a bit flipped": lambda: logs.flipped_log(original, place, random_cuts, draw),
        "1 to 64 bits flipped": lambda: damage.flipped(original, place, flips, draw),
    }
    outcomes: dict[str, damage.Outcome] = {}
    for name, case in cases.items():
        tell(name)
        outcomes[name] = case()
    tell("other files and folders")
    outcomes |= damage.unusual(original, place)
    return {
        "sqlite": sqlite3.sqlite_version,
        "python": platform.python_version(),
        "page_size": schema.PAGE_SIZE,
        "entries": ENTRIES,
        "kills": dataclasses.asdict(done),
        "damage": {name: dataclasses.asdict(outcome) for name, outcome in outcomes.items()},
    }


def wrong(report: dict[str, Any]) -> list[str]:
    """Return what must not be."""
    found = [f"kill: {text}" for text in report["kills"]["lost"]]
    for name, outcome in report["damage"].items():
        found += [f"{name}: {text}" for text in outcome["wrong"]]
    return found


def show(report: dict[str, Any], console: Console) -> None:
    """Print the matrix."""
    kills = report["kills"]
    console.print(
        f"SIGKILL under load: {kills['runs']} ({kills['while_opening']} while opening), "
        f"{kills['confirmed']} changes confirmed, {len(kills['lost'])} runs with a loss, "
        f"{kills['found_beyond']} changes found that were not confirmed yet"
    )
    table = Table("damage", "runs", "whole", "loaded", "quarantined", "lost", "in memory", "wrong")
    for name, outcome in report["damage"].items():
        numbers = [
            outcome[key] for key in ("runs", "whole", "loaded", "quarantined", "lost", "in_memory")
        ]
        verdict = f"skipped: {outcome['skipped']}" if outcome["skipped"] else len(outcome["wrong"])
        table.add_row(name, *map(str, numbers), str(verdict))
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, write; 1 when something was lost."""
    parser = argparse.ArgumentParser(prog="crash", description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--random", type=int, default=100, help="cuts at random bytes")
    parser.add_argument("--flips", type=int, default=300, help="files with flipped bits")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    console = Console(width=110)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="crash_") as folder:
        report = run(
            Path(folder),
            options.kills,
            options.random,
            options.flips,
            options.seed,
            lambda text: console.print(f"{time.monotonic() - begin:7.1f} s  {text}"),
        )
    report["duration_s"] = round(time.monotonic() - begin, 1)
    show(report, console)
    benchmark.write(report, REPORT)
    found = wrong(report)
    for text in found:
        console.print(f"LOST  {text}", markup=False)
    console.print(f"report: {REPORT}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
