"""Figures of ``pipeline.py`` from what its driver has written down. Pure."""

from __future__ import annotations

from typing import Any

from harness import rows
from harness.phases import Phase, PhaseRecord
from harness.usage import total
from kv_action_router.contracts import TRIGGER_DEADLINE_NS
from kv_action_router.reporting.bounds import NODES
from kv_action_router.reporting.statistics import distribution, share_of

DEADLINE_MS = TRIGGER_DEADLINE_NS * 1e-6


def of_phase(
    phase: Phase, record: PhaseRecord, times: rows.Rows, used: dict[str, Any]
) -> dict[str, Any]:
    """Return the figures of one phase; latencies in ms. ``used`` is what ``Usage.between`` gives.

    ``followed`` and the parts are of decisions that became commands, and only quick ones did: in
    ``total``, which is judged, a dropped one counts as having taken 15 ms, which is the least.
    """
    latencies = rows.latencies(times)
    followed = rows.totals(times)
    lost = record.decisions_dropped + record.decisions_late
    return {
        **latencies,
        "total": distribution([*followed, *[DEADLINE_MS] * lost]),
        "followed": latencies["total"],
        "asked": phase.cycles,
        "decisions": record.decisions,
        "seconds": (record.end_ns - record.begin_ns) * 1e-9,
        **dropped(record),
        "reaction": distribution(record.reactions_ms),
        **used,
        "nodes_cpu_percent": total(used["cpu_percent"], NODES),
        "nodes_rss_mb": total(used["rss_mb"], NODES),
        "stops": record.stops,
        "stops_in_warm_up": record.stops_in_warm_up,
        "failures": record.failures,
        "trouble": record.trouble,
    }


def dropped(record: PhaseRecord) -> dict[str, Any]:
    """Return late commands and dropped decisions, with exact upper bounds.

    Dropped is a decision that was not sent, or whose chunk was not followed, since its trigger was
    too old: it is made again from the next image. Late are commands that were sent although their
    trigger was older than 15 ms; their trials are the decisions that came into force.
    """
    made = sum(record.decisions.values())
    lost = record.decisions_dropped + record.decisions_late
    return {
        "late_commands": share_of(record.counters.get("late_commands_sent", 0), made),
        "dropped": share_of(lost, made + lost),
        "counters": record.counters,
    }


def ratios(report: dict[str, Any]) -> dict[str, Any]:
    """Return means over the mean of a hit, and the distance of hits from the floor [ms]."""
    found: dict[str, Any] = {}
    for kind in ("separate", "composed"):
        phases = report.get(kind, {})
        hit = phases.get("hit", {}).get("total", {}).get("mean")
        low = report.get("floor", {}).get(kind, {}).get("total", {}).get("mean")
        miss = phases.get("miss", {}).get("total", {}).get("mean")
        end_to_end = {
            name: _over(policy.get("ms", {}).get("mean"), hit)
            for name, policy in report.get("end_to_end", {}).items()
        }
        found[kind] = {
            "above_floor_ms": None if hit is None or low is None else hit - low,
            "cache_off": _over(miss, hit),
            "end_to_end": end_to_end,
        }
    return found


def _over(value: float | None, hit: float | None) -> float | None:
    return None if value is None or not hit else value / hit
