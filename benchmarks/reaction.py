"""From an event to the first corrective command: a blow, a wheel's jump, heat, an obstacle.

    .venv/bin/python benchmarks/reaction.py [--count 20] [--check]

The five nodes around a simulated arm that moves all the time. A blow (100 N) stops it through the
monitor; a jump of a wheel's speed and a hot drive are seen by the injector itself; a box that
appears in the image is seen by encoder and monitor. Times are from the publication of the first
sample that shows the event (of the box: from its appearance, so that the camera's 33 ms count) to
the control tick of the first command that answers it. Writes ``build/reports/bench/reaction.json``;
with ``--check`` it exits with 1 and names each figure that falls short.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.table import Table

from harness import events
from harness.console import wide_console
from harness.domain import in_domain
from harness.pipeline_bounds import measured
from harness.programs import Program, environment_of, run_until_done
from harness.setting import ros_setting, setting
from kv_action_router.errors import RouterError
from kv_action_router.reporting.benchmark import conclude
from kv_action_router.reporting.bounds import Bound
from kv_action_router.reporting.statistics import distribution
from kv_action_router.ros.arguments import Arguments
from kv_action_router.ros.supervisor import Supervisor
from kv_action_router.ros.system import PRIORITIES, SIMULATION, SYSTEMS, System

BOUNDS = tuple(
    Bound(f"{kind}: events {what}", measured("kinds", kind, name), "==", 0)
    for kind in events.KINDS
    for name, what in (("missed", "without a reaction"), ("skipped", "that could not be tried"))
)
_EACH_S, _START_S = 12.0, 120.0


def system_of(output: Path, count: int) -> System:
    """Return a system whose camera, wrench and drive states come from the reactor."""
    system = SYSTEMS["ur5e"](Arguments()).with_parameters(SIMULATION, {"camera_rate": 0})
    system = system.with_parameters("cache_manager", {"store_path": ":memory:"})
    silent = {"wrench": "simulated/wrench", "drive_state": "simulated/drive_state"}
    system = system.with_remaps(SIMULATION, silent)
    arguments = [str(output), "--count", str(count), "--priority", str(PRIORITIES[SIMULATION])]
    reactor = Program(
        name="reactor",
        executable="reactor",
        nodes=("reactor",),
        environment=environment_of(system, SIMULATION),
        arguments=tuple(arguments),
    )
    return system.with_process(reactor)


def measure(count: int, folder: Path) -> dict[str, Any]:
    """Run the trials; return the figures of each kind and what went wrong."""
    output = folder / "reactions.json"
    output.unlink(missing_ok=True)
    trouble = ""
    with in_domain():
        supervisor = Supervisor([system_of(output, count)], folder / "logs")
        supervisor.start()
        try:
            longest = _START_S + _EACH_S * count * len(events.KINDS)
            run_until_done(supervisor, ["reactor"], longest)
        except RouterError as error:
            trouble = str(error)
        finally:
            supervisor.stop()
    found = events.read(output)
    kinds = {
        kind: {
            **distribution(reactions.ms),
            "missed": reactions.missed,
            "skipped": reactions.skipped,
        }
        for kind, reactions in found.items()
    }
    return {"kinds": kinds, "trouble": trouble}


def show(report: dict[str, Any]) -> Table:
    """Return a table with a row for each kind of event."""
    table = Table("event", "n", "mean", "p50", "p99.9", "max", "missed", "skipped", title="ms")
    table.caption = report["trouble"] or None
    for kind, found in report["kinds"].items():
        cells = (found[name] for name in ("mean", "p50", "p999", "max"))
        shown = ("-" if cell is None else f"{cell:.1f}" for cell in cells)
        table.add_row(kind, str(found["n"]), *shown, str(found["missed"]), str(found["skipped"]))
    return table


def main() -> int:
    """Measure, print and write the figures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20, help="of each kind of event")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("build/reports/bench/reaction.json"))
    options = parser.parse_args()
    console = wide_console()
    report: dict[str, Any] = {"setting": setting(**ros_setting(), count=options.count)}
    with console.status("events"):
        report |= measure(options.count, options.output.with_suffix(""))
    console.print(show(report))
    return conclude(report, BOUNDS, options.output, console, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
