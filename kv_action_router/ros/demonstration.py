"""The running part of the demonstration: processes, client, observer, one cycle after the other."""

from __future__ import annotations

import math
import os
import time
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import psutil
import rclpy
from rclpy.utilities import get_rmw_implementation_identifier

from kv_action_router.caching.store.location import IN_MEMORY
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.errors import RouterError
from kv_action_router.reporting.live import LiveView
from kv_action_router.reporting.machine import machine
from kv_action_router.reporting.records import CycleRecord, RunRecord
from kv_action_router.reporting.report import Setting
from kv_action_router.ros.arguments import Arguments
from kv_action_router.ros.frame_capture import FrameCapture
from kv_action_router.ros.observer import RunObserver
from kv_action_router.ros.process import make_executor
from kv_action_router.ros.readiness import wait_until_ready
from kv_action_router.ros.supervisor import Supervisor
from kv_action_router.ros.system import SIMULATION, SYSTEMS, System
from kv_action_router.ros.task_client import TaskClient
from kv_action_router.tasks.definition import load_task
from kv_action_router.tasks.stages import TaskDefinition

if TYPE_CHECKING:
    from kv_action_router.cli.demo import DemoOptions

TASKS = {"touch": "touch_target", "screw": "tighten_m3_screw"}
_TASK_S = 120.0
_LAST_STAGE_S = 0.5
_SPINDLE = "spindle_joint"


def run_work(options: DemoOptions, commit: str) -> tuple[RunRecord, Setting]:
    """Bring the system up, touch targets or drive screws, end it; return what happened.

    A run that ended early says so in ``ended_by``: the system did not come up, died, or somebody
    broke it off.
    """
    load, started = os.getloadavg()[0], datetime.now(UTC)
    task = load_task(TASKS[options.work])
    arguments = Arguments(
        namespace=options.namespace,
        composed=options.composed,
        params_file=options.params_file,
        cell=options.work,
        store_path=IN_MEMORY,  # it shows how an empty cache fills
    )
    system = SYSTEMS["ur5e"](arguments).with_parameters(SIMULATION, {"seed": options.seed})
    os.environ.update(system.environment)
    run = RunRecord()
    executor = ""
    try:
        executor = _run_cycles(options, system, task, run)
    except RouterError as error:
        run.ended_by = str(error)
    except KeyboardInterrupt:
        run.ended_by = "it was broken off from the keyboard"
    return run, Setting(
        ros_distro=os.environ.get("ROS_DISTRO", "kilted (wheels)"),
        rmw=get_rmw_implementation_identifier(),
        commit=commit,
        seed=options.seed,
        composed=options.composed,
        executor=executor,
        load=load,
        cores=os.cpu_count() or 1,
        commanded_torque=commanded_torque(task),
        work=options.work,
        cycles=options.cycles,
        started=started.isoformat(timespec="seconds"),
        machine=machine(),
        essential_only=options.essential_only,
    )


def _run_cycles(options: DemoOptions, system: System, task: TaskDefinition, run: RunRecord) -> str:
    """Run all cycles of a system; return the name of the executor."""
    with ExitStack() as stack:
        supervisor = Supervisor([system], options.output / "logs")
        stack.callback(supervisor.stop)
        supervisor.start()
        rclpy.init(args=[])
        stack.callback(rclpy.try_shutdown)
        node = rclpy.create_node("demonstration", namespace=options.namespace)
        executor = make_executor()
        executor.add_node(node)
        stack.callback(executor.shutdown)
        demonstration = _Demonstration(options, task, run, supervisor, node, executor)
        stack.callback(demonstration.end)
        demonstration.wait_until_ready()
        demonstration.run_cycles()
        return type(executor).__name__


def commanded_torque(task: TaskDefinition) -> float | None:
    """Return the largest torque that a task lets the spindle give [N m]; None = it turns none."""
    limits = [
        stage.execution[_SPINDLE]["stage_effort_limit"]
        for stage in task.stages
        if "stage_effort_limit" in stage.execution.get(_SPINDLE, {})
    ]
    return max(limits, default=None)


class _Demonstration:
    def __init__(
        self,
        options: DemoOptions,
        task: TaskDefinition,
        run: RunRecord,
        supervisor: Supervisor,
        node: rclpy.node.Node,
        executor: object,
    ) -> None:
        self._options = options
        self._run = run
        self._supervisor = supervisor
        self._observer = RunObserver(node, run)
        looking = [stage.subtask for stage in task.stages if stage.needs_image]
        self._recorder = self._observer.record_cycles(looking)
        self._observer.start()
        self._client = TaskClient(node, executor)
        self._capture = FrameCapture(node, EncoderConfig())
        self._view = LiveView(options.work, options.cycles)
        self._drawn = 0.0

    def wait_until_ready(self) -> None:
        """Wait until a task can be run."""
        wait_until_ready(self._observer, self._client, self._check_processes)

    def end(self) -> None:
        """Stop to observe."""
        self._observer.stop()

    def run_cycles(self) -> None:
        """Run all cycles; a failed one is written down and the next goes on."""
        processes = {
            name.rsplit("/", 1)[-1]: psutil.Process(pid)
            for name, pid in self._supervisor.pids.items()
        }
        for process in processes.values():
            process.cpu_percent(None)
        try:
            with self._view.shown(self._run):
                for index in range(1, self._options.cycles + 1):
                    cycle = CycleRecord(index)
                    self._run.cycles.append(cycle)
                    self._cycle(cycle)
                    self._view.cycle_done(self._run, cycle)
        finally:
            for name, process in processes.items():
                with suppress(psutil.NoSuchProcess):  # it died: that is why
                    self._run.cpu_percent[name] = process.cpu_percent(None)
                    self._run.rss_mb[name] = process.memory_info().rss / 1e6

    def _cycle(self, cycle: CycleRecord) -> None:
        """Run one cycle and write it down, also when it failed."""
        self._recorder.begin(cycle.index)
        sequence = 0
        result = None
        try:
            sequence = self._client.place_random_target().sequence
            result = self._client.execute(TASKS[self._options.work], _TASK_S, self._tick)
        except RouterError as error:
            cycle.message = str(error)
            self._check_processes()
        finally:
            self._wait_for_last_stage()
            self._recorder.end(cycle, sequence)
            if result is not None:
                self._judge(cycle, result)
            traced = self._run.traced_cycle
            if cycle.succeeded or traced is None or not traced.succeeded:
                self._run.trace = self._recorder.trace
        if self._capture.frame is not None and self._run.frame is None:
            self._run.frame = self._capture.frame
            self._capture.close()

    def _wait_for_last_stage(self) -> None:
        """Give the end of the last stage time to be heard of: it and the result race."""
        until = time.monotonic() + _LAST_STAGE_S
        while not self._recorder.at_rest and time.monotonic() < until:
            time.sleep(0.01)

    def _judge(self, cycle: CycleRecord, result: Any) -> None:
        """Take a task's result into a cycle."""
        cycle.decisions = result.decisions
        cycle.task_hits = result.task_hits
        cycle.behavior_hits = result.behavior_hits
        cycle.duration = result.duration
        if self._options.work == "screw":
            seen, missing = cycle.final_torque, "no screw was let go of"
        else:
            seen, missing = cycle.touch_error, "no contact was seen"
        cycle.succeeded = bool(result.success) and math.isfinite(seen)
        cycle.message = result.error_msg or ("" if cycle.succeeded else missing)

    def _tick(self) -> None:
        now = time.monotonic()
        if now - self._drawn > 0.25:
            self._drawn = now
            self._view.refresh(self._run)
            self._check_processes()

    def _check_processes(self) -> None:
        for death in self._supervisor.deaths():
            raise RouterError(str(death))
