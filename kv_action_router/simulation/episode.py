"""The whole pipeline in one process, without ROS, in simulated time.

episode = Episode(EpisodeConfig())
result = episode.touch()
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

import numpy as np

from kv_action_router.caching.config import CachingConfig
from kv_action_router.configuration import Configuration, parameter
from kv_action_router.contracts import ExecutionFeedback, FloatArray
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.injection.config import InjectionConfig
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.cell import RobotCell, Samples
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.drives import Interface
from kv_action_router.simulation.shells import (
    Caching,
    Encoding,
    Injection,
    Monitoring,
    SimulatedClock,
    Synthesis,
)
from kv_action_router.simulation.sight import TargetSource
from kv_action_router.simulation.stopwatch import Stopwatch
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.tasks.definition import load_task


@dataclass(frozen=True)
class EpisodeConfig(Configuration):
    """What an episode is made of."""

    task: str = parameter("touch_target", "task that each cycle runs")
    command_delay: int = parameter(
        1, "physics steps between a command and its torque", minimum=0, maximum=10
    )
    settle: float = parameter(0.2, "time before the first task", unit="s", minimum=0.05, maximum=5.0)


@dataclass(frozen=True)
class Stages:
    """Parameters of the simulation and of the five stages."""

    simulation: SimulationConfig = field(default_factory=SimulationConfig)
    encoding: EncoderConfig = field(default_factory=EncoderConfig)
    caching: CachingConfig = field(default_factory=CachingConfig)
    synthesis: SynthesisConfig = field(default_factory=SynthesisConfig)
    injection: InjectionConfig = field(
        default_factory=lambda: InjectionConfig(watched_nodes=("",))  # there are no nodes
    )


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
        tracking_error: largest distance of set-point and measurement [rad].
        decisions, task_hits, behavior_hits: counted in this cycle.
        events: of the injector, for people.
        reports: of the monitor, for people.
    """

    success: bool = False
    reason: str = ""
    target: FloatArray = field(default_factory=lambda: np.full(3, np.nan))
    duration: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)
    touch_error: float = float("nan")
    touch_force: float = float("nan")
    peak_force: float = 0.0
    tracking_error: float = 0.0
    decisions: int = 0
    task_hits: int = 0
    behavior_hits: int = 0
    events: list[str] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)


class Episode:
    """A simulated robot and the five stages, on one thread and one clock.

    Attributes:
        times: computing times of the stages.
        now_ns: simulated CLOCK_MONOTONIC [ns].
        on_step: called after each step with what was sensed.
    """

    def __init__(
        self,
        source: Callable[[RobotCell, SimulationConfig], TargetSource],
        config: EpisodeConfig | None = None,
        stages: Stages | None = None,
    ) -> None:
        """Build everything; ``source`` makes what the image keys come from.

        Raises:
            RouterError: a configuration, robot or task is not valid.
        """
        self.config = config or EpisodeConfig()
        stages = stages or Stages()
        self.task = load_task(self.config.task)
        self.times = times = Stopwatch()
        self.on_step: Callable[[Samples], None] = lambda samples: None
        robots = [RobotModel.load(stages.simulation.robot) for _ in range(4)]  # one a stage, as in nodes
        self.robot = RobotCell(stages.simulation, robots[0], self.config.command_delay)
        clock = SimulatedClock(self.robot.now_ns)
        self._clock = clock
        self.source = source(self.robot, stages.simulation)
        self.encoding = Encoding(stages.encoding, robots[0], self.source, times)
        self.caching = Caching(stages.caching, robots[1], clock, times)
        self.synthesis = Synthesis(stages.synthesis, robots[2], clock, times)
        self.injection = Injection(stages.injection, robots[3], clock.now_ns, times)
        self.monitoring = Monitoring(self.task, times)
        self._interface = Interface(stages.injection.command_interface)
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

    @property
    def feedback(self) -> ExecutionFeedback | None:
        """Newest feedback of the injector."""
        return self.injection.feedback

    def step(self) -> None:
        """Let one physics step pass."""
        samples = self.robot.sense()
        key = self.encoding(samples, self.robot.plant)
        match = self.caching(key)
        chunk = self.synthesis(match, samples)
        command = self.injection(samples, chunk)
        self.robot.act(self._interface, command)

        task = self.synthesis.told(samples.now_ns)
        self.monitoring.hear(task, samples.wrench, samples.drives, self.feedback, key)
        conditions, reports = self.monitoring(samples.now_ns)
        self.synthesis.hear(self.feedback, conditions, self.source.obstacles, samples.now_ns)
        self.injection.hear(reports)
        self.caching.hear(task, [*self.synthesis.taught(), *self.injection.taught()])
        self.encoding.hear(task, self.injection.controller.epoch)
        self._clock.now_ns = self.robot.now_ns
        self.on_step(samples)

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end_ns = self.robot.now_ns + round(seconds * 1e9)
        while self.robot.now_ns < end_ns:
            self.step()

    def touch(self) -> Cycle:
        """Put the target somewhere else, run the task on it, and say what came of it."""
        if self._cycles == 0:
            self.run(self.config.settle)
        self._cycles += 1
        cycle = Cycle(target=self.robot.place_target())
        tasks, injection = self.synthesis.synthesizer.tasks, self.injection
        self.robot.contacts.clear()
        injection.events.clear()
        injection.tracking_error = 0.0
        begin_ns = self.robot.now_ns
        self.synthesis.start(self.task, f"cycle {self._cycles}", begin_ns)
        while tasks.stack.active and not injection.controller.modes.stop.engaged:
            stage = tasks.stack.stage.name
            self.step()
            cycle.stages[stage] = cycle.stages.get(stage, 0.0) + self.robot.plant.dt
            if self.robot.contacts:
                cycle.peak_force = max(cycle.peak_force, self.robot.force)
        self._finish(cycle, begin_ns)
        return cycle

    def _finish(self, cycle: Cycle, begin_ns: int) -> None:
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
        if self.robot.contacts:
            first = self.robot.contacts[0]
            cycle.touch_error, cycle.touch_force = first.error, first.force
