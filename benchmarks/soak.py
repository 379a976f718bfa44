"""Does anything grow, or decay, while a system works for long and its nodes are killed?

    .venv/bin/python benchmarks/soak.py [--minutes 30] [--life 5] [--check]

A simulated arm touches targets at random places, from a cache on disk. The light changes with every
target from day to dusk, the drives age by 10 h in the run, and at the end of each life one node is
killed while the arm moves; the next life starts on the same cache. What is measured: memory and
file descriptors of every process and their slopes, shared-memory segments left behind, task hits
and false hits over time, and hits in the first cycle after a restart. An arm has no wheels: slip is
measured by the encoder's tests, not here. Writes ``build/reports/soak.json``; with ``--check`` it
exits with 1 and names each figure that falls short. Not part of ``make bench``.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from harness.setting import ros_setting, setting
from kv_action_router.errors import RouterError
from kv_action_router.reporting.benchmark import conclude, write
from kv_action_router.reporting.records import RunRecord
from kv_action_router.reporting.soak import BOUNDS, Cycle, Holding, Life, figures
from kv_action_router.ros.arguments import Arguments
from kv_action_router.ros.observer import RunObserver
from kv_action_router.ros.readiness import wait_until_ready
from kv_action_router.ros.running_system import running_system
from kv_action_router.ros.shared_memory import opened_here, remove_orphans, segments
from kv_action_router.ros.supervisor import Supervisor
from kv_action_router.ros.system import SIMULATION, SYSTEMS, System
from kv_action_router.ros.task_client import TaskClient
from kv_action_router.ros.topics import NODES

TASK, TASK_S = "touch_target", 60.0
WARM_UP_S = 90.0  # first plans, first images, first pages of the file
SAMPLE_S = 5.0
KILLED_AFTER_S = 0.6  # into a task: the arm moves
AGEING = 10.0  # [h] of the drives, over the whole run


class Sampler:
    """Notes what each process holds, every few seconds."""

    def __init__(self, supervisor: Supervisor, life: Life) -> None:
        self._processes = {
            name.rsplit("/", 1)[-1]: psutil.Process(pid) for name, pid in supervisor.pids.items()
        }
        self._life = life
        self._begin = time.monotonic()
        self._due = self._begin + WARM_UP_S

    def tick(self) -> None:
        """Take a sample when one is due."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + SAMPLE_S
        for name, process in self._processes.items():
            held = Holding(now - self._begin, process.memory_info().rss / 1e6, process.num_fds())
            self._life.holdings.setdefault(name, []).append(held)


def touch(client: TaskClient, run: RunRecord, tick: Callable[[], None]) -> Cycle:
    """Touch one target; return what came of it."""
    wrong = run.false_hits
    client.place_random_target()
    result = client.execute(TASK, TASK_S, tick)
    return Cycle(
        int(result.decisions), int(result.task_hits), run.false_hits - wrong, bool(result.success)
    )


def live(system: System, folder: Path, seconds: float, victim: str) -> Life:
    """Run one life of a system and kill a node of it at the end (empty = none)."""
    life, run = Life(), RunRecord()
    with running_system(system, folder, "soak") as (supervisor, node, executor):
        observer, client = RunObserver(node, run), TaskClient(node, executor)
        observer.start()
        try:
            wait_until_ready(observer, client)
            sampler = Sampler(supervisor, life)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                life.cycles.append(touch(client, run, sampler.tick))
                for death in supervisor.deaths():
                    raise RouterError(str(death))
            if victim:
                client.place_random_target()
                client.begin(TASK, TASK_S)
                struck = time.monotonic() + KILLED_AFTER_S
                client.wait(lambda: time.monotonic() >= struck, TASK_S, lambda: "the kill")
                os.kill(supervisor.pids[victim], signal.SIGKILL)
                life.killed = victim
                rest = time.monotonic() + 1.0  # the others see it, and write what they have learned
                client.wait(lambda: time.monotonic() >= rest, TASK_S, lambda: "the rest")
        finally:
            observer.stop()
            client.close()
    return life


def show(report: dict[str, Any]) -> Table:
    """Return a table with a row for each process of each life."""
    table = Table("life", "process", "n", "rss [MB]", "growth [MB/h]", "at least", "descriptors")
    for row in report["processes"]:
        first, *last = row["descriptors"] or [0]
        table.add_row(
            str(row["life"]),
            row["process"],
            str(row["n"]),
            f"{row['rss_mb']:.1f}",
            f"{row['growth_mb_h']:.1f}",
            f"{row['growth_mb_h_low']:.1f}",
            f"{first} to {last[0] if last else first}",
        )
    return table


def main() -> int:
    """Let it soak; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--life", type=float, default=5.0, help="minutes between kills")
    parser.add_argument("--domain", type=int, default=97, help="DDS domain; no robot's")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("build/reports/soak.json"))
    options = parser.parse_args()
    if options.life <= 0.0 or options.minutes < options.life:
        parser.error("--life must be above 0 and at most --minutes")
    os.environ["ROS_DOMAIN_ID"] = str(options.domain)
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    conditions = setting(**ros_setting(), minutes=options.minutes, life=options.life)
    console, lives, missing = Console(), [], []  # type: ignore[var-annotated]
    end = time.monotonic() + 60.0 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        system = SYSTEMS["ur5e"](
            Arguments(store_path=str(Path(folder) / "cache.db"))
        ).with_parameters(
            SIMULATION,
            {"light_change": 0.5, "ageing_speed": AGEING / (options.minutes / 60.0)},
        )
        while time.monotonic() < end:
            seconds = min(60.0 * options.life, end - time.monotonic())
            victim = NODES[len(lives) % len(NODES)] if seconds >= 60.0 * options.life else ""
            before = segments()
            logs = options.output.with_suffix("") / str(len(lives))
            try:
                lives.append(live(system, logs, seconds, victim))
            except RouterError as error:
                missing.append(f"life {len(lives)}: {error}")
                console.print(f"not measured: {missing[-1]}", markup=False)
                if len(missing) > 2:
                    break
                continue
            finally:
                remove_orphans(before)
            left = segments() - before
            lives[-1].segments = len(left - opened_here(left))
            done = lives[-1].cycles
            console.print(
                f"life {len(lives)}: {len(done)} cycles, {sum(c.succeeded for c in done)} touched,"
                f" {victim or 'nobody'} killed"
            )
            write({"not_measured": missing, **figures(lives)}, options.output)
    report = {**conditions, "not_measured": missing, **figures(lives)}
    console.print(show(report))
    code = conclude(report, BOUNDS, options.output, console, check=options.check)
    return 1 if missing and options.check else code


if __name__ == "__main__":
    raise SystemExit(main())
