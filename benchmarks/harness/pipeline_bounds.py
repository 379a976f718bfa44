"""What ``pipeline.py`` must show on two cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kv_action_router.reporting.bounds import Bound


def measured(*path: str) -> Callable[[dict[str, Any]], float | None]:
    """Return a getter of a nested figure; None where a part of the path was not measured."""

    def get(report: dict[str, Any]) -> float | None:
        value: Any = report
        for key in path:
            if not isinstance(value, dict) or value.get(key) is None:
                return None
            value = value[key]
        return float(value)

    return get


def _n(kind: str, phase: str) -> Callable[[dict[str, Any]], float | None]:
    done, asked = measured(kind, phase, "followed", "n"), measured(kind, phase, "asked")

    def get(report: dict[str, Any]) -> float | None:
        counted, wanted = done(report), asked(report)
        return None if counted is None or not wanted else counted / wanted

    return get


SEPARATE, COMPOSED = "separate", "composed"
EAGER = "eager_320x240"
BOUNDS = (
    Bound("hit, separate: decisions measured [share]", _n(SEPARATE, "hit"), ">=", 1.0),
    Bound("hit, separate: mean [ms]", measured(SEPARATE, "hit", "total", "mean"), "<=", 4.5),
    Bound(
        "hit, separate: mean above the floor's [ms]",
        measured("ratios", SEPARATE, "above_floor_ms"),
        "<=",
        2.5,
    ),
    Bound("hit, separate: p99.9 [ms]", measured(SEPARATE, "hit", "total", "p999"), "<=", 10.0),
    Bound("hit, composed: mean [ms]", measured(COMPOSED, "hit", "total", "mean"), "<=", 3.2),
    Bound("miss, separate: p99.9 [ms]", measured(SEPARATE, "miss", "total", "p999"), "<=", 12.7),
    Bound("miss, composed: p99.9 [ms]", measured(COMPOSED, "miss", "total", "p999"), "<=", 12.7),
    Bound(
        "hit, separate: late commands sent",
        measured(SEPARATE, "hit", "late_commands", "events"),
        "==",
        0,
    ),
    Bound(
        "hit, separate: decisions dropped [share]",
        measured(SEPARATE, "hit", "dropped", "share"),
        "<=",
        0.001,
    ),
    Bound(
        "end-to-end, eager, over a hit, separate",
        measured("ratios", SEPARATE, "end_to_end", EAGER),
        ">=",
        10.0,
    ),
    Bound(
        "end-to-end, eager, over a hit, composed",
        measured("ratios", COMPOSED, "end_to_end", EAGER),
        ">=",
        14.0,
    ),
    Bound(
        "five nodes, 30 Hz camera [% of a core]",
        measured(SEPARATE, "camera_rate", "nodes_cpu_percent"),
        "<=",
        40.0,
    ),
    Bound(
        "five nodes, 30 Hz camera: resident memory [MB]",
        measured(SEPARATE, "camera_rate", "nodes_rss_mb"),
        "<=",
        900.0,
    ),
)
