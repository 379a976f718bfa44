"""Stage 5 in an episode: polls the newest sample of every stream."""

from __future__ import annotations

from collections.abc import Sequence

from kv_action_router.contracts import (
    ExecutionFeedback,
    ObstacleSpheres,
    SeenObstacles,
    StageCondition,
    TaskKey,
    TaskState,
)
from kv_action_router.monitoring.calibration.collector import NoLoadCollector
from kv_action_router.monitoring.config import MonitorConfig
from kv_action_router.monitoring.detectors.proximity import ArmOutline
from kv_action_router.monitoring.events import FailureReport
from kv_action_router.monitoring.lasting import Request
from kv_action_router.monitoring.monitor import FailureMonitor
from kv_action_router.monitoring.samples import KeySample, ObstacleSample, RatesSample, WrenchSample
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.cell import Samples
from kv_action_router.simulation.stopwatch import Stopwatch
from kv_action_router.tasks.definition import load_task
from kv_action_router.tasks.rule_file import default_table, load_rules
from kv_action_router.tasks.stages import TaskDefinition


class Monitoring:
    """Stage 5: judges at the monitor's period; every wrench counts, of the rest the newest."""

    def __init__(
        self, tasks: Sequence[TaskDefinition], robot: RobotModel, times: Stopwatch
    ) -> None:
        rules = load_rules(default_table())
        inserted = [load_task(rule.inserts) for rule in rules if rule.inserts]
        inserted += [task.on_failure.sequence for task in tasks if task.on_failure is not None]
        stages = {(t.name, stage.name): stage for t in (*tasks, *inserted) for stage in t.stages}
        self.monitor = FailureMonitor(
            rules,
            lambda name, stage: stages.get((name, stage)),
            nodes=(),
            arm=ArmOutline.of(robot, MonitorConfig().tool_links),
            tool=robot,
        )
        self.contact_force = 0.0  # [N] at the newest poll; NaN = not measured
        self.collector = NoLoadCollector(robot.joint_names, self.monitor.config.contact_force)
        self.requests: list[Request] = []  # of the newest poll
        self.reports: list[FailureReport] = []
        self._period_ns = round(self.monitor.config.poll_period * 1e9)
        self._times = times
        self._waiting: dict[type, object] = {}
        self._wrenches: list[WrenchSample] = []
        self._obstacles: ObstacleSpheres | None = None
        self._due_ns = 0

    def hear(
        self,
        task: TaskState | None,
        obstacles: ObstacleSpheres | None,
        rates: RatesSample | None = None,
    ) -> None:
        """Take the newest task state, obstacles and the cache's rates."""
        self._keep(task)
        self._keep(rates)
        if obstacles is not None and obstacles is not self._obstacles:
            self._obstacles = obstacles
            receipt_ns = obstacles.decision.trigger_monotonic_ns
            self._keep(ObstacleSample(SeenObstacles.of(obstacles).spheres, receipt_ns))

    def __call__(
        self, samples: Samples, key: TaskKey | None, feedback: ExecutionFeedback | None
    ) -> tuple[list[StageCondition], list[FailureReport]]:
        """Return the conditions that came true, and the reports that ask for a response."""
        now_ns = samples.now_ns
        for sample in (*samples.wrenches, samples.drives, feedback):
            self._keep(sample)
        if key is not None:
            trust, sharp = key.odometry_confidence, key.image_sharpness
            self._keep(KeySample(key.scene_age, now_ns, key.target_age, trust, sharp))
        self.requests = []
        if now_ns < self._due_ns:
            return [], []
        self._due_ns = now_ns + self._period_ns
        waiting = [*self._waiting.values(), *self._wrenches]
        self._waiting, self._wrenches = {}, []
        with self._times.measure("monitor"):
            verdict = self.monitor.update(now_ns, waiting)
            self.contact_force = self.monitor.table.value("wrench_force", now_ns)
            self.collector.take(waiting, self.contact_force)
        self.reports += verdict.reports
        self.requests = verdict.requests
        return verdict.conditions, verdict.responses

    def _keep(self, sample: object) -> None:
        """Keep the newest of each kind, and every wrench, until the next poll."""
        if isinstance(sample, WrenchSample):
            self._wrenches.append(sample)
        elif sample is not None:
            self._waiting[type(sample)] = sample
