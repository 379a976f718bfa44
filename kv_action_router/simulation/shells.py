"""What the nodes do around the pure stages, without ROS: rates, and what each stage hears and tells.

One class a stage. All run on one thread, in simulated time; :mod:`episode` connects them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kv_action_router.caching.config import CachingConfig
from kv_action_router.caching.manager import CacheManager
from kv_action_router.contracts import (
    CacheMatch,
    Decision,
    EntryUpdate,
    ExecutionFeedback,
    FloatArray,
    InjectorEvent,
    ObstacleSpheres,
    StageCondition,
    TaskKey,
    TaskState,
    TrajectoryChunk,
    UpdateOperation,
)
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.encoder import KeyEncoder, Origin
from kv_action_router.errors import RouterError
from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.controller import InjectionController
from kv_action_router.injection.events import Event
from kv_action_router.injection.signals import Inputs, JointReading
from kv_action_router.injection.stop_latch import StopRequest
from kv_action_router.monitoring.events import FailureReport
from kv_action_router.monitoring.monitor import FailureMonitor
from kv_action_router.monitoring.response import STOPPING, default_table, load_rules
from kv_action_router.monitoring.samples import KeySample
from kv_action_router.robots.execution_values import load_execution_value
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.cell import Samples
from kv_action_router.simulation.plant import Plant
from kv_action_router.simulation.sight import TargetSource
from kv_action_router.simulation.stopwatch import Stopwatch
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.synthesizer import BehaviorSynthesizer
from kv_action_router.tasks.stages import TaskDefinition

_BODY_SHARE = 0.6  # of a key's period that must have passed since the last key
_FEEDBACK_NS = 10_000_000


class Encoding:
    """Stage 1: a key for each image, and 100 a second between them."""

    def __init__(
        self, config: EncoderConfig, robot: RobotModel, source: TargetSource, times: Stopwatch
    ) -> None:
        self._encoder = KeyEncoder(config, robot)
        self._source = source
        self._times = times
        self._period_ns = round(1e9 / config.key_rate)
        self._due_ns = 0
        self._last_ns = 0

    def hear(self, task: TaskState | None, epoch: int) -> None:
        """Take the newest task state, and the injector's epoch."""
        if task is not None:
            self._encoder.on_task(task)
        self._encoder.on_epoch(epoch)

    def __call__(self, samples: Samples, plant: Plant) -> TaskKey | None:
        """Return the key that is due, if any."""
        encoder, joints, now_ns = self._encoder, samples.joints, samples.now_ns
        encoder.joints.update(
            joints.names, joints.position, joints.velocity, joints.effort, now_ns, now_ns
        )
        if samples.imu is not None:
            encoder.inputs.on_imu(samples.imu)
        if samples.drives is not None:
            encoder.inputs.on_drives(samples.drives)
        origin = Origin(now_ns, now_ns, now_ns)
        key = None
        if samples.image_due:
            key = self._source.look(encoder, plant, origin, self._times)
        if key is None and now_ns >= self._due_ns:
            if now_ns - self._last_ns < _BODY_SHARE * self._period_ns:
                return None
            with self._times.measure("encode joints"):
                key = encoder.on_body(now_ns, origin)
        if key is not None:
            self._last_ns = now_ns
            self._due_ns = (now_ns // self._period_ns + 1) * self._period_ns
        return key


class Caching:
    """Stage 2: a match for each key; updates beside it."""

    def __init__(
        self, config: CachingConfig, robot: RobotModel, clock: SimulatedClock, times: Stopwatch
    ) -> None:
        execution = load_execution_value(robot.name)
        self.manager = CacheManager(config, robot, execution, clock=clock)
        self.refused: list[str] = []  # updates that were not taken, and why
        self._times = times

    def hear(self, task: TaskState | None, updates: Sequence[EntryUpdate]) -> None:
        """Take the newest task state, and what execution teaches."""
        if task is not None:
            self.manager.on_task_state(task)
        for update in updates:
            try:
                self.manager.apply(update)
            except RouterError as error:
                self.refused.append(str(error))

    def __call__(self, key: TaskKey | None) -> CacheMatch | None:
        """Answer a key."""
        if key is None:
            return None
        begin = self._times.now()
        match = self.manager.on_key(key)
        kind = "match decision" if match.is_decision else "match refresh"
        self._times.since(kind, begin)
        return match


class Synthesis:
    """Stage 3: chunks, and the task's course."""

    def __init__(
        self,
        config: SynthesisConfig,
        robot: RobotModel,
        clock: SimulatedClock,
        times: Stopwatch,
    ) -> None:
        self.synthesizer = BehaviorSynthesizer(robot, config, clock=clock)
        self.decisions: list[CacheMatch] = []
        self._times = times
        self._version = -1
        self._states = 0

    def start(self, task: TaskDefinition, goal_id: str, now_ns: int) -> None:
        """Begin a task."""
        self.synthesizer.tasks.start(task, goal_id, now_ns)

    def hear(
        self,
        feedback: ExecutionFeedback | None,
        conditions: Sequence[StageCondition],
        obstacles: ObstacleSpheres | None,
        now_ns: int,
    ) -> None:
        """Take the injector's feedback, the monitor's conditions and the newest obstacles."""
        if feedback is not None:
            self.synthesizer.tracking.feedback = feedback
        for condition in conditions:
            self.synthesizer.tasks.on_condition(condition, now_ns)
        if obstacles is not None:
            self.synthesizer.obstacles = np.column_stack((obstacles.center, obstacles.radius))

    def __call__(self, match: CacheMatch | None, samples: Samples) -> TrajectoryChunk | None:
        """Return the chunk that a match makes, else the continuation that is due."""
        synthesizer, now_ns = self.synthesizer, samples.now_ns
        synthesizer.tracking.joints = samples.joints
        chunk = None
        if match is not None:
            chunk = self._on_match(match, now_ns)
        if chunk is None:
            begin = self._times.now()
            chunk = synthesizer.on_tick(now_ns)
            if chunk is not None:
                self._times.since("continuation", begin)
        return chunk

    def told(self, now_ns: int) -> TaskState | None:
        """Return the task's state when it has changed."""
        tasks = self.synthesizer.tasks
        if tasks.stack.version == self._version:
            return None
        self._version = tasks.stack.version
        self._states += 1
        return tasks.state(now_ns, self._states)

    def taught(self) -> list[EntryUpdate]:
        """Return what the cache should learn, oldest first, once."""
        updates = self.synthesizer.tasks.updates
        return [updates.popleft() for _ in range(len(updates))]

    def _on_match(self, match: CacheMatch, now_ns: int) -> TrajectoryChunk | None:
        tasks = self.synthesizer.tasks
        awaiting, begin = tasks.stack.awaiting, self._times.now()
        chunk = self.synthesizer.on_match(match, now_ns)
        if awaiting and not tasks.stack.awaiting:
            self.decisions.append(match)
            reused = tasks.execution is not None and tasks.execution.reused
            self._times.since("decide on hit" if reused else "decide on miss", begin)
        elif chunk is not None:
            self._times.since("follow target", begin)
        return chunk


class Injection:
    """Stage 4: a command a step, feedback 100 times a second and on events."""

    def __init__(
        self, config: InjectionConfig, robot: RobotModel, now_ns: int, times: Stopwatch
    ) -> None:
        self.controller = InjectionController(robot, config, load_execution_value(robot.name))
        self.controller.activate(now_ns)
        self.feedback: ExecutionFeedback | None = None  # newest
        self.events: list[Event] = []  # all but adoptions
        self.tracking_error = 0.0  # [rad] largest since the owner set it to 0
        self._updates: list[EntryUpdate] = []
        self._stops: list[StopRequest] = []
        self._inputs = Inputs()
        self._times = times
        self._due_ns = 0

    def hear(self, reports: Sequence[FailureReport]) -> None:
        """Engage the stop that the monitor's reports ask for."""
        for report in reports:
            if not STOPPING.isdisjoint(report.responses):
                self._stops.append(
                    StopRequest(True, "failure_monitor", report.message, report.monotonic_ns)
                )

    def __call__(self, samples: Samples, chunk: TrajectoryChunk | None) -> FloatArray | None:
        """Return the command (n,); None = silence."""
        controller, inputs, now_ns = self.controller, self._inputs, samples.now_ns
        inputs.clear()
        inputs.joints = JointReading.of(samples.joints)
        inputs.chunk, inputs.imu, inputs.drives = chunk, samples.imu, samples.drives
        inputs.stops += self._stops
        self._stops.clear()
        with self._times.measure("injector tick"):
            command = controller.tick(now_ns, inputs)
        if command.send:
            controller.sent(now_ns)
        self._tell(now_ns)
        return np.array(command.values) if command.send else None

    def taught(self) -> list[EntryUpdate]:
        """Return changed execution values, oldest first, once."""
        updates, self._updates = self._updates, []
        return updates

    def _tell(self, now_ns: int) -> None:
        controller = self.controller
        if controller.modes.chunk is not None:
            error = np.subtract(controller.set_point.position, controller.joints.position)
            self.tracking_error = max(self.tracking_error, float(np.abs(error).max()))
        events = controller.modes.events
        while events:
            event = events.popleft()
            self.feedback = self._feedback(now_ns, event)
            if event.kind is not InjectorEvent.CHUNK_ADOPTED:
                self.events.append(event)
            if event.execution is not None:
                self._updates.append(_execution_update(event))
        if now_ns >= self._due_ns:
            self._due_ns = now_ns + _FEEDBACK_NS
            self.feedback = self._feedback(now_ns, None)

    def _feedback(self, now_ns: int, event: Event | None) -> ExecutionFeedback:
        controller = self.controller
        modes, limits = controller.modes, controller.drives.limits
        chunk = modes.chunk
        told = chunk if event is None else event.chunk
        return ExecutionFeedback(
            decision=Decision() if told is None else told.decision,
            state=modes.state,
            event=InjectorEvent.NONE if event is None else event.kind,
            reason=modes.reason if event is None else event.reason,
            monotonic_ns=now_ns,
            epoch=modes.epoch,
            chunk_sequence=0 if chunk is None else chunk.decision.sequence,
            phase=math.nan if chunk is None else chunk.phase,
            joints=controller.joints.names,
            position=np.array(controller.joints.position),
            velocity=np.array(controller.joints.velocity),
            setpoint_position=np.array(controller.set_point.position),
            setpoint_velocity=np.array(controller.set_point.velocity),
            command=np.array(controller.command.values),
            command_interface=controller.config.command_interface,
            confident=limits.value.confident,
            execution_version=limits.value.version,
        )


class Monitoring:
    """Stage 5: polls the newest sample of every stream each 4 ms."""

    def __init__(self, task: TaskDefinition, times: Stopwatch) -> None:
        stages = {(task.name, stage.name): stage for stage in task.stages}
        self.monitor = FailureMonitor(
            load_rules(default_table()), lambda name, stage: stages.get((name, stage)), nodes=()
        )
        self.reports: list[FailureReport] = []
        self._period_ns = round(self.monitor.config.poll_period * 1e9)
        self._times = times
        self._waiting: dict[type, object] = {}
        self._due_ns = 0

    def hear(self, *samples: object) -> None:
        """Keep the newest sample of each kind until the next poll."""
        for sample in samples:
            if isinstance(sample, TaskKey):
                receipt_ns = sample.decision.trigger_monotonic_ns
                self._waiting[KeySample] = KeySample(sample.scene_age, receipt_ns)
            elif sample is not None:
                self._waiting[type(sample)] = sample

    def __call__(self, now_ns: int) -> tuple[list[StageCondition], list[FailureReport]]:
        """Return the conditions and responses that are new."""
        if now_ns < self._due_ns:
            return [], []
        self._due_ns = now_ns + self._period_ns
        samples, self._waiting = list(self._waiting.values()), {}
        with self._times.measure("monitor"):
            verdict = self.monitor.update(now_ns, samples)
        self.reports += verdict.reports
        return verdict.conditions, verdict.responses


class SimulatedClock:
    """CLOCK_MONOTONIC of an episode [ns]: stands still while the stages compute."""

    def __init__(self, now_ns: int) -> None:
        self.now_ns = now_ns

    def __call__(self) -> int:
        """Return the present time [ns]."""
        return self.now_ns


def _execution_update(event: Event) -> EntryUpdate:
    return EntryUpdate(
        decision=Decision() if event.chunk is None else event.chunk.decision,
        operation=UpdateOperation.EXECUTION,
        entry_id=0,
        entry_version=0,
        vector=np.zeros(64, np.float32),
        behavior=None,
        execution=event.execution,
        error=math.nan,
        false_hit=False,
        reason=event.reason,
    )
