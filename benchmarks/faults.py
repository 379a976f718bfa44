"""Faults put into a moving system: is every one safe, and said by the right source?

    .venv/bin/python benchmarks/faults.py [--only joint_states] [--check]      (make test-faults)

Each topic gets a simulated system of its own (a DDS domain of its own) with a fault proxy before
that topic, which loses, delays, reorders, doubles and spoils it while the arm moves at 0.3 to 0.5
rad/s; each node is stopped for half a second, and killed; somebody else commands the drives, and
engages the stop; all cores are loaded. Writes ``build/reports/faults.json``; with ``--check`` it
exits with 1 and names each fault that was not safe.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from kv_action_router.caching.store.location import IN_MEMORY
from kv_action_router.errors import RouterError
from kv_action_router.msg import Stop
from kv_action_router.reporting.benchmark import conclude, write
from kv_action_router.reporting.faults import BOUNDS, FaultRecord, figures
from kv_action_router.ros import topics
from kv_action_router.ros.fault_bench import FaultBench, Injection, running
from kv_action_router.ros.fault_proxy import behind_proxy
from kv_action_router.ros.shared_memory import without_orphans
from kv_action_router.ros.system import SYSTEMS, Arguments, System
from kv_action_router.simulation.faulty_link import Fault

SPEED = 0.3  # [rad/s] at which a fault comes; it goes on rising
VELOCITY_SHARE = 0.265  # to less than 0.5 rad/s
DURATION = 0.6  # [s]
HEARTBEAT_MS = 60.0
MATCHES_MS = 140.0  # a motion goes on 80 ms without a match, and its last chunk 60 ms

# topic -> (after how long its silence can be known [ms], what a report must name)
SILENCES = {
    "joint_states": (20.0, "joint_states"),
    "imu": (50.0, "imu"),
    "wrench": (1e4, ""),
    "drive_state": (1e4, ""),
    "camera/color/image_raw": (300.0, "image"),
    "camera/depth/image_rect_raw": (300.0, "image"),
    "task_key": (MATCHES_MS, "chunk"),
    "cache_match": (MATCHES_MS, "chunk"),
    "trajectory_chunk": (60.0, "chunk"),
    "execution_feedback": (MATCHES_MS, ""),
    "effort_controller/commands": (40.0, ""),
    "obstacle_spheres": (1e4, ""),
    "heartbeat/cache_manager": (HEARTBEAT_MS, "cache_manager"),
}
LINK_FAULTS = (Fault.SILENCE, Fault.DELAY, Fault.REORDER, Fault.DUPLICATE, Fault.NAN)


def on_link(topic: str, fault: Fault) -> Injection:
    """Return a fault of the proxy before a topic."""
    watchdog_ms, source = SILENCES[topic]
    silent = fault in (Fault.SILENCE, Fault.DELAY)
    return Injection(
        f"{topic} {fault}",
        source if silent else "",
        watchdog_ms,
        DURATION,
        lambda bench: bench.proxy(topic, fault),
        lambda bench: bench.proxy(topic, Fault.NONE),
    )


def on_node(node: str, number: signal.Signals) -> Injection:
    """Return a node's being killed, or stopped for half a second."""

    def send(bench: FaultBench, number: signal.Signals) -> None:
        os.kill(bench.supervisor.pids[node], number)

    def end(bench: FaultBench) -> None:
        if number is signal.SIGSTOP:
            send(bench, signal.SIGCONT)

    return Injection(
        f"{node} {number.name}",
        node,
        HEARTBEAT_MS,
        DURATION,
        lambda bench: send(bench, number),
        end,
        node if number is signal.SIGKILL else "",
    )


def second_commander() -> Injection:
    """Return a foreign publisher on the command topic."""
    made: list[Any] = []

    def begin(bench: FaultBench) -> None:
        topic = topics.EFFORT_COMMAND
        made.append(bench.node.create_publisher(topic.type, topic.name, topic.profile()))

    def end(bench: FaultBench) -> None:
        bench.node.destroy_publisher(made.pop())

    # 200 ms to be detected, and then the arm comes to rest
    return Injection("second commander", "fault_bench", 200.0, 1.0, begin, end)


def stop_by_anybody() -> Injection:
    """Return a stop that a person engages."""
    message = Stop(engaged=True, source="person", reason="tried out")
    return Injection(
        "stop", "person", 0.0, DURATION, lambda b: b.stop_publisher.publish(message), _nothing
    )


def load_on_all_cores() -> Injection:
    """Return busy processes, twice as many as cores; no report has to name them."""
    busy: list[multiprocessing.Process] = []

    def begin(_: FaultBench) -> None:
        context = multiprocessing.get_context("spawn")
        count = 2 * (os.cpu_count() or 1)
        busy.extend(context.Process(target=_spin, args=(2.0,)) for _ in range(count))
        for process in busy:
            process.start()

    def end(_: FaultBench) -> None:
        for process in busy:
            process.join()

    return Injection("all cores loaded", "", HEARTBEAT_MS, 2.0, begin, end)


def _spin(duration: float) -> None:
    end = time.monotonic() + duration
    while time.monotonic() < end:
        pass


def _nothing(_: FaultBench) -> None:
    pass


def campaign() -> Iterator[tuple[str, System, Iterable[Injection]]]:
    """Yield name, system and faults of each run."""
    plain = (
        SYSTEMS["ur5e"](Arguments(store_path=IN_MEMORY))
        .with_parameters("behavior_synthesizer", {"velocity_share": VELOCITY_SHARE})
        # a step that is seen is then the arm's and not the sensor's
        .with_parameters("simulation", {"velocity_noise": 0.0})
    )
    for topic in SILENCES:
        yield topic, behind_proxy(plain, topic), [on_link(topic, fault) for fault in LINK_FAULTS]
    others = [second_commander(), stop_by_anybody(), load_on_all_cores()]
    yield "others", plain, others
    for node in topics.NODES:
        yield node, plain, [on_node(node, signal.SIGSTOP), on_node(node, signal.SIGKILL)]


def run(
    name: str,
    system: System,
    injections: Iterable[Injection],
    folder: Path,
    note: Callable[[FaultRecord], None],
    missing: list[str],
) -> None:
    """Put faults into one system; what could not be measured is added to ``missing``."""
    left = list(injections)
    for attempt in range(len(left) + 1):  # a fault that a system does not survive takes it along
        if not left:
            return
        try:
            with running(system, folder / f"{name.replace('/', '_')}_{attempt}") as bench:
                while left:
                    record = bench.inject(left[0], SPEED)
                    left.pop(0)
                    note(record)
                    bench.recover()
        except RouterError as error:
            missing.append(f"{name}, {left[0].name if left else 'recovery'}: {error}")
    missing += [f"{name}, {injection.name}: not tried" for injection in left]


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
    parser.add_argument("--domain", type=int, default=98, help="DDS domain; no robot's")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("build/reports/faults.json"))
    options = parser.parse_args()
    os.environ["ROS_DOMAIN_ID"] = str(options.domain)
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    runs = {name: (system, faults) for name, system, faults in campaign()}
    if unknown := set(options.only) - runs.keys():
        parser.error(f"--only must be of {', '.join(runs)}, got {', '.join(sorted(unknown))}")
    console, records, missing = Console(), [], []  # type: ignore[var-annotated]

    def note(record: FaultRecord) -> None:
        records.append(record)
        wrong = "; ".join(record.faults) or "safe"
        console.print(f"{len(records):3d}  {record.name}: {wrong}")
        write({"not_measured": missing, **figures(records)}, options.output)

    for name in options.only or runs:
        system, faults = runs[name]
        with without_orphans():
            run(name, system, faults, options.output.with_suffix(""), note, missing)
    console.print(show(records))
    for line in missing:
        console.print(f"not measured: {line}")
    report = {"load": os.getloadavg()[0], "not_measured": missing, **figures(records)}
    bound = report["safe_lower_bound_95"]
    console.print(f"{report['safe']} of {len(records)} safe, with 95 %: at least {bound:.3f}")
    code = conclude(report, BOUNDS, options.output, console, check=options.check)
    return 1 if missing and options.check else code


if __name__ == "__main__":
    raise SystemExit(main())
