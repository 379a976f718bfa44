"""How every benchmark ends: a report is written, what falls short named, an exit code returned."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console

from kv_action_router.reporting.bounds import Bound, broken


def write(report: dict[str, Any], path: Path) -> None:
    """Write a report as JSON; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")


def judged(bound: Bound, report: dict[str, Any]) -> dict[str, Any]:
    """Return a bound with the figure that it was held against, as data."""
    return {
        "name": bound.name,
        "value": bound.value(report),
        "compare": bound.compare,
        "limit": bound.limit,
        "holds": bound.holds(report),
    }


def conclude(
    report: dict[str, Any],
    bounds: Iterable[Bound],
    path: Path,
    console: Console,
    *,
    check: bool,
) -> int:
    """Write a report and name each figure that falls short; return the exit code.

    Args:
        report: figures; the file also holds what each bound said, under ``judged``.
        bounds: that they must keep.
        path: of the report.
        console: to print on.
        check: a figure that falls short makes the exit code 1.
    """
    bounds = tuple(bounds)
    write({**report, "judged": [judged(bound, report) for bound in bounds]}, path)
    short = broken(report, bounds, essential_only=False)
    for line in short:
        console.print(f"falls short: {line}", markup=False)  # names hold units: [ms]
    console.print(f"report: {path}")
    return 1 if short and check else 0
