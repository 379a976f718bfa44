"""Stage 2 in an episode: a match for each key, updates beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kv_action_router.caching.collision_guard import CollisionGuard
from kv_action_router.caching.config import CachingConfig
from kv_action_router.caching.manager import CacheManager
from kv_action_router.contracts import (
    CacheMatch,
    EntryUpdate,
    ExecutionValue,
    ObstacleSpheres,
    SeenObstacles,
    TaskKey,
    TaskState,
)
from kv_action_router.errors import RouterError
from kv_action_router.monitoring.samples import RatesSample
from kv_action_router.robots.execution_values import load_execution_value
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.stopwatch import Stopwatch

_RATES_NS = 500_000_000


class Caching:
    """Stage 2: a match for each key; updates beside it."""

    def __init__(
        self, config: CachingConfig, robot: RobotModel, clock: Callable[[], int], times: Stopwatch
    ) -> None:
        execution = load_execution_value(robot.name)
        self._obstacles: SeenObstacles | None = None
        guard = CollisionGuard(robot, config, lambda: self._obstacles, clock)
        self.manager = CacheManager(config, robot, execution, [guard], clock)
        self._changed: ExecutionValue | None = None
        self.refused: list[str] = []  # updates that were not taken, and why
        self._times = times
        self._rates_due_ns = 0

    def see(self, obstacles: ObstacleSpheres | None) -> None:
        """Take the newest obstacles."""
        if obstacles is not None:
            self._obstacles = SeenObstacles.of(obstacles)

    def hear(self, task: TaskState | None, updates: Sequence[EntryUpdate]) -> None:
        """Take the newest task state, and what execution teaches."""
        if task is not None:
            self.manager.on_task_state(task)
        for update in updates:
            try:
                if self.manager.apply(update).execution_changed:
                    self._changed = self.manager.execution_value()
            except RouterError as error:
                self.refused.append(str(error))

    def rates(self, now_ns: int) -> RatesSample | None:
        """Return decisions and hits of the layers when they are due, twice a second."""
        if now_ns < self._rates_due_ns:
            return None
        self._rates_due_ns = now_ns + _RATES_NS
        counts = {
            report.layer: (report.counters.decisions, report.counters.hits)
            for report in self.manager.statistics().layers
            if report.layer != "execution"
        }
        return RatesSample(counts, now_ns)

    def changed_execution(self) -> ExecutionValue | None:
        """Return the execution value when it has changed, once."""
        changed, self._changed = self._changed, None
        return changed

    def __call__(self, key: TaskKey | None) -> CacheMatch | None:
        """Answer a key."""
        if key is None:
            return None
        begin = self._times.now()
        match = self.manager.on_key(key)
        kind = "match decision" if match.is_decision else "match refresh"
        self._times.since(kind, begin)
        return match
