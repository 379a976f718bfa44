"""Puts the reports of all benchmarks together: ``report.json`` and ``report.html``.

    .venv/bin/python benchmarks/report.py [--since SECONDS] [--check]

Takes ``build/reports/bench/*.json`` and the reports of other benchmarks beside that folder; with
``--since`` only files that were written after that time. With ``--check`` it exits with 1 when a
figure of any of them falls short.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from harness.console import wide_console
from harness.html import page

NAME = "report"


def collect(folder: Path, since: float) -> dict[str, dict[str, Any]]:
    """Return the reports of benchmarks by their name, those of a folder and of the one above it.

    Args:
        folder: of the reports.
        since: time from which on a report counts [s since the epoch].
    """
    found = {}
    for path in [*sorted(folder.parent.glob("*.json")), *sorted(folder.glob("*.json"))]:
        if path.stem == NAME or path.stat().st_mtime < since:
            continue
        content = json.loads(path.read_text())
        if isinstance(content, dict) and "judged" in content:  # what every benchmark's ends with
            found[path.stem] = content
    return found


def main() -> int:
    """Write both files, name what falls short; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("build/reports/bench"))
    parser.add_argument("--since", type=float, default=0.0, help="seconds since the epoch")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    console = wide_console()
    reports = collect(options.folder, options.since)
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / f"{NAME}.json").write_text(json.dumps(reports, indent=2) + "\n")
    (options.folder / f"{NAME}.html").write_text(page(reports))
    short = [
        f"{name}: {bound['name']}: {bound['value']} (must be {bound['compare']} {bound['limit']:g})"
        for name, report in reports.items()
        for bound in report["judged"]
        if not bound["holds"]
    ]
    for line in short:
        console.print(f"falls short: {line}", markup=False)
    console.print(f"report: {options.folder / f'{NAME}.html'}")
    return 1 if options.check and (short or not reports) else 0


if __name__ == "__main__":
    raise SystemExit(main())
