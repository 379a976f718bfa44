"""The whole pipeline in one process, without ROS, in simulated time.

with Episode(rendered_images) as episode:
    cycle = episode.touch()
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

import numpy as np

from kv_action_router.caching.config import CachingConfig
from kv_action_router.contracts import SLICES, FloatArray, StageCondition
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.errors import ConfigError
from kv_action_router.injection.config import InjectionConfig
from kv_action_router.monitoring.events import FailureReport
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.cell import Cell, RobotCell, Samples
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.drives import Interface
from kv_action_router.simulation.plant import CONNECTOR
from kv_action_router.simulation.shells.caching import Caching
from kv_action_router.simulation.shells.encoding import Encoding
from kv_action_router.simulation.shells.injection import Injection
from kv_action_router.simulation.shells.monitoring import Monitoring
from kv_action_router.simulation.shells.synthesis import Synthesis
from kv_action_router.simulation.sight import Sight
from kv_action_router.simulation.stopwatch import Stopwatch
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.tasks.definition import load_task
from kv_action_router.tasks.stages import TaskDefinition


@dataclass(frozen=True)
class EpisodeConfig:
    """What an episode is made of.

    Attributes:
        task: that each cycle begins with.
        further_tasks: that follow it in each cycle, in order.
        command_delay: physics steps between a command and its torque; what a driver adds.
        settle: time before the first task [s].
        masked_slices: names of slices that keys do without, to see what they are good for.
        simulation, encoding, caching, synthesis, injection: of the robot and of the stages.
    """

    task: str = "touch_target"
    further_tasks: tuple[str, ...] = ()
    command_delay: int = 1
    settle: float = 0.2
    masked_slices: tuple[str, ...] = ()
    simulation: SimulationConfig = field(default_factory=SimulationConfig)
    encoding: EncoderConfig = field(default_factory=EncoderConfig)
    caching: CachingConfig = field(default_factory=CachingConfig)
    synthesis: SynthesisConfig = field(default_factory=SynthesisConfig)
    injection: InjectionConfig = field(
        default_factory=lambda: InjectionConfig(watched_nodes=("",))  # there are no nodes
    )

    def __post_init__(self) -> None:
        if not 0 <= self.command_delay <= 10:
            raise ConfigError("command_delay", "0 to 10 steps", self.command_delay)
        if not 0.05 <= self.settle <= 5.0:
            raise ConfigError("settle", "0.05 to 5 s", self.settle)
        if not set(self.masked_slices) <= set(SLICES):
            raise ConfigError("masked_slices", f"among {', '.join(SLICES)}", self.masked_slices)


@dataclass
class Cycle:
    """What one cycle of the task came to.

    Attributes:
        success: the task reached its end.
        reason: why it did not.
        target: true center of the target's top face [m] (3,).
        duration: of the task [s].
        stages: duration of each stage [s].
        touch_error: distance of the first contact from the target's center [m]; NaN = no contact.
        touch_force: normal force in the step of first contact [N].
        peak_force: largest magnitude measured at the tool from then on [N].
        contact_force: largest magnitude at the tool, free of its tare, in stages that may touch
            something [N].
        tracking_error: largest distance of set-point and measurement [rad].
        decisions, task_hits, behavior_hits, false_hits: counted in this cycle.
        events: of the injector, for people.
        reports: of the monitor, for people.
        final_torque: that the screw was turned with last [N m]; NaN = there is no screw.
        advance: of the screw [m].
        search: way of the bit before it was in, on the screw's head or the plug's [m].
        insertion: how far the plug is in its socket [m]; NaN = the task has no plug.
        insertion_force: largest force that the plug was pushed with [N].
        latched: the latch holds the plug.
    """

    success: bool = False
    reason: str = ""
    target: FloatArray = field(default_factory=lambda: np.full(3, np.nan))
    duration: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)
    touch_error: float = float("nan")
    touch_force: float = float("nan")
    peak_force: float = 0.0
    contact_force: float = 0.0
    tracking_error: float = 0.0
    decisions: int = 0
    task_hits: int = 0
    behavior_hits: int = 0
    false_hits: int = 0
    events: list[str] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)
    final_torque: float = float("nan")
    advance: float = float("nan")
    search: float = float("nan")
    insertion: float = float("nan")
    insertion_force: float = float("nan")
    latched: bool = False


class Episode:
    """A simulated robot and the five stages, on one thread and one clock.

    Attributes:
        robot: plant, sensors and drives.
        encoding, caching, synthesis, injection, monitoring: the stages.
        source: of image keys.
        times: computing times of the stages.
        on_step: called after each step with what was sensed before it.
    """

    def __init__(
        self,
        sight: Sight,
        config: EpisodeConfig | None = None,
        cell: Callable[[SimulationConfig, RobotModel, int], Cell] = RobotCell,
        times: Stopwatch | None = None,
    ) -> None:
        """Build everything.

        Args:
            sight: makes what the image keys come from: ``rendered_images`` or ``true_target``.
            config: of all parts.
            cell: makes the robot cell: ``RobotCell``, with physics, or another.
            times: takes the computing times; None = a new one.

        Raises:
            RouterError: a configuration, robot or task is not valid.
        """
        self.config = config = config or EpisodeConfig()
        self.tasks = tuple(load_task(name) for name in (config.task, *config.further_tasks))
        self.task = self.tasks[0]
        self.times = times = times or Stopwatch()
        self.on_step: Callable[[Samples], None] | None = None
        # One a stage, as in the nodes: a model keeps the state of its last computation.
        robots = [RobotModel.load(config.simulation.robot) for _ in range(5)]
        self.robot = robot = cell(config.simulation, robots[0], config.command_delay)
        self.source = sight(robot.plant, config.simulation)
        self.encoding = Encoding(
            config.encoding, robots[0], self.source, times, config.masked_slices
        )
        self.caching = Caching(config.caching, robots[1], robot.clock, times)
        self.synthesis = Synthesis(config.synthesis, robots[2], robot.clock, times)
        self.injection = Injection(config.injection, robots[3], robot.now_ns, times)
        self.monitoring = Monitoring(self.tasks, robots[4], times)
        self._interface = Interface(config.injection.command_interface)
        self._cycles = 0

    def __enter__(self) -> Episode:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.source.close()

    def step(self) -> None:
        """Let one physics step pass."""
        samples = self.robot.sense()
        key = self.encoding(samples, self.robot.plant)
        match = self.caching(key)
        chunk = self.synthesis(match, samples)
        command = self.injection(samples, chunk)
        conditions, reports = self.monitoring(samples, key, self.injection.feedback)
        self.robot.act(self._interface, command)
        self._tell(samples.now_ns, conditions, reports)
        if self.on_step is not None:
            self.on_step(samples)

    def _tell(
        self, now_ns: int, conditions: list[StageCondition], reports: list[FailureReport]
    ) -> None:
        """Close the loops beside the main line: what each stage hears from the ones after it."""
        synthesis, injection = self.synthesis, self.injection
        synthesis.hear(injection.feedback, conditions, self.source.obstacles, now_ns)
        synthesis.respond(self.monitoring.requests, now_ns)
        injection.hear(reports, self.caching.changed_execution())
        task = synthesis.told(now_ns)
        self.caching.see(self.source.obstacles)
        self.caching.hear(task, [*synthesis.taught(), *injection.taught()])
        self.encoding.hear(task, injection.controller.epoch)
        self.monitoring.hear(task, self.source.obstacles, self.caching.rates(now_ns))

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end_ns = self.robot.now_ns + round(seconds * 1e9)
        while self.robot.now_ns < end_ns:
            self.step()

    def touch(self) -> Cycle:
        """Put the target somewhere else, run the first task on it, and say what came of it."""
        return self.perform(self.task, self.place())

    def cycle(self) -> list[Cycle]:
        """Put everything somewhere else and run all tasks; return what came of each.

        What comes after a task that failed is not run.
        """
        target = self.place()
        cycles: list[Cycle] = []
        for task in self.tasks:
            cycles.append(self.perform(task, target))
            if not cycles[-1].success:
                break
        return cycles

    def place(self) -> FloatArray:
        """Put what is worked on somewhere else; return the center of the target's top [m] (3,)."""
        if self._cycles == 0:
            self.run(self.config.settle)
        self._cycles += 1
        return self.robot.place_target()

    def perform(self, task: TaskDefinition, target: FloatArray) -> Cycle:
        """Run a task, and say what came of it."""
        cycle = Cycle(target=target)
        tasks, injection = self.synthesis.synthesizer.tasks, self.injection
        false_hits = self._false_hits()
        self.robot.contacts.clear()
        injection.events.clear()
        injection.tracking_error = 0.0
        begin_ns = self.robot.now_ns
        self.synthesis.start(task, f"cycle {self._cycles}: {task.name}", begin_ns)
        while tasks.stack.active and not injection.controller.modes.stop.engaged:
            stage = tasks.stack.stage
            self.step()
            cycle.stages[stage.name] = cycle.stages.get(stage.name, 0.0) + self.robot.plant.dt
            if self.robot.contacts:
                cycle.peak_force = max(cycle.peak_force, self.robot.force)
            if stage.allowed_contact:
                cycle.contact_force = max(cycle.contact_force, self.monitoring.contact_force)
        self._finish(cycle, task, begin_ns)
        cycle.false_hits = self._false_hits() - false_hits
        return cycle

    def _false_hits(self) -> int:
        layers = self.caching.manager.statistics().layers
        return sum(layer.counters.false_hits for layer in layers if layer.layer == "task")

    def _finish(self, cycle: Cycle, task: TaskDefinition, begin_ns: int) -> None:
        stack, injection = self.synthesis.synthesizer.tasks.stack, self.injection
        cycle.success, cycle.reason = stack.outcome.success, stack.outcome.message
        if injection.controller.modes.stop.engaged:
            cycle.reason = injection.controller.modes.reason
        cycle.duration = (self.robot.now_ns - begin_ns) * 1e-9
        counters = stack.counters
        cycle.decisions = counters.decisions
        cycle.task_hits, cycle.behavior_hits = counters.task_hits, counters.behavior_hits
        cycle.tracking_error = injection.tracking_error
        cycle.events = [f"{event.kind.name}: {event.reason}" for event in injection.events]
        cycle.reports = [report.message for report in self.monitoring.reports]
        self.monitoring.reports.clear()
        screw, connector = self.robot.screw, self.robot.connector
        if connector is not None and task.target == CONNECTOR:
            cycle.search = connector.search
            cycle.insertion = connector.socket.depth
            cycle.insertion_force = connector.socket.peak_force
            cycle.latched = connector.socket.latched
        elif screw is not None:
            cycle.final_torque, cycle.search = screw.peak_torque, screw.search
            cycle.advance = screw.thread.advance
        if self.robot.contacts:
            first = self.robot.contacts[0]
            cycle.touch_error, cycle.touch_force = first.error, first.force
