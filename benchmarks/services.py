"""What service calls cost the keys: key-to-match time with 8 clients, against that without.

    .venv/bin/python benchmarks/services.py [--pairs 3] [--seconds 10] [--check]

One cache manager as its system starts it, filled with 500 entries; one source of keys (100 Hz and
30 Hz of images, two decisions a second); 8 clients of 50 calls/s each, all of them processes of
their own over DDS. Phases without and with calls take turns in one run, so that whatever else the
machine does meets both. Three of four calls are queries, the others look at an entry, a list of ten
and the domains. Writes ``build/reports/services.json``; with ``--check`` it exits with 1 and names
each figure that falls short. Key to match: from the publication of the key to that of its match.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.table import Table

from harness.console import wide_console
from harness.domain import in_domain
from harness.programs import Program, environment_of, run_until_done
from harness.service_roles import ENTRIES, Plan
from harness.setting import ros_setting, setting
from kv_action_router.reporting.benchmark import conclude
from kv_action_router.reporting.bounds import Bound, at
from kv_action_router.reporting.statistics import share_of, summary
from kv_action_router.ros.arguments import Arguments
from kv_action_router.ros.supervisor import Supervisor
from kv_action_router.ros.system import PRIORITIES, SYSTEMS, System

CLIENTS, RATE = 8, 50.0
SETTLE_S = 0.5  # left out at the begin of each phase: calls of the one before are under way
ENCODER = "task_key_encoder"
BOUNDS = (
    Bound("p99 key to match above that without calls, ms", at("added_p99_ms"), "<=", 2.0),
    Bound("calls answered a second", at("calls", "rate"), ">=", 0.95 * CLIENTS * RATE),
    Bound("calls refused or not answered", at("calls", "failed"), "==", 0),
    Bound("keys answered", at("answered"), ">=", 0.99),
    Bound("matches that hit", at("hits"), ">=", 0.99),
)
Rows = npt.NDArray[np.int64]


def system_of(plan: Plan, folder: Path) -> System:
    """Return the cache manager of a system, the source and the clients."""
    real = SYSTEMS["ur5e"](Arguments()).with_parameters(
        "cache_manager", {"store_path": ":memory:", "robot_id": "benchmark"}
    )
    manager = next(process for process in real.processes if process.name == "cache_manager")
    common = ("--folder", str(folder), "--phases", str(plan.phases), "--seconds", str(plan.seconds))
    source = Program(
        name="source",
        executable="service_roles",
        nodes=("source",),
        environment=environment_of(real, ENCODER),
        arguments=(
            "source", "--clients", str(CLIENTS), "--priority", str(PRIORITIES[ENCODER]), *common,
        ),
    )  # fmt: skip
    clients = tuple(
        Program(
            name=f"client_{number}",
            executable="service_roles",
            nodes=(f"client_{number}",),
            environment=manager.environment,
            arguments=("client", "--number", str(number), "--rate", str(RATE), *common),
        )
        for number in range(CLIENTS)
    )
    return dataclasses.replace(real, processes=(manager, source, *clients))


def measure(plan: Plan, folder: Path) -> dict[str, Any]:
    """Run all phases and return the figures.

    Raises:
        RouterError: a process died or did not end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("*.np*"), *folder.glob("*.ready"), *folder.glob("go")):
        old.unlink()
    with in_domain():
        supervisor = Supervisor([system_of(plan, folder)], folder / "logs")
        supervisor.start()
        try:
            programs = ["source", *(f"client_{number}" for number in range(CLIENTS))]
            run_until_done(supervisor, programs, 180.0 + plan.phases * plan.seconds)
        finally:
            supervisor.stop()
    source = np.load(folder / "source.npz")
    begin_ns = int((folder / "go").read_text())
    calls = np.concatenate([np.load(folder / f"client_{n}.npy") for n in range(CLIENTS)])
    return figures(plan, begin_ns, source["rows"], int(source["sent"]), int(source["hits"]), calls)


def figures(
    plan: Plan, begin_ns: int, rows: Rows, sent: int, hits: int, calls: Rows
) -> dict[str, Any]:
    """Return the distributions without and with calls, and what became of the calls.

    Args:
        plan: phases.
        begin_ns: of the first one.
        rows: publication of key and match, receipt of the match [ns] (n, 3).
        sent: keys.
        hits: matches among all that came.
        calls: sending and answer [ns], success (m, 3); zeros = no answer.
    """
    since = (rows[:, 0] - begin_ns) / (plan.seconds * 1e9)
    phase = np.floor(since).astype(int)
    settled = (since - phase) * plan.seconds >= SETTLE_S
    inside = settled & (phase >= 0) & (phase < plan.phases)
    report: dict[str, Any] = {}
    for name, rest in (("without", 0), ("with", 1)):
        chosen = rows[inside & (phase % 2 == rest)]
        report[name] = {
            "key_to_match_ms": summary(((chosen[:, 1] - chosen[:, 0]) / 1e6).tolist()),
            "key_to_receipt_ms": summary(((chosen[:, 2] - chosen[:, 0]) / 1e6).tolist()),
        }
    p99 = [report[name]["key_to_match_ms"]["p99"] for name in ("without", "with")]
    answered = calls[calls[:, 1] > 0]
    return {
        **report,
        "added_p99_ms": None if None in p99 else p99[1] - p99[0],
        "added_p99_of_each_pair_ms": [
            float(np.diff([np.percentile(_times(rows[inside & (phase == n)]), 99)
                           for n in (first, first + 1)])[0])
            for first in range(0, plan.phases, 2)
        ],
        "calls": {
            "rate": len(answered) / (plan.seconds * plan.phases / 2),
            "failed": int((calls[:, 2] == 0).sum()),
            "succeeded": share_of(int((calls[:, 2] != 0).sum()), len(calls)),
            "took_ms": summary(((answered[:, 1] - answered[:, 0]) / 1e6).tolist()),
        },
        "answered": int((rows[:, 0] >= begin_ns).sum()) / sent,
        "hits": hits / len(rows),
    }  # fmt: skip


def _times(rows: Rows) -> npt.NDArray[np.float64]:
    return (rows[:, 1] - rows[:, 0]) / 1e6


def show(report: dict[str, Any]) -> Table:
    """Return a table with a row for each kind of time."""
    table = Table("ms", "calls", "n", "mean", "p50", "p99", "max", title="key to match")
    for kind in ("key_to_match_ms", "key_to_receipt_ms"):
        for name in ("without", "with"):
            table.add_row(kind.removesuffix("_ms"), name, *_cells(report[name][kind]))
    table.add_row("call to answer", "", *_cells(report["calls"]["took_ms"]))
    return table


def _cells(found: dict[str, Any]) -> list[str]:
    values = (found[name] for name in ("mean", "p50", "p99", "max"))
    return [str(found["n"]), *("-" if value is None else f"{value:.2f}" for value in values)]


def main() -> int:
    """Measure, print and write the figures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=3, help="phases without and with calls")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each phase")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("build/reports/services.json"))
    options = parser.parse_args()
    if options.pairs < 1 or options.seconds < 2.0 * SETTLE_S:
        parser.error(f"--pairs must be at least 1, --seconds at least {2.0 * SETTLE_S:g}")
    console = wide_console()
    plan = Plan(2 * options.pairs, options.seconds)
    about = setting(**ros_setting(), clients=CLIENTS, calls_per_client=RATE, entries=ENTRIES)
    with console.status("service calls beside keys"):
        found = measure(plan, options.output.with_suffix(""))
    report = {"setting": about, "phases": plan.phases, "seconds": plan.seconds, **found}
    console.print(show(report))
    calls = report["calls"]
    console.print(f"{calls['rate']:.0f} calls/s answered, {calls['failed']} failed")
    return conclude(report, BOUNDS, options.output, console, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
