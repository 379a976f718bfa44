"""Failure reports: what the monitor says, counted and throttled."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kv_action_router.contracts import Decision
from kv_action_router.monitoring.detectors.base import Detection
from kv_action_router.tasks.rules import Response, Rule, Severity


@dataclass(frozen=True, slots=True)
class FailureReport:
    """One event (``FailureEvent``).

    Attributes:
        decision: in force when it was seen.
        error_code: 500 to 599.
        message: for people, with value and limit.
        severity: how bad it is.
        source: joint, drive, node or topic at fault.
        detector: name of the condition that saw it.
        signal: that it was seen in.
        value: of the signal, in its unit.
        limit: that it crossed.
        held: how long [s].
        responses: that are carried out.
        task, stage: under way.
        monotonic_ns: when it was seen [ns].
        count: of this detector and source since activation.
    """

    decision: Decision
    error_code: int
    message: str
    severity: Severity
    source: str
    detector: str
    signal: str
    value: float
    limit: float
    held: float
    responses: tuple[Response, ...]
    task: str
    stage: str
    monotonic_ns: int
    count: int

    @property
    def response(self) -> str:
        """Names of the responses, separated by commas."""
        return ", ".join(item.value for item in self.responses)


def report_of(
    rule: Rule,
    detection: Detection,
    *,
    decision: Decision,
    task: str,
    stage: str,
    now_ns: int,
    detail: str = "",
) -> FailureReport:
    """Return the report of a detection; its count is set by :class:`ReportThrottle`."""
    message = rule.describe(detection.source, detection.value)
    return FailureReport(
        decision,
        rule.error_code,
        f"{message}: {detail}" if detail else message,
        rule.severity,
        detection.source,
        detection.condition,
        detection.signal,
        detection.value,
        detection.limit,
        detection.held,
        rule.responses,
        task,
        stage,
        now_ns,
        0,
    )


class ReportThrottle:
    """Counts repeated faults and lets one report through a period for each detector and source.

    Invariant: the first report of a kind goes out at once; no count is lost: what was kept back
    goes out, as its newest report with the whole count, when the period is over.
    """

    def __init__(self, period_s: float) -> None:
        self._period_ns = int(period_s * 1e9)
        self._count: dict[tuple[str, str], int] = {}
        self._sent_ns: dict[tuple[str, str], int] = {}
        self._kept: dict[tuple[str, str], FailureReport] = {}

    def reset(self) -> None:
        """Forget all counts."""
        self._count.clear()
        self._sent_ns.clear()
        self._kept.clear()

    @property
    def keeps(self) -> bool:
        """Whether anything was kept back."""
        return bool(self._kept)

    def count(self, detector: str) -> int:
        """Return how often a detector saw something, in all sources."""
        return sum(count for (name, _), count in self._count.items() if name == detector)

    def offer(self, report: FailureReport) -> FailureReport | None:
        """Count a report; return it when it may go out now."""
        key = (report.detector, report.source)
        self._count[key] = self._count.get(key, 0) + 1
        counted = replace(report, count=self._count[key])
        sent = self._sent_ns.get(key)
        if sent is not None and 0 <= report.monotonic_ns - sent < self._period_ns:
            self._kept[key] = counted
            return None
        self._kept.pop(key, None)
        self._sent_ns[key] = report.monotonic_ns
        return counted

    def due(self, now_ns: int) -> list[FailureReport]:
        """Return what was kept back and may go out now."""
        if not self._kept:
            return []
        ready = [
            key for key in self._kept if not 0 <= now_ns - self._sent_ns[key] < self._period_ns
        ]
        for key in ready:
            self._sent_ns[key] = now_ns
        return [self._kept.pop(key) for key in ready]
