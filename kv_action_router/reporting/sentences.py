"""What a report says in words. Every number in it is one of the report's."""

from __future__ import annotations

from typing import Any

WORKS = {"touch": ("touch", "touches"), "screw": ("screw", "screws")}


def title(report: dict[str, Any]) -> str:
    """Return what the run was."""
    asked = report["cycles_asked"]
    one, many = WORKS.get(report["work"], (report["work"], f"{report['work']} cycles"))
    return f"Demonstration: {asked} {one if asked == 1 else many}"


def summary(report: dict[str, Any]) -> list[str]:
    """Return a few sentences about a run, the most important one first."""
    found = [_cycles(report), _work(report), _hits(report), _latency(report), _target(report)]
    found += [_bounds(report)]
    return [sentence for sentence in found if sentence]


def _cycles(report: dict[str, Any]) -> str:
    rate = report["rates"]["cycles"]
    if not rate["trials"]:
        return "No cycle was asked for."
    text = f"{rate['events']} of {rate['trials']} cycles succeeded"
    return f"{text}; at 95 % confidence, at least {_percent(rate['lower_bound_95'])} of all would."


def _work(report: dict[str, Any]) -> str:
    torque = [value for value in report["final_torque_nm"] if value is not None]
    if torque:
        text = (
            f"Screws were tightened with {min(torque):.2f} to {max(torque):.2f} N m, "
            f"{report['commanded_torque_nm']:g} were commanded"
        )
        off = report["torque_off"]
        return f"{text}." if off is None else f"{text}: off by at most {_percent(off)}."
    error = report["touch_error_mm"]
    if error["max"] is None:
        return ""
    return (
        f"The tip met the target {error['p50']:.2f} mm from its true center (median), "
        f"{error['max']:.2f} mm at most."
    )


def _hits(report: dict[str, Any]) -> str:
    rate, false = report["rates"]["task_hits"], report["rates"]["false_hits"]
    if not rate["trials"]:
        return "Nothing was decided."
    text = (
        f"Of {rate['trials']} decisions {rate['events']} came from the cache, which was empty at "
        f"first ({_percent(rate['share'])}, at 95 % at least {_percent(rate['lower_bound_95'])})"
    )
    if not rate["events"]:
        return f"{text}."
    known = false["upper_bound_95"]
    return (
        f"{text}; {false['events'] or 'none'} of these hits turned out wrong "
        f"(at 95 % at most {_percent(known)})."
    )


def _latency(report: dict[str, Any]) -> str:
    hit, miss = report["latency_ms"]["pipeline_hit"], report["latency_ms"]["pipeline_miss"]
    parts = [
        f"a {kind} took {figures['mean']:.1f} ms on average and {figures['max']:.1f} ms at most"
        for kind, figures in (("hit", hit), ("miss", miss))
        if figures["mean"] is not None
    ]
    if not parts:
        return ""
    return f"From the camera's image to the first command, {', '.join(parts)}."


def _target(report: dict[str, Any]) -> str:
    error = report["target_error_mm"]
    if error["p95"] is None:
        return ""
    return (
        f"The target was seen within {error['p95']:.2f} mm of its true place in 95 % of "
        f"{error['n']} looks."
    )


def _bounds(report: dict[str, Any]) -> str:
    short = [bound for bound in report["judged"] if not bound["holds"]]
    count = len(report["judged"])
    if not short:
        return f"All {count} bounds are kept." if count else ""
    names = ", ".join(bound["name"] for bound in short)
    return f"{len(short)} of {count} bounds fall short: {names}."


def _percent(share: float | None) -> str:
    return "an unknown share" if share is None else f"{100.0 * share:.3g} %"
