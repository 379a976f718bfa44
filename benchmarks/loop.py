"""Wake-up lateness of the injector's loop, against a plain rclpy timer.

    .venv/bin/python benchmarks/loop.py [--seconds 10] [--check]

Every combination of 500 Hz and 1 kHz, with and without SCHED_FIFO, idle and with every core busy,
in a process of its own; the loop runs the injection controller on a joint state a tick. Writes
``build/reports/bench/loop.json``; with ``--check`` it exits with 1 and names each figure that falls
short. Lateness is measured from the absolute deadline, for the timer from the time that it tells;
the first second is left out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from array import array
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from harness.load import all_cores, busy_cores
from harness.setting import ros_setting, setting
from kv_action_router import realtime
from kv_action_router.injection.lateness import LatenessMeter
from kv_action_router.reporting.benchmark import conclude
from kv_action_router.reporting.bounds import Bound, at
from kv_action_router.reporting.statistics import distribution

PRIORITY = 60
WARM_UP_S = 1.0
RATES = (500, 1000)
CASES = [
    (kind, rate, scheduled, loaded)
    for rate in RATES
    for loaded in (False, True)
    for kind, scheduled in (("loop", True), ("loop", False), ("timer", False))
]
BOUNDS = (
    Bound("1 kHz, FIFO, busy cores: p99.9 in us", at("loop_1000_fifo_loaded", "p999"), "<=", 150.0),
    Bound("1 kHz, FIFO, busy cores: max in us", at("loop_1000_fifo_loaded", "max"), "<=", 1000.0),
)


class EveryLateness(LatenessMeter):
    """Keeps each lateness, where the injector counts them in bins."""

    def __init__(self, rate: int, seconds: float) -> None:
        super().__init__(time.monotonic_ns())
        self.late = array("q", bytes(8 * int(rate * (seconds + 2 * WARM_UP_S))))
        self.count = 0

    def record(self, now_ns: int, late_ns: int) -> None:
        """Keep one."""
        if self.count < len(self.late):
            self.late[self.count] = late_ns
            self.count += 1


def name_of(kind: str, rate: int, scheduled: bool, loaded: bool) -> str:
    """Return the name of a case in the report."""
    policy = "fifo" if scheduled else "normal"
    return f"{kind}_{rate}_{policy}_{'loaded' if loaded else 'idle'}"


def run_loop(rate: int, seconds: float, *, scheduled: bool) -> dict[str, Any]:
    """Run the control loop by the injector's recipe; return its lateness [us]."""
    from kv_action_router.contracts import JointReading
    from kv_action_router.injection.config import InjectionConfig
    from kv_action_router.injection.controller import InjectionController
    from kv_action_router.injection.loop import DeadlineLoop
    from kv_action_router.injection.signals import Inputs
    from kv_action_router.robots.execution_values import load_execution_value
    from kv_action_router.robots.model import RobotModel

    refusal = realtime.schedule_process(PRIORITY if scheduled else 0)
    if scheduled:
        realtime.lock_memory()
    model, config = RobotModel.load("ur5e"), InjectionConfig(rate=float(rate))
    controller = InjectionController(model, config, load_execution_value("ur5e"))
    inputs, home = Inputs(), model.home.tolist()
    controller.activate(time.monotonic_ns())
    still = (0.0,) * model.n

    def tick(now_ns: int) -> None:
        inputs.joints = JointReading(model.joint_names, home, still, still, now_ns, now_ns)
        controller.tick(now_ns, inputs)

    errors: list[Exception] = []
    loop = DeadlineLoop(
        config.period_ns, tick, errors.append, priority=PRIORITY + 1 if scheduled else 0
    )
    meter = EveryLateness(rate, seconds)
    loop.meter = meter
    realtime.rest_garbage()
    loop.start()
    time.sleep(WARM_UP_S + seconds)
    loop.stop()
    if errors:
        raise errors[0]
    figures = _figures(meter.late, meter.count, rate)
    figures.update(missed=meter.missed, refusal=refusal)
    return figures


def run_timer(rate: int, seconds: float) -> dict[str, Any]:
    """Run a timer of rclpy's default executor; return its lateness [us]."""
    import rclpy
    from rclpy.clock import Clock, ClockType
    from rclpy.timer import TimerInfo

    rclpy.init(args=[])
    node = rclpy.create_node("timer")
    clock = Clock(clock_type=ClockType.STEADY_TIME)
    late = array("q", bytes(8 * int(rate * (seconds + 2 * WARM_UP_S))))
    count = 0

    def tick(info: TimerInfo) -> None:
        nonlocal count
        if count < len(late):
            late[count] = clock.now().nanoseconds - info.expected_call_time.nanoseconds
            count += 1

    tick.__annotations__["info"] = TimerInfo  # rclpy looks at the type itself, not at its name
    node.create_timer(1.0 / rate, tick, clock=clock)
    until = time.monotonic() + WARM_UP_S + seconds
    while time.monotonic() < until:
        rclpy.spin_once(node, timeout_sec=0.1)
    node.destroy_node()
    rclpy.shutdown()
    figures = _figures(late, count, rate)
    figures.update(missed=max(0, int(rate * seconds) - figures["n"]), refusal="")
    return figures


def _figures(late: array[int], count: int, rate: int) -> dict[str, Any]:
    measured = np.array(late[int(rate * WARM_UP_S) : count]) * 1e-3
    return distribution(measured.tolist())


def measure(kind: str, rate: int, scheduled: bool, loaded: bool, seconds: float) -> dict[str, Any]:
    """Run one case in a process of its own."""
    command = [sys.executable, __file__, "--seconds", str(seconds)]
    command += ["--case", f"{kind},{rate},{int(scheduled)}"]
    with busy_cores(all_cores() if loaded else 0):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{kind} at {rate} Hz failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def show(report: dict[str, Any]) -> Table:
    """Return a table with a row for each case."""
    table = Table("loop", "Hz", "policy", "cores", "n", "p50", "p99", "p99.9", "max", "missed")
    table.title = "wake-up lateness in us"
    for case in CASES:
        kind, rate, _, loaded = case
        found = report[name_of(*case)]
        table.add_row(
            "injector" if kind == "loop" else "timer",
            str(rate),
            "FIFO" if case[2] else "normal",
            "busy" if loaded else "idle",
            str(found["n"]),
            *(f"{found[name]:.0f}" for name in ("p50", "p99", "p999", "max")),
            str(found["missed"]),
        )
    return table


def main() -> int:
    """Measure, print and write the figures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each case")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("build/reports/bench/loop.json"))
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    console = Console()
    if options.case:
        kind, rate, scheduled = options.case.split(",")
        run = run_timer if kind == "timer" else run_loop
        more = {"scheduled": scheduled == "1"} if kind == "loop" else {}
        console.out(json.dumps(run(int(rate), options.seconds, **more)), highlight=False)
        return 0
    report: dict[str, Any] = {
        "setting": setting(**ros_setting(), seconds=options.seconds, warm_up_s=WARM_UP_S)
    }
    for case in CASES:
        with console.status(name_of(*case)):
            report[name_of(*case)] = measure(*case, options.seconds)
    console.print(show(report))
    if refusal := report["loop_1000_fifo_loaded"]["refusal"]:
        console.print(refusal)
    return conclude(report, BOUNDS, options.output, console, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
