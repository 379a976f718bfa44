"""The failure monitor without ROS: samples in, failure reports and stage conditions out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from kv_action_router.contracts import Decision, ExecutionFeedback, StageCondition, TaskState
from kv_action_router.monitoring.bands import quiet_bands
from kv_action_router.monitoring.config import MonitorConfig
from kv_action_router.monitoring.detectors.base import Detection
from kv_action_router.monitoring.detectors.contact import WRENCH_SIGNALS
from kv_action_router.monitoring.detectors.held import HeldThreshold
from kv_action_router.monitoring.detectors.proximity import ArmOutline
from kv_action_router.monitoring.detectors.tool import ToolRobot
from kv_action_router.monitoring.events import FailureReport, ReportThrottle, report_of
from kv_action_router.monitoring.expectation import PRODUCERS
from kv_action_router.monitoring.lasting import LastingResponses, Request
from kv_action_router.monitoring.measuring import Measuring
from kv_action_router.monitoring.samples import StopSample, WrenchSample
from kv_action_router.monitoring.signals import SignalTable, SignalView
from kv_action_router.monitoring.stages import REFUSED, Stage, StageWatch
from kv_action_router.tasks.rules import Response, Rule


@dataclass(slots=True)
class Verdict:
    """What one update found; nobody but the monitor writes into it.

    Attributes:
        reports: to be published, throttled and counted.
        conditions: of the stage under way, to be published.
        responses: reports whose responses must be carried out now; never throttled.
        requests: of responses that last; a report alone asks for none of these.
    """

    reports: list[FailureReport] = field(default_factory=list)
    conditions: list[StageCondition] = field(default_factory=list)
    responses: list[FailureReport] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)


_NOTHING = Verdict()


@dataclass(frozen=True, slots=True)
class RuleStatus:
    """State of one row of the response table, for diagnostics."""

    rule: Rule
    active: tuple[Detection, ...]
    count: int


class FailureMonitor:
    """Turns samples of every stream into signals and judges all conditions over them.

    Used by one thread. Nothing here waits, logs, or knows of ROS.

    A condition is judged when one of its signals has a new sample with which it could begin to
    hold, and at each update while it holds.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        find_stage: Callable[[str, str], Stage | None],
        *,
        nodes: Sequence[str],
        config: MonitorConfig | None = None,
        producers: Mapping[str, tuple[str, ...]] = PRODUCERS,
        topics: Sequence[str] = (),
        arm: ArmOutline | None = None,
        tool: ToolRobot | None = None,
    ) -> None:
        """Build the detectors.

        Args:
            rules: the response table.
            find_stage: definition by task and stage name.
            nodes: that must give signs of life.
            config: parameters of the stage.
            producers: topics with a deadline or lease, and the nodes that must be active for
                their writers to be at work.
            topics: all that DDS events may come from.
            arm: whose distance from obstacles is judged; None = of no one.
            tool: robot whose tool may have a drive of its own; used by this thread only.
        """
        self.config = config or MonitorConfig()
        self.table = SignalTable()
        self.stages = StageWatch(find_stage)
        self.detectors = Measuring(
            self.table,
            self.config,
            nodes=nodes,
            topics=tuple(dict.fromkeys((*producers, *topics))),
            producers=producers,
            motion_in_force=lambda: self.stages.in_force,
            arm=arm,
            tool=tool,
        )
        self._view = SignalView(self.table)
        self._watches = [(rule, HeldThreshold(rule.condition)) for rule in rules]
        self._rows_of: dict[str, list[int]] = {}  # signal -> rows that look at it
        for index, (rule, _) in enumerate(self._watches):
            for name in rule.condition.signals:
                self._rows_of.setdefault(name, []).append(index)
        self._of_wrench = frozenset(
            index for name in WRENCH_SIGNALS for index in self._rows_of.get(name, ())
        )
        self._lasting = LastingResponses(self._watches)
        self._engaged: set[int] = set()  # rows that hold for some source
        self._throttle = ReportThrottle(self.config.repeat_period)
        self._decision = Decision()
        self._tare_wanted = False
        self._may_touch = False  # what the newest motion was allowed to
        self._stop_asked = False
        self._verdict = _NOTHING
        self._now_ns = 0
        self._handlers: dict[type, Callable[[Any], object]] = {
            **self.detectors.handlers,
            ExecutionFeedback: self._on_feedback,
            TaskState: self._on_task_state,
            StopSample: self._on_stop,
        }
        self._set_bands()

    def reset(self) -> None:
        """Forget everything, as on activation."""
        self.detectors.reset()
        self.stages.reset()
        for _, watch in self._watches:
            watch.reset()
        self._lasting.reset()
        self._engaged.clear()
        self._set_bands()
        self._throttle.reset()
        self._decision = Decision()
        self._tare_wanted = False
        self._may_touch = False
        self._stop_asked = False

    def update(self, now_ns: int, samples: Iterable[object] = ()) -> Verdict:
        """Take samples, measure what changes with time alone, judge every condition.

        Args:
            now_ns: CLOCK_MONOTONIC [ns].
            samples: received since the last update, in order of receipt. Each wrench sample is
                judged by itself; of the slower streams the newest sample counts.

        Raises:
            TypeError: a sample is of no known type.
        """
        self._verdict = _NOTHING
        self._now_ns = self._view.now_ns = now_ns
        if self._throttle.keeps:
            self._found_something().reports.extend(self._throttle.due(now_ns))
        pressed = False
        for sample in samples:
            kind = type(sample)
            if kind is WrenchSample:
                if pressed:  # a sample that breaks a holding must be seen by itself
                    self._judge(now_ns, self._of_wrench)
                pressed = True
            handler = self._handlers.get(kind)
            if handler is None:
                raise TypeError(f"cannot take a sample of type {kind.__name__}")
            handler(sample)
        self.detectors.measure(now_ns)
        self._judge(now_ns)
        if self._lasting.outstanding or self._engaged:
            requests = self._lasting.update(self.stages.state, now_ns)
            if requests:
                self._found_something().requests.extend(requests)
        return self._verdict

    def values(self, now_ns: int) -> dict[str, float]:
        """Return what is measured now: the largest value of each signal over its sources."""
        values = {name: self.table.value(name, now_ns) for name in self.table.names}
        return {name: value for name, value in values.items() if value == value}

    def status(self) -> list[RuleStatus]:
        """Return the state of every row of the response table."""
        return [
            RuleStatus(rule, tuple(watch.active.values()), self._throttle.count(rule.name))
            for rule, watch in self._watches
        ]

    # --- inside -------------------------------------------------------------------------------

    def _found_something(self) -> Verdict:
        if self._verdict is _NOTHING:
            self._verdict = Verdict()
        return self._verdict

    def _set_bands(self) -> None:
        judged = [*(rule.condition for rule, _ in self._watches), *self.stages.conditions]
        self.table.set_bands(quiet_bands(self.table.names, judged))
        self.detectors.ask({name for condition in judged for name in condition.signals})

    def _judge(self, now_ns: int, among: Set[int] | None = None) -> None:
        """Judge what is new; of the rows that hold those ``among`` others, None = all of them."""
        changed = self.table.take_changed()
        if changed or self._engaged:
            rows = self._engaged if among is None else self._engaged & among
            if changed:
                rows = rows.union(*(self._rows_of.get(name, ()) for name in changed))
            self._judge_rows(now_ns, sorted(rows))
        if changed or now_ns > self.stages.due_ns:
            condition = self.stages.update(self.table, self._view)
            if condition is not None:
                self._found_something().conditions.append(condition)

    def _judge_rows(self, now_ns: int, rows: Sequence[int]) -> None:
        for index in rows:
            rule, watch = self._watches[index]
            for detection in watch.update(self.table, self._view):
                self._found(rule, detection, now_ns)
            if watch.engaged:
                self._engaged.add(index)
            else:
                self._engaged.discard(index)
            if watch.active and rule.stops and not self._stop_asked:
                # released while the cause is still there
                self._stop_asked = True
                detection = next(iter(watch.active.values()))
                self._found_something().responses.append(self._report(rule, detection, now_ns))

    def _found(self, rule: Rule, detection: Detection, now_ns: int) -> None:
        verdict = self._found_something()
        report = self._report(rule, detection, now_ns)
        sent = self._throttle.offer(report)
        if sent is not None:
            verdict.reports.append(sent)
        if rule.stops:
            self._stop_asked = True
        state = self.stages.state
        if state is not None and rule.ends(state.subtask):
            condition = self.stages.complete(detection)
            if condition is not None:
                verdict.conditions.append(condition)
        if rule.acts_at_once:
            verdict.responses.append(report)

    def _report(self, rule: Rule, detection: Detection, now_ns: int) -> FailureReport:
        state = self.stages.state
        return report_of(
            rule,
            detection,
            decision=self._decision,
            task=state.task if state is not None else "",
            stage=state.stage if state is not None else "",
            detail=self.detectors.detail(detection.source),
            now_ns=now_ns,
        )

    def _on_task_state(self, state: TaskState) -> None:
        conditions = self.stages.conditions
        entered = self.stages.on_task_state(state)
        self.detectors.on_task(state)
        if self.stages.conditions is not conditions:
            self._set_bands()
        if entered:
            # The tool may still touch what the stage before was allowed to touch, in any task.
            self._tare_wanted = not self._may_touch
        if self.stages.running and state.allowed_contact:
            self._may_touch = True

    def _on_feedback(self, feedback: ExecutionFeedback) -> None:
        now_ns = self._now_ns
        at_rest = self.table.value("joint_speed", now_ns) <= self.config.rest_speed
        self.detectors.on_feedback(feedback, min(feedback.monotonic_ns, now_ns))
        if feedback.event not in REFUSED:
            self._decision = feedback.decision
        begins = self.stages.on_feedback(feedback)
        if begins:
            self.detectors.begin_motion()
            for rule, watch in self._watches:
                if Response.COMPLETE in rule.responses:
                    watch.reset()  # what held before the stage's motion doesn't end it
        tare_due = (begins and self._tare_wanted) or not self.detectors.contact.has_tare
        # Judged by the sample before: the motion has not moved the arm yet.
        if tare_due and at_rest and self.detectors.contact.tare(now_ns):
            self._tare_wanted = False
        state = self.stages.state
        if begins and state is not None and not state.allowed_contact:
            self._may_touch = False  # from here on its motion leads away

    def _on_stop(self, sample: StopSample) -> None:
        self._stop_asked = sample.engaged
