"""The demonstration: an arm does a station's tasks over and over, more and more from the cache.

bring up -> wait until active -> (place the work, run the tasks, write down) x cycles -> report
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kv_action_router.cli import report as files
from kv_action_router.errors import RouterError
from kv_action_router.reporting import archive, bounds, report
from kv_action_router.reporting.records import RunRecord
from kv_action_router.reporting.statistics import describe_share
from kv_action_router.tasks.station import available_stations


@dataclass(frozen=True)
class DemoOptions:
    """What to run and where to write."""

    cycles: int
    seed: int
    composed: bool
    output: Path
    namespace: str
    params_file: str
    essential_only: bool
    work: str = "touch"


def parse(arguments: Sequence[str]) -> DemoOptions:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(prog="demo", description=__doc__.split("\n")[0])
    names = available_stations()
    parser.add_argument("--work", choices=names, default="touch", help="a file of config/stations")
    parser.add_argument("--cycles", type=int, default=20, help="how often all its tasks are run")
    parser.add_argument("--seed", type=int, default=1, help="of the targets' places")
    parser.add_argument("--composed", action="store_true", help="four soft stages in one process")
    parser.add_argument("--namespace", default="", help="of all nodes")
    parser.add_argument("--params-file", default="", help="YAML file after the robot's own")
    parser.add_argument("--output", type=Path, default=Path("build/reports/demo"))
    found = parser.parse_args(arguments)
    if found.cycles < 1:
        parser.error(f"--cycles must be at least 1, got {found.cycles}")
    return DemoOptions(
        cycles=found.cycles,
        seed=found.seed,
        composed=found.composed,
        output=found.output,
        namespace=found.namespace,
        params_file=found.params_file,
        work=found.work,
        # Short runs have too few decisions for a rate, busy machines no figures to judge.
        essential_only=found.cycles < 20 or bool(os.environ.get("CI")),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration; 0 when every cycle succeeded and every judged bound holds."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    from kv_action_router.ros.demonstration import run_work

    try:
        run, setting = run_work(options, commit())
    except RouterError as error:  # nothing was begun: a task file that is wrong, for instance
        print(f"demo: {error}", file=sys.stderr)
        return 1
    archive.save(run, setting, options.output / files.RECORDS)
    code = conclude(run, setting, options.output)
    if run.ended_by:
        print(f"demo: {run.ended_by}\n      logs: {options.output / 'logs'}", file=sys.stderr)
    return code


def conclude(run: RunRecord, setting: report.Setting, output: Path) -> int:
    """Write what is written about a run, print what holds and what not; return the exit code."""
    content = files.make(run, setting, output)
    print("rates:")
    for name, rate in content["rates"].items():
        print(f"      {name.replace('_', ' ')}: {describe_share(rate)}")
    wanted = bounds.BOUNDS[setting.work]
    for bound in wanted:
        judged = bound.is_essential or not setting.essential_only
        mark = "ok  " if bound.holds(content) else ("FAIL" if judged else "info")
        print(f"{mark}  {bound.describe(content)}")
    print(f"report: {output / files.PAGE}, {files.REPORT}")
    broken = bounds.broken(content, wanted, setting.essential_only)
    return 1 if broken or run.ended_by else 0


def commit() -> str:
    """Return the commit that is running, with ``+`` when there are changes; empty when unknown."""
    folder = Path(__file__).resolve().parent
    try:
        return subprocess.run(
            ["git", "describe", "--always", "--dirty=+"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


if __name__ == "__main__":
    raise SystemExit(main())
