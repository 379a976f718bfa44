"""What the hops of a decision cost with nothing in them: what DDS, Linux and Python set.

    .venv/bin/python benchmarks/floor.py [--cycles 10000] [--composed] [--check]

Image pair (320 x 240, RGB and 32FC1 depth) -> key -> match -> chunk -> command through processes of
their own with empty callbacks; transports, profiles, priorities and wake-ups are those of the
system. Images come at 100.7 Hz, so that they meet the injector's ticks at every phase. Writes
``build/reports/bench/floor.json``; times are from the source time stamp of the color image, the
warm-up is left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.table import Table

from harness import rows
from harness.console import wide_console
from harness.domain import in_domain
from harness.floor_roles import WARM_UP
from harness.phases import PERIOD_NS
from harness.programs import Program, environment_of, run_until_done
from harness.setting import ros_setting, setting
from kv_action_router.reporting.benchmark import conclude
from kv_action_router.reporting.bounds import Bound, at
from kv_action_router.reporting.statistics import share_of
from kv_action_router.ros.arguments import Arguments
from kv_action_router.ros.supervisor import Supervisor
from kv_action_router.ros.system import CAMERA, INJECTOR, PRIORITIES, SIMULATION, SYSTEMS, System

NODES = {
    "source": CAMERA,
    "encoder": "task_key_encoder",
    "manager": "cache_manager",
    "synthesizer": "behavior_synthesizer",
    "injector": INJECTOR,
}
SOFT = ("encoder", "manager", "synthesizer")
BOUNDS = (Bound("images that reached the command", at("separate", "arrived"), ">=", 0.99),)


def system_of(cycles: int, output: Path, *, composed: bool) -> System:
    """Return the processes of the floor, each with the environment of the node it stands for."""
    real = SYSTEMS["ur5e"](Arguments(composed=composed))
    groups = (("injector",), SOFT, ("source",)) if composed else tuple((name,) for name in NODES)
    processes = []
    for roles in groups:
        node = "soft_stages" if len(roles) > 1 else NODES[roles[0]]
        # The source is a camera's driver: it sends on time, which the simulation's camera need not.
        priority = PRIORITIES[SIMULATION if node == CAMERA else node]
        arguments = ["--priority", str(priority), "--output", str(output)]
        arguments += ["--frames", str(cycles)]
        processes.append(
            Program(
                name=roles[0] if len(roles) == 1 else "soft",
                executable="floor_roles",
                nodes=roles,
                environment=environment_of(real, node),
                arguments=(*roles, *arguments),
            )
        )
    return System("floor", tuple(processes), {}, real.environment)


def measure(cycles: int, folder: Path, *, composed: bool) -> rows.Rows:
    """Run the floor; return the stage times of the images that arrived, without the warm-up.

    Raises:
        RouterError: a process died or did not end.
    """
    output = folder / "rows.npy"
    output.unlink(missing_ok=True)
    with in_domain():
        supervisor = Supervisor([system_of(cycles, output, composed=composed)], folder / "logs")
        supervisor.start()
        try:
            run_until_done(supervisor, ["source"], 60.0 + 2e-9 * PERIOD_NS * cycles)
        finally:
            supervisor.stop()
    return rows.since(rows.load(output), int(output.with_suffix(".begin").read_text()))


def figures(found: rows.Rows, cycles: int) -> dict[str, Any]:
    """Return the distributions [ms], and how many of the images arrived."""
    lost = max(0, cycles - len(found))
    return {**rows.latencies(found), "arrived": len(found) / cycles, "lost": share_of(lost, cycles)}


def show(report: dict[str, Any]) -> Table:
    """Return a table with a row for each hop."""
    table = Table("floor", "hop", "n", "mean", "p50", "p99", "p99.9", "max", title="ms")
    for kind in ("separate", "composed"):
        for hop in ("total", "encode", "match", "synthesize", "inject"):
            if kind in report:
                found = report[kind][hop]
                cells = (found[name] for name in ("mean", "p50", "p99", "p999", "max"))
                shown = ("-" if cell is None else f"{cell:.2f}" for cell in cells)
                table.add_row(kind, hop, str(found["n"]), *shown)
    return table


def main() -> int:
    """Measure, print and write the figures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=10_000, help="images of each kind")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("build/reports/bench/floor.json"))
    options = parser.parse_args()
    console = wide_console()
    report: dict[str, Any] = {
        "setting": setting(
            **ros_setting(), cycles=options.cycles, warm_up=WARM_UP, image_rate_hz=1e9 / PERIOD_NS
        )
    }
    for kind in ("separate", "composed"):
        with console.status(f"floor, {kind}"):
            folder = options.output.with_suffix("") / kind
            found = measure(options.cycles, folder, composed=kind == "composed")
        report[kind] = figures(found, options.cycles)
    console.print(show(report))
    return conclude(report, BOUNDS, options.output, console, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
