"""FailureReport <-> FailureEvent."""

from __future__ import annotations

from kv_action_router.errors import InputError
from kv_action_router.monitoring.events import FailureReport
from kv_action_router.msg import FailureEvent
from kv_action_router.ros.conversions.decision import decision_from_msg, decision_to_msg
from kv_action_router.ros.conversions.fields import enum_from_field
from kv_action_router.tasks.rules import Response, Severity


def report_to_msg(report: FailureReport, msg: FailureEvent | None = None) -> FailureEvent:
    """Write a report into ``msg`` (a new one when None) and return it."""
    msg = FailureEvent() if msg is None else msg
    decision_to_msg(report.decision, msg.decision)
    msg.error_code = int(report.error_code)
    msg.error_msg = str(report.message)
    msg.severity = int(report.severity)
    msg.source = str(report.source)
    msg.detector = str(report.detector)
    msg.signal = str(report.signal)
    msg.value = float(report.value)
    msg.limit = float(report.limit)
    msg.held = float(report.held)
    msg.response = str(report.response)
    msg.task = str(report.task)
    msg.stage = str(report.stage)
    msg.monotonic_ns = int(report.monotonic_ns)
    msg.count = int(report.count)
    return msg


def report_from_msg(msg: FailureEvent) -> FailureReport:
    """Return the report that a message carries.

    Raises:
        InputError: unknown severity or response.
    """
    names = {item.value: item for item in Response}
    asked = msg.response.split(", ")
    for name in asked:
        if name not in names:
            raise InputError("response", f"of {', '.join(names)}", msg.response)
    return FailureReport(
        decision=decision_from_msg(msg.decision),
        error_code=msg.error_code,
        message=msg.error_msg,
        severity=enum_from_field(Severity, msg.severity, "severity"),
        source=msg.source,
        detector=msg.detector,
        signal=msg.signal,
        value=msg.value,
        limit=msg.limit,
        held=msg.held,
        responses=tuple(names[name] for name in asked),
        task=msg.task,
        stage=msg.stage,
        monotonic_ns=msg.monotonic_ns,
        count=msg.count,
    )
