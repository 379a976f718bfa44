"""The bounds that a demonstration must keep, as data."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

NODES = (
    "task_key_encoder",
    "cache_manager",
    "behavior_synthesizer",
    "actuator_injector",
    "failure_monitor",
    "soft_stages",
)


@dataclass(frozen=True)
class Bound:
    """One figure and its limit.

    Attributes:
        name: for people.
        value: takes the figure from a report; None = not measured.
        compare: ``<=``, ``>=`` or ``==``.
        limit: of the figure.
        is_essential: judged even in short runs and on busy machines.
    """

    name: str
    value: Callable[[dict[str, Any]], float | None]
    compare: str
    limit: float
    is_essential: bool = False

    def holds(self, report: dict[str, Any]) -> bool:
        """Return whether the figure was measured and keeps its limit."""
        value = self.value(report)
        return value is not None and _COMPARE[self.compare](value, self.limit)

    def describe(self, report: dict[str, Any]) -> str:
        """Return name, figure and limit in one line."""
        value = self.value(report)
        shown = "not measured" if value is None else f"{value:.4g}"
        return f"{self.name}: {shown} (must be {self.compare} {self.limit:g})"


_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
}


def at(*path: str) -> Callable[[dict[str, Any]], float | None]:
    """Return a getter of a nested figure."""

    def get(report: dict[str, Any]) -> float | None:
        value: Any = report
        for key in path:
            value = value[key]
        return None if value is None else float(value)

    return get


def _failed(report: dict[str, Any]) -> float:
    return float(report["cycles_asked"] - report["cycles_succeeded"])


def _recent_hits(report: dict[str, Any]) -> float:
    return float(sum(report["hit_rate"]["per_cycle"][-10:]))


def _node_cpu(report: dict[str, Any]) -> float | None:
    known = [report["cpu_percent"][node] for node in NODES if node in report["cpu_percent"]]
    return float(sum(known)) if known else None


TOUCH_BOUNDS: tuple[Bound, ...] = (
    Bound("failed touches", _failed, "==", 0, is_essential=True),
    Bound("touch error max [mm]", at("touch_error_mm", "max"), "<=", 5.0, is_essential=True),
    Bound("late commands sent", at("late_commands_sent"), "==", 0, is_essential=True),
    Bound("task hits in the last 10 cycles", _recent_hits, ">=", 8.0),
    Bound("false hits", at("false_hits"), "==", 0),
    Bound("pipeline hit mean [ms]", at("latency_ms", "pipeline_hit", "mean"), "<=", 6.0),
    Bound("pipeline hit max [ms]", at("latency_ms", "pipeline_hit", "max"), "<=", 15.0),
    Bound("refresh p99 [ms]", at("latency_ms", "refresh", "p99"), "<=", 10.0),
    Bound("pipeline miss max [ms]", at("latency_ms", "pipeline_miss", "max"), "<=", 15.0),
    Bound("decisions dropped [share]", at("decisions_dropped"), "<=", 0.005),
    Bound("five nodes [% of a core]", _node_cpu, "<=", 60.0),
    Bound("real-time factor", at("real_time_factor"), ">=", 0.95),
)


SCREW_BOUNDS: tuple[Bound, ...] = (
    Bound("failed screws", _failed, "==", 0, is_essential=True),
    Bound("torque off, worst [share]", at("torque_off"), "<=", 0.10, is_essential=True),
    Bound("target error p95 [mm]", at("target_error_mm", "p95"), "<=", 3.0),
    *(bound for bound in TOUCH_BOUNDS[2:]),
)

STATION_BOUNDS: tuple[Bound, ...] = (
    Bound("failed cycles", _failed, "==", 0, is_essential=True),
    *SCREW_BOUNDS[1:],
)

BOUNDS = {
    "touch": TOUCH_BOUNDS,
    "screw": SCREW_BOUNDS,
    "station": STATION_BOUNDS,
    "insert": (STATION_BOUNDS[0], *TOUCH_BOUNDS[2:]),
}


def broken(report: dict[str, Any], bounds: Iterable[Bound], essential_only: bool) -> list[str]:
    """Return the bounds that are judged and do not hold, each with its figure."""
    return [
        bound.describe(report)
        for bound in bounds
        if (bound.is_essential or not essential_only) and not bound.holds(report)
    ]
