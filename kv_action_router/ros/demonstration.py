"""The running part of the demonstration: processes, client, observer, one cycle after the other."""

from __future__ import annotations

import math
import os
import time
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import psutil
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.utilities import get_rmw_implementation_identifier

from kv_action_router.caching.store.location import IN_MEMORY
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.errors import RouterError
from kv_action_router.reporting.live import LiveView
from kv_action_router.reporting.machine import machine
from kv_action_router.reporting.records import CycleRecord, RunRecord
from kv_action_router.reporting.report import Setting
from kv_action_router.ros.arguments import Arguments
from kv_action_router.ros.observer import RunObserver
from kv_action_router.ros.process import make_executor
from kv_action_router.ros.readiness import wait_until_ready
from kv_action_router.ros.supervisor import Supervisor
from kv_action_router.ros.system import SIMULATION, SYSTEMS, System
from kv_action_router.ros.task_client import TaskClient
from kv_action_router.tasks.stages import TaskDefinition
from kv_action_router.tasks.station import Station, load_station

if TYPE_CHECKING:
    from kv_action_router.cli.demo import DemoOptions

# What the simulation says when a task has done its work; others are believed.
_WITNESSES = {
    "touch_target": ("contact", "no contact was seen"),
    "tighten_m3_screw": ("screw", "no screw was let go of"),
    "insert_connector": ("plug", "no plug was left"),
}
# What a person would have done after a failure: the arm may stand at the work, behind a stop.
_WITHDRAWAL = "let_go_and_withdraw"
_WITHDRAWAL_S = 30.0
_TASK_S = 120.0
_LAST_STAGE_S = 0.5
_SPINDLE = "spindle_joint"


def run_work(options: DemoOptions, commit: str) -> tuple[RunRecord, Setting]:
    """Bring the system up, touch targets or drive screws, end it; return what happened.

    A run that ended early says so in ``ended_by``: the system did not come up, died, or somebody
    broke it off.
    """
    load, started = os.getloadavg()[0], datetime.now(UTC)
    station = load_station(options.work)
    arguments = Arguments(
        namespace=options.namespace,
        composed=options.composed,
        params_file=options.params_file,
        cell=station.cell,
        store_path=IN_MEMORY,  # it shows how an empty cache fills
    )
    system = SYSTEMS["ur5e"](arguments).with_parameters(SIMULATION, {"seed": options.seed})
    os.environ.update(system.environment)
    run = RunRecord()
    executor = ""
    try:
        executor = _run_cycles(options, system, station, run)
    except RouterError as error:
        run.ended_by = str(error)
    except (KeyboardInterrupt, ExternalShutdownException):
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
        commanded_torque=commanded_torque(station),
        work=options.work,
        cycles=options.cycles,
        started=started.isoformat(timespec="seconds"),
        machine=machine(),
        essential_only=options.essential_only,
    )


def _run_cycles(options: DemoOptions, system: System, station: Station, run: RunRecord) -> str:
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
        demonstration = _Demonstration(options, station, run, supervisor, node, executor)
        stack.callback(demonstration.end)
        demonstration.wait_until_ready()
        demonstration.run_cycles()
        return type(executor).__name__


def commanded_torque(station: Station) -> float | None:
    """Return the largest torque that tasks let the spindle give [N m]; None = they turn none."""
    limits = [
        stage.execution[_SPINDLE]["stage_effort_limit"]
        for task in station.tasks
        for stage in task.stages
        if "stage_effort_limit" in stage.execution.get(_SPINDLE, {})
    ]
    return max(limits, default=None)


class _Demonstration:
    def __init__(
        self,
        options: DemoOptions,
        station: Station,
        run: RunRecord,
        supervisor: Supervisor,
        node: rclpy.node.Node,
        executor: object,
    ) -> None:
        self._options = options
        self._tasks = station.tasks
        self._run = run
        self._supervisor = supervisor
        self._observer = RunObserver(node, run)
        looking = [
            stage.subtask
            for task in station.tasks
            for stage in task.stages
            if stage.needs_image and not task.target  # what is placed is the first target
        ]
        self._recorder = self._observer.record_cycles(looking)
        self._capture = self._observer.capture_frame(EncoderConfig())
        self._observer.start()
        self._client = TaskClient(node, executor)
        self._view = LiveView(options.work, options.cycles)
        self._drawn = 0.0

    def wait_until_ready(self) -> None:
        """Wait until a task can be run."""
        wait_until_ready(self._observer, self._client, self._check_processes)

    def end(self) -> None:
        """Stop to observe."""
        self._observer.stop()
        self._client.close()

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
                    if not cycle.succeeded and index < self._options.cycles:
                        self._withdraw()
        finally:
            for name, process in processes.items():
                with suppress(psutil.NoSuchProcess):  # it died: that is why
                    self._run.cpu_percent[name] = process.cpu_percent(None)
                    self._run.rss_mb[name] = process.memory_info().rss / 1e6

    def _cycle(self, cycle: CycleRecord) -> None:
        """Run one cycle and write it down, also when it failed."""
        self._recorder.begin(cycle.index)
        sequence = 0
        try:
            sequence = self._client.place_random_target().sequence
            done = [self._perform(task, cycle) for task in self._tasks]
            cycle.succeeded = all(done)
        except RouterError as error:
            cycle.message = str(error)
            self._check_processes()
        finally:
            self._wait_for_last_stage()
            self._recorder.end(cycle, sequence)
            self._hear_witnesses(cycle, sequence)
            traced = self._run.traced_cycle
            if cycle.succeeded or traced is None or not traced.succeeded:
                self._run.trace = self._recorder.trace
        if self._run.frame is None:
            self._run.frame = self._capture.frame

    def _withdraw(self) -> None:
        """After a failed cycle: release a stop whose cause is gone, and clear the work.

        Where that does not succeed, the next cycle fails and says why.
        """
        with suppress(RouterError):
            self._client.release_stop()
        with suppress(RouterError):
            self._client.execute(_WITHDRAWAL, _WITHDRAWAL_S, self._tick)

    def _wait_for_last_stage(self) -> None:
        """Give the end of the last stage time to be heard of: it and the result race."""
        until = time.monotonic() + _LAST_STAGE_S
        while not self._recorder.at_rest and time.monotonic() < until:
            time.sleep(0.01)

    def _perform(self, task: TaskDefinition, cycle: CycleRecord) -> bool:
        """Run a task, unless one before it has failed; return whether it succeeded."""
        if cycle.message:
            return False
        result = self._client.execute(task.name, _TASK_S, self._tick)
        cycle.decisions += result.decisions
        cycle.task_hits += result.task_hits
        cycle.behavior_hits += result.behavior_hits
        cycle.duration = result.duration + (0.0 if math.isnan(cycle.duration) else cycle.duration)
        if not result.success:
            cycle.message = result.error_msg or f"{task.name} did not succeed"
        return bool(result.success)

    def _hear_witnesses(self, cycle: CycleRecord, sequence: int) -> None:
        """Believe no task whose work the simulation has not seen."""
        for task in self._tasks if cycle.succeeded else ():
            event, missing = _WITNESSES.get(task.name, ("", ""))
            truth = self._recorder.witness(event, sequence) if event else None
            if event and truth is None:
                cycle.succeeded, cycle.message = False, missing
            elif event == "plug" and truth is not None and not truth.latched:
                cycle.succeeded, cycle.message = False, "the plug that was left has not latched"

    def _tick(self) -> None:
        now = time.monotonic()
        if now - self._drawn > 0.25:
            self._drawn = now
            self._view.refresh(self._run)
            self._check_processes()

    def _check_processes(self) -> None:
        for death in self._supervisor.deaths():
            raise RouterError(str(death))
