"""State of the response table as it stands in ``/diagnostics``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from kv_action_router.monitoring.monitor import RuleStatus
from kv_action_router.tasks.rules import Severity
from kv_action_router.tasks.signals import SIGNALS

_LEVELS = {
    Severity.INFO: DiagnosticStatus.OK,
    Severity.WARNING: DiagnosticStatus.WARN,
    Severity.ERROR: DiagnosticStatus.ERROR,
    Severity.FATAL: DiagnosticStatus.ERROR,
}


def statuses(
    rows: Iterable[RuleStatus], node: str, hardware_id: str = ""
) -> list[DiagnosticStatus]:
    """Return one status for each row: OK while it doesn't hold, else its severity and numbers.

    Args:
        rows: of the response table.
        node: fully qualified name of the node that watches.
        hardware_id: identity of the robot.
    """
    return [_status(row, node, hardware_id) for row in rows]


def signals(
    values: Mapping[str, float], stage: str, node: str, hardware_id: str = ""
) -> DiagnosticStatus:
    """Return one status that shows the signals that are measured now, with their units.

    Args:
        values: by signal.
        stage: under way, for people.
        node: fully qualified name of the node that watches.
        hardware_id: identity of the robot.
    """
    status = DiagnosticStatus(
        name=f"{node.lstrip('/')}: signals",
        hardware_id=hardware_id,
        level=DiagnosticStatus.OK,
        message=f"{len(values)} of {len(SIGNALS)} signals are measured",
    )
    status.values = [KeyValue(key="stage", value=stage)]
    status.values += [
        KeyValue(key=f"{name} [{SIGNALS[name].unit or '1'}]", value=f"{value:.6g}")
        for name, value in values.items()
    ]
    return status


def _status(row: RuleStatus, node: str, hardware_id: str) -> DiagnosticStatus:
    rule = row.rule
    status = DiagnosticStatus(
        name=f"{node.lstrip('/')}: {rule.name}",
        hardware_id=hardware_id,
        level=_LEVELS[rule.severity] if row.active else DiagnosticStatus.OK,
        message="; ".join(rule.describe(item.source, item.value) for item in row.active) or "ok",
    )
    unit = SIGNALS[rule.condition.signal].unit
    values = [
        ("signal", f"{rule.condition.signal} [{unit or '1'}]"),
        ("limit", f"{rule.condition.operator} {rule.condition.limit:g}"),
        ("held_ms", f"{rule.condition.held_ms:g}"),
        ("layer", rule.layer.value if rule.layer is not None else "none"),
        ("response", ", ".join(item.value for item in rule.responses)),
        ("count", str(row.count)),
    ]
    values += [(item.source or "value", f"{item.value:.6g}") for item in row.active]
    status.values = [KeyValue(key=key, value=value) for key, value in values]
    return status
