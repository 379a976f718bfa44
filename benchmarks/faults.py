"""Faults put into a moving system: is every one safe, and said by the right source?

    .venv/bin/python benchmarks/faults.py [--only joint_states] [--check]      (make test-faults)
    .venv/bin/python benchmarks/faults.py --fault "joint_states nan" "stuck joint"

Each topic gets a simulated system of its own (a DDS domain of its own) with a fault proxy before
that topic, which loses, delays, reorders, doubles and spoils it while the arm moves at 0.3 to 0.5
rad/s; joint states freeze for 2 s, stamps are set back by an hour, the camera is blocked, drives
get hot, a joint is stuck; each node is stopped for half a second, restarted, and killed; somebody
else commands the drives, and engages the stop; all cores are loaded; and pairs of these, drawn at
random, come together. Writes ``build/reports/faults.json``; with ``--check`` it exits with 1 and
names each fault that was not safe.
"""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from rich.console import Console
from rich.table import Table

from harness.injections import (
    LINK_FAULTS,
    OTHER_FAULTS,
    SILENCES,
    load_on_all_cores,
    on_link,
    on_node,
    restarted,
    second_commander,
    stop_by_anybody,
    stuck_joint,
    together,
)
from kv_action_router.caching.store.location import IN_MEMORY
from kv_action_router.errors import RouterError
from kv_action_router.reporting.benchmark import conclude, write
from kv_action_router.reporting.faults import BOUNDS, FaultRecord, figures
from kv_action_router.ros import topics
from kv_action_router.ros.arguments import Arguments
from kv_action_router.ros.fault_bench import Injection, running
from kv_action_router.ros.fault_proxy import behind_proxy
from kv_action_router.ros.shared_memory import without_orphans
from kv_action_router.ros.system import SYSTEMS, System

SPEED = 0.3  # [rad/s] at which a fault comes; it goes on rising
VELOCITY_SHARE = 0.265  # to less than 0.5 rad/s
PAIRS, SEED = 6, 7
SPARE_SYSTEMS = 2  # beside one a fault, for those that do not come up


def campaign() -> Iterator[tuple[str, System, Iterable[Injection]]]:
    """Yield name, system and faults of each run."""
    plain = (
        SYSTEMS["ur5e"](Arguments(store_path=IN_MEMORY))
        .with_parameters("behavior_synthesizer", {"velocity_share": VELOCITY_SHARE})
        # a step that is seen is then the arm's and not the sensor's
        .with_parameters("simulation", {"velocity_noise": 0.0})
    )
    for topic in SILENCES:
        faults = [*LINK_FAULTS, *(fault for fault, _ in OTHER_FAULTS.get(topic, ()))]
        yield topic, behind_proxy(plain, topic), [on_link(topic, fault) for fault in faults]
    others = [second_commander(), stop_by_anybody(), stuck_joint(), load_on_all_cores()]
    yield "others", plain, others
    for node in topics.NODES:
        stopped, killed = on_node(node, signal.SIGSTOP), on_node(node, signal.SIGKILL)
        yield node, plain, [stopped, restarted(node), killed]
    random = Random(SEED)
    for number in range(PAIRS):
        two = random.sample(sorted(SILENCES), 2)
        faults = [on_link(topic, random.choice(LINK_FAULTS)) for topic in two]
        yield f"pair {number + 1}", behind_proxy(plain, *two), [together(*faults)]


@dataclass
class Campaign:
    """What came of the faults so far.

    Attributes:
        records: of faults that were tried.
        repeats: why a system or a task was begun again, with the fault that waited for it.
        missing: faults that could not be tried, and why.
    """

    records: list[FaultRecord] = field(default_factory=list)
    repeats: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def report(self) -> dict[str, Any]:
        """Return what has been found."""
        repeats = {"repeats": self.repeats, "not_measured": self.missing}
        return {"load": os.getloadavg()[0], **repeats, **figures(self.records)}


def run(
    name: str,
    system: System,
    injections: Iterable[Injection],
    folder: Path,
    campaign: Campaign,
    note: Callable[[FaultRecord], None],
) -> None:
    """Put faults into one system, and into a fresh one when that is needed."""
    left = list(injections)
    begun_again = 0
    for attempt in range(len(left) + SPARE_SYSTEMS):
        try:
            with running(system, folder / f"{name.replace('/', '_')}_{attempt}") as bench:
                while left:
                    record = bench.inject(left[0], SPEED)
                    campaign.repeats += [f"{record.name}: {why}" for why in bench.false_starts]
                    bench.false_starts.clear()
                    note(replace(record, begun_again=record.begun_again + begun_again))
                    begun_again = 0
                    left.pop(0)
                    if left:
                        bench.recover()
        except RouterError as error:
            if left:
                begun_again += 1
                campaign.repeats.append(f"{left[0].name}: a fresh system, {error}")
        if not left:
            return
    campaign.missing += [f"{injection.name}: no system came up" for injection in left]


def show(records: list[FaultRecord]) -> Table:
    """Return a table with a row a fault."""
    table = Table("fault", "rad/s", "rest [ms]", "step q", "step v", "task", "wrong")
    for record in records:
        rest = record.reaction_ms
        table.add_row(
            record.name,
            f"{record.speed:.2f}",
            "-" if rest is None else f"{rest:.0f}",
            f"{record.position_step:.2f}",
            f"{record.velocity_step:.2f}",
            record.ended,
            "; ".join(record.faults) or "nothing",
        )
    return table


def main() -> int:
    """Run the campaign; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], help="names of runs; default: all")
    parser.add_argument("--fault", nargs="+", default=[], help="names of faults; default: all")
    parser.add_argument("--domain", type=int, default=98, help="DDS domain; no robot's")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("build/reports/faults.json"))
    options = parser.parse_args()
    os.environ["ROS_DOMAIN_ID"] = str(options.domain)
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    runs = {name: (system, list(faults)) for name, system, faults in campaign()}
    if unknown := set(options.only) - runs.keys():
        parser.error(f"--only must be of {', '.join(runs)}, got {', '.join(sorted(unknown))}")
    names = {fault.name for _, faults in runs.values() for fault in faults}
    if unknown := set(options.fault) - names:
        parser.error(f"--fault must be of {', '.join(sorted(names))}, got {', '.join(unknown)}")
    console, done = Console(), Campaign()

    def note(record: FaultRecord) -> None:
        done.records.append(record)
        wrong = "; ".join(record.faults) or "safe"
        console.print(f"{len(done.records):3d}  {record.name}: {wrong}")
        write(done.report(), options.output)

    for name in options.only or runs:
        system, faults = runs[name]
        if options.fault:
            faults = [fault for fault in faults if fault.name in options.fault]
        if faults:
            with without_orphans():
                run(name, system, faults, options.output.with_suffix(""), done, note)
    console.print(show(done.records))
    for line in done.repeats:
        console.print(f"begun again: {line}")
    for line in done.missing:
        console.print(f"not measured: {line}")
    report = done.report()
    bound = report["safe_lower_bound_95"]
    console.print(
        f"{report['safe']} of {len(done.records)} safe, with 95 %: at least {bound:.3f}; begun "
        f"again {len(done.repeats)} times"
    )
    code = conclude(report, BOUNDS, options.output, console, check=options.check)
    return 1 if done.missing and options.check else code


if __name__ == "__main__":
    raise SystemExit(main())
