"""Everything that is written about a run: ``report.json``, ``report.html``, plots, pictures.

    .venv/bin/python -m kv_action_router.cli.report [FOLDER]

makes all of it anew from the ``records.json`` that a demonstration left in the folder.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import RouterError
from kv_action_router.reporting import archive, bounds, report
from kv_action_router.reporting.benchmark import judged
from kv_action_router.reporting.film import Frame
from kv_action_router.reporting.records import RunRecord

RECORDS, REPORT, PAGE = "records.json", "report.json", "report.html"


def make(run: RunRecord, setting: report.Setting, folder: Path) -> dict[str, Any]:
    """Write all files about a run; return the report.

    Args:
        run: that has ended, complete or not.
        setting: that it was made in.
        folder: to write into.
    """
    from kv_action_router.reporting import demo_page, plots

    built = report.build(run, setting)
    built["judged"] = [
        {
            **judged(bound, built),
            "judged": bound.is_essential or not setting.essential_only,
        }
        for bound in bounds.BOUNDS[setting.work]
    ]
    content: dict[str, Any] = report.measured(built)
    report.write(content, folder / REPORT)
    frames, tip = _film(run, setting)
    drawn = plots.draw(run, content, tip)
    (folder / PAGE).write_text(demo_page.render(content, drawn, frames))
    plots.write_all(drawn, folder)
    plots.close(drawn)
    for number, frame in enumerate(frames, 1):
        (folder / f"film_{number}.jpg").write_bytes(frame.jpeg)
    return content


def _film(run: RunRecord, setting: report.Setting) -> tuple[list[Frame], FloatArray | None]:
    """Return pictures and the tip's way; without a renderer the report goes without them."""
    os.environ.setdefault("MUJOCO_GL", "egl")  # before MuJoCo is loaded
    try:
        from kv_action_router.cli.film import film

        return film(run, setting.work, setting.seed)
    except Exception as error:  # of the renderer: any kind; it must not cost the report
        print(f"report: no film strip: {error}", file=sys.stderr)
        return [], None


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the report of a folder anew; return the exit code."""
    parser = argparse.ArgumentParser(prog="report", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("build/reports/demo"))
    options = parser.parse_args(arguments)
    try:
        run, setting = archive.load(options.folder / RECORDS)
    except RouterError as error:
        print(f"report: {error}", file=sys.stderr)
        return 1
    make(run, setting, options.folder)
    print(f"report: {options.folder / PAGE}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
