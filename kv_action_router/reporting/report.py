"""The report of a run as plain numbers: what ``report.json`` holds."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kv_action_router.reporting.records import PARTS, RunRecord, StageSpan
from kv_action_router.reporting.statistics import quantiles, share_of, summary

_Stages = dict[str, dict[int, list[StageSpan]]]  # name -> cycle -> spans


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
    work: str = "touch"
    cycles: int | None = None  # that were asked for; None = as many as there are
    started: str = ""  # date and time, ISO 8601
    machine: dict[str, Any] = field(default_factory=dict)  # see `machine.py`
    essential_only: bool = False  # only essential bounds decide


def build(run: RunRecord, setting: Setting) -> dict[str, Any]:
    """Return the report.

    Latencies are in ms, lateness in us; docs/reports.md says what each figure is.
    """
    decided = [passage for passage in run.passages if passage.kind != "refresh"]
    latency = {
        "pipeline_hit": summary([passage.total_ms for passage in run.of_kind("hit")]),
        "pipeline_miss": summary([passage.total_ms for passage in run.of_kind("miss")]),
        "refresh": summary([passage.total_ms for passage in run.of_kind("refresh")]),
    }
    for part in PARTS:
        latency[part] = summary([passage.part_ms(part) for passage in decided])
    counters = run.counters
    rates, stages = _rates(run, setting), _stages(run)
    errors_mm = [cycle.touch_error * 1e3 for cycle in run.cycles]
    looks_mm = [error * 1e3 for cycle in run.cycles for error in cycle.target_errors]
    return {
        "work": setting.work,
        "ended_by": run.ended_by,
        "started": setting.started,
        "ros_distro": setting.ros_distro,
        "rmw": setting.rmw,
        "commit": setting.commit,
        "executor": setting.executor,
        "composed": setting.composed,
        "cores": setting.cores,
        "load": setting.load,
        "machine": setting.machine,
        "cycles": len(run.cycles),
        "cycles_asked": rates["cycles"]["trials"],
        "cycles_succeeded": rates["cycles"]["events"],
        "success_lower_bound_95": rates["cycles"]["lower_bound_95"],
        "seed": setting.seed,
        "decisions": rates["task_hits"]["trials"],
        "false_hits": run.false_hits,
        "hit_rate": {
            "task": rates["task_hits"]["share"],
            "behavior": rates["behavior_hits"]["share"],
            "execution": rates["confident_ticks"]["share"],
            "per_cycle": [cycle.hit_rate for cycle in run.cycles],
        },
        "rates": rates,
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
        "decisions_dropped": rates["dropped"]["share"],
        "real_time_factor": min(run.real_time_factors, default=None),
        "touch_error_mm": quantiles(errors_mm, p50=0.5, p95=0.95, max=1.0),
        "target_error_mm": {"n": len(looks_mm), **quantiles(looks_mm, p50=0.5, p95=0.95, max=1.0)},
        **_screws(run, setting.commanded_torque),
        "stage_s": _stage_durations(stages),
        "stage_rate": _stage_rates(stages),
        "cpu_percent": run.cpu_percent,
        "rss_mb": run.rss_mb,
        "failures": run.failures,
        "stops": run.stops,
        "traced_cycle": run.trace.index or None,
        "per_cycle": [
            {
                "succeeded": cycle.succeeded,
                "message": cycle.message,
                "decisions": cycle.decisions,
                "task_hits": cycle.task_hits,
                "behavior_hits": cycle.behavior_hits,
                "duration_s": cycle.duration,
                "touch_error_mm": cycle.touch_error * 1e3,
                "target_error_mm": max(cycle.target_errors, default=math.nan) * 1e3,
                "contact_force_n": cycle.contact_force,
                "final_torque_nm": cycle.final_torque,
                "advance_mm": cycle.advance * 1e3,
                "search_mm": cycle.search * 1e3,
                "stage_s": {
                    name: _spent(spans[number]) for name, spans in stages.items() if number in spans
                },
            }
            for number, cycle in enumerate(run.cycles)
        ],
    }


def write(report: dict[str, Any], path: Path) -> None:
    """Write the report as JSON; a value that was not measured is null."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(measured(report), indent=2, allow_nan=False) + "\n")


def _rates(run: RunRecord, setting: Setting) -> dict[str, dict[str, Any]]:
    """Return every rate of the run with its exact bounds."""
    counters = run.counters
    asked = len(run.cycles) if setting.cycles is None else max(setting.cycles, len(run.cycles))
    decisions = sum(cycle.decisions for cycle in run.cycles)
    hits = sum(cycle.task_hits for cycle in run.cycles)
    dropped = counters.chunks_late + run.decisions_unsent
    return {
        "cycles": share_of(sum(cycle.succeeded for cycle in run.cycles), asked),
        "task_hits": share_of(hits, decisions),
        "behavior_hits": share_of(sum(cycle.behavior_hits for cycle in run.cycles), decisions),
        "confident_ticks": share_of(counters.confident_ticks, counters.ticks),
        # what was learned of a hit may be told in a later cycle than its own
        "false_hits": share_of(run.false_hits, max(hits, run.false_hits)),
        "late_commands": share_of(counters.late_commands_sent, counters.commands_sent),
        "dropped": share_of(dropped, counters.chunks_adopted + counters.chunks_refused + dropped),
    }


def _screws(run: RunRecord, commanded: float | None) -> dict[str, Any]:
    """Return the figures of screws, lists with one number a cycle; empty without screws."""
    cycles = [] if commanded is None else run.cycles
    torque = [cycle.final_torque for cycle in cycles]
    off = [abs(value / commanded - 1.0) for value in torque] if commanded else []
    return {
        "commanded_torque_nm": commanded,
        "final_torque_nm": torque,
        "torque_off": max(off) if off and all(map(math.isfinite, off)) else None,
        "advance_mm": [cycle.advance * 1e3 for cycle in cycles],
        "search_mm": [cycle.search * 1e3 for cycle in cycles],
    }


def _stages(run: RunRecord) -> _Stages:
    """Return the spans of each stage by the number of the cycle, where it was begun in it.

    Where the run has several tasks, their names tell stages of the same name apart.
    """
    several = len({span.task for cycle in run.cycles for span in cycle.spans}) > 1
    found: _Stages = {}
    for number, cycle in enumerate(run.cycles):
        for span in cycle.spans:
            name = f"{span.task}: {span.stage}" if several and span.task else span.stage
            found.setdefault(name, {}).setdefault(number, []).append(span)
    return found


def _stage_durations(stages: _Stages) -> dict[str, Any]:
    """Return how long each stage took in a cycle, where it was completed [s]."""
    found = {}
    for name, cycles in stages.items():
        spent = [_spent(spans) for spans in cycles.values() if _completed(spans)]
        found[name] = {**quantiles(spent, p50=0.5, p95=0.95, max=1.0), "cycles": len(spent)}
    return found


def _stage_rates(stages: _Stages) -> dict[str, Any]:
    """Return of the cycles in which each stage was begun the share in which it was completed."""
    return {
        name: share_of(sum(map(_completed, cycles.values())), len(cycles))
        for name, cycles in stages.items()
    }


def _spent(spans: list[StageSpan]) -> float:
    return sum(span.seconds for span in spans)


def _completed(spans: list[StageSpan]) -> bool:
    return any(span.completed for span in spans)


def measured(value: Any) -> Any:
    """Return a report whose figures that were not measured, or are not finite, are None."""
    if isinstance(value, dict):
        return {key: measured(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [measured(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
