"""The report of a run as plain numbers: what ``report.json`` holds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kv_action_router.reporting.records import PARTS, RunRecord
from kv_action_router.reporting.statistics import lower_confidence_bound, quantiles, summary


@dataclass(frozen=True)
class Setting:
    """Under which conditions a run was made."""

    ros_distro: str
    rmw: str
    commit: str
    seed: int
    composed: bool
    executor: str
    load: float  # one-minute load average when it began
    cores: int
    commanded_torque: float | None = None  # [N m] that screws are tightened with; None = no screws


def build(run: RunRecord, setting: Setting) -> dict[str, Any]:
    """Return the report.

    Latencies are in ms, lateness in us. ``decisions_dropped`` is the share of the chunks made that
    were dropped since their trigger was too old, at the synthesizer or at the injector.
    """
    decided = [passage for passage in run.passages if passage.kind != "refresh"]
    latency = {
        "pipeline_hit": summary([passage.total_ms for passage in run.of_kind("hit")]),
        "pipeline_miss": summary([passage.total_ms for passage in run.of_kind("miss")]),
        "refresh": summary([passage.total_ms for passage in run.of_kind("refresh")]),
    }
    for part in PARTS:
        latency[part] = summary([passage.part_ms(part) for passage in decided])
    decisions = sum(cycle.decisions for cycle in run.cycles)
    task_hits = sum(cycle.task_hits for cycle in run.cycles)
    behavior_hits = sum(cycle.behavior_hits for cycle in run.cycles)
    counters = run.counters
    dropped = counters.chunks_late + run.decisions_unsent
    chunks = counters.chunks_adopted + counters.chunks_refused + dropped
    succeeded = sum(cycle.succeeded for cycle in run.cycles)
    errors_mm = [cycle.touch_error * 1e3 for cycle in run.cycles]
    return {
        "ros_distro": setting.ros_distro,
        "rmw": setting.rmw,
        "commit": setting.commit,
        "executor": setting.executor,
        "composed": setting.composed,
        "cores": setting.cores,
        "load": setting.load,
        "cycles": len(run.cycles),
        "cycles_succeeded": succeeded,
        "success_lower_bound_95": lower_confidence_bound(succeeded, len(run.cycles)),
        "seed": setting.seed,
        "decisions": decisions,
        "false_hits": run.false_hits,
        "hit_rate": {
            "task": _share(task_hits, decisions),
            "behavior": _share(behavior_hits, decisions),
            "execution": _share(counters.confident_ticks, counters.ticks),
            "per_cycle": [cycle.hit_rate for cycle in run.cycles],
        },
        "latency_ms": latency,
        "image_age_ms": quantiles(run.image_ages_ms, p50=0.5, p99=0.99),
        "control_loop": {
            "rate_hz": counters.rate_hz,
            "lateness_us": run.lateness_us,
            "missed": counters.missed_ticks,
            "ticks": counters.ticks,
            "realtime": counters.realtime,
        },
        "chunks": {
            "adopted": counters.chunks_adopted,
            "late_at_injector": counters.chunks_late,
            "late_at_synthesizer": run.decisions_unsent,
            "refused": counters.chunks_refused,
        },
        "commands_sent": counters.commands_sent,
        "late_commands_sent": counters.late_commands_sent,
        "decisions_dropped": _share(dropped, chunks),
        "real_time_factor": min(run.real_time_factors, default=None),
        "touch_error_mm": quantiles(errors_mm, p50=0.5, p95=0.95, max=1.0),
        **_screws(run, setting.commanded_torque),
        "stage_s": _stages(run),
        "cpu_percent": run.cpu_percent,
        "rss_mb": run.rss_mb,
        "failures": run.failures,
        "stops": run.stops,
        "per_cycle": [
            {
                "succeeded": cycle.succeeded,
                "message": cycle.message,
                "decisions": cycle.decisions,
                "task_hits": cycle.task_hits,
                "behavior_hits": cycle.behavior_hits,
                "duration_s": cycle.duration,
                "touch_error_mm": cycle.touch_error * 1e3,
                "contact_force_n": cycle.contact_force,
                "final_torque_nm": cycle.final_torque,
                "advance_mm": cycle.advance * 1e3,
                "search_mm": cycle.search * 1e3,
                "stage_s": cycle.stage_s,
            }
            for cycle in run.cycles
        ],
    }


def write(report: dict[str, Any], path: Path) -> None:
    """Write the report as JSON; a value that was not measured is null."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(_without_nan(report), indent=2) + "\n")


def _screws(run: RunRecord, commanded: float | None) -> dict[str, Any]:
    """Return the figures of screws, lists with one number a cycle; empty without screws."""
    if commanded is None:
        return {}
    torque = [cycle.final_torque for cycle in run.cycles]
    off = [abs(value / commanded - 1.0) for value in torque]
    return {
        "commanded_torque_nm": commanded,
        "final_torque_nm": torque,
        "torque_off": max(off) if off and all(value == value for value in off) else None,
        "advance_mm": [cycle.advance * 1e3 for cycle in run.cycles],
        "search_mm": [cycle.search * 1e3 for cycle in run.cycles],
    }


def _stages(run: RunRecord) -> dict[str, Any]:
    """Return how long each stage took, and in how many of the cycles it was begun and ended."""
    names = dict.fromkeys(name for cycle in run.cycles for name in cycle.stage_s)
    found = {}
    for name in names:
        spent = [cycle.stage_s[name] for cycle in run.cycles if name in cycle.stage_s]
        found[name] = {**quantiles(spent, p50=0.5, max=1.0), "cycles": len(spent)}
    return found


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    if isinstance(value, float) and value != value:
        return None
    return value
