"""Stage 3 in an episode: chunks, and the task's course."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kv_action_router.contracts import (
    CacheMatch,
    EntryUpdate,
    ExecutionFeedback,
    ObstacleSpheres,
    SeenObstacles,
    StageCondition,
    TaskState,
    TrajectoryChunk,
)
from kv_action_router.errors import TaskTransitionError
from kv_action_router.monitoring.lasting import Request
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.cell import Samples
from kv_action_router.simulation.stopwatch import Stopwatch
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.synthesizer import BehaviorSynthesizer
from kv_action_router.tasks.definition import load_task
from kv_action_router.tasks.rules import Response
from kv_action_router.tasks.stages import TaskDefinition


class Synthesis:
    """Stage 3: chunks, and the task's course."""

    def __init__(
        self,
        config: SynthesisConfig,
        robot: RobotModel,
        clock: Callable[[], int],
        times: Stopwatch,
    ) -> None:
        self.synthesizer = BehaviorSynthesizer(robot, config, clock=clock)
        self.decisions: list[CacheMatch] = []
        self._obstacles: ObstacleSpheres | None = None
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
        if obstacles is not None and obstacles is not self._obstacles:
            self._obstacles = obstacles
            self.synthesizer.obstacles = SeenObstacles.of(obstacles).spheres

    def respond(self, requests: Sequence[Request], now_ns: int) -> None:
        """Carry out what the monitor asks for: slower, stop on the path, go on."""
        tasks, motion = self.synthesizer.tasks, self.synthesizer.motion
        for request in requests:
            source = request.rule.name
            try:
                if request.response is Response.SLOW:
                    motion.limit_speed(source, request.scale, request.reason, now_ns)
                elif request.begins:
                    inserts = request.rule.inserts
                    sequence = load_task(inserts) if inserts else None
                    tasks.interrupt(source, request.reason, now_ns, sequence)
                else:
                    tasks.resume(source, now_ns)
            except TaskTransitionError:
                continue  # the task has ended in the meantime

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
