"""Stage 5 in an episode: polls the newest sample of every stream."""

from __future__ import annotations

from kv_action_router.contracts import ExecutionFeedback, StageCondition, TaskKey, TaskState
from kv_action_router.monitoring.events import FailureReport
from kv_action_router.monitoring.monitor import FailureMonitor
from kv_action_router.monitoring.samples import KeySample, WrenchSample
from kv_action_router.simulation.cell import Samples
from kv_action_router.simulation.stopwatch import Stopwatch
from kv_action_router.tasks.rule_file import default_table, load_rules
from kv_action_router.tasks.stages import TaskDefinition


class Monitoring:
    """Stage 5: judges at the monitor's period; every wrench counts, of the rest the newest."""

    def __init__(self, task: TaskDefinition, times: Stopwatch) -> None:
        stages = {(task.name, stage.name): stage for stage in task.stages}
        self.monitor = FailureMonitor(
            load_rules(default_table()), lambda name, stage: stages.get((name, stage)), nodes=()
        )
        self.reports: list[FailureReport] = []
        self._period_ns = round(self.monitor.config.poll_period * 1e9)
        self._times = times
        self._waiting: dict[type, object] = {}
        self._wrenches: list[WrenchSample] = []
        self._due_ns = 0

    def hear(self, task: TaskState | None) -> None:
        """Take the newest task state."""
        self._keep(task)

    def __call__(
        self, samples: Samples, key: TaskKey | None, feedback: ExecutionFeedback | None
    ) -> tuple[list[StageCondition], list[FailureReport]]:
        """Return the conditions that came true, and the reports that ask for a response."""
        now_ns = samples.now_ns
        for sample in (*samples.wrenches, samples.drives, feedback):
            self._keep(sample)
        if key is not None:
            self._keep(KeySample(key.scene_age, now_ns))
        if now_ns < self._due_ns:
            return [], []
        self._due_ns = now_ns + self._period_ns
        waiting = [*self._waiting.values(), *self._wrenches]
        self._waiting, self._wrenches = {}, []
        with self._times.measure("monitor"):
            verdict = self.monitor.update(now_ns, waiting)
        self.reports += verdict.reports
        return verdict.conditions, verdict.responses

    def _keep(self, sample: object) -> None:
        """Keep the newest of each kind, and every wrench, until the next poll."""
        if isinstance(sample, WrenchSample):
            self._wrenches.append(sample)
        elif sample is not None:
            self._waiting[type(sample)] = sample
