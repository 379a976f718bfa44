"""The tables of a demonstration's page. Between them they hold every figure of the report."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from kv_action_router.reporting import page
from kv_action_router.reporting.page import Markup, number

_COLUMNS = (
    ("duration_s", "duration [s]"),
    ("decisions", "decisions"),
    ("task_hits", "task hits"),
    ("behavior_hits", "behavior hits"),
    ("target_error_mm", "target error, largest [mm]"),
    ("touch_error_mm", "touch error [mm]"),
    ("contact_force_n", "contact force [N]"),
    ("final_torque_nm", "final torque [N m]"),
    ("advance_mm", "advance [mm]"),
    ("search_mm", "search [mm]"),
)
_RATES = {
    "cycles": "cycles that succeeded",
    "task_hits": "task hits over decisions",
    "behavior_hits": "behavior hits over decisions",
    "confident_ticks": "control ticks with every drive trusted",
    "false_hits": "false hits over task hits",
    "late_commands": "late commands over commands",
    "dropped": "chunks dropped as late",
}
_SETTING = ("started", "ros_distro", "rmw", "executor", "composed", "commit", "seed", "load")
_RATE_HEAD = ("events", "of", "share", "at least", "at most")
_DIGITS = re.compile(r"\d+(\.\d+)?")


def bounds(report: dict[str, Any]) -> str:
    """Return every bound with what was measured, and every rate."""
    rows = [
        (
            bound["name"],
            "not measured" if bound["value"] is None else number(bound["value"]),
            f"{bound['compare']} {bound['limit']:g}",
            page.verdict(holds=bound["holds"], judged=bound["judged"]),
        )
        for bound in report["judged"]
    ]
    caption = "What the run must keep. In short runs, and in CI, only the essential ones decide."
    table = page.table(caption, ("figure", "value", "bound", ""), rows, numbers=(1, 2))
    return table + _rates(report)


def _rates(report: dict[str, Any]) -> str:
    caption = "Rates, with exact bounds (Clopper-Pearson, one-sided, 95 % each)"
    rows = [(_RATES.get(name, name), *_rate_cells(rate)) for name, rate in report["rates"].items()]
    return page.table(caption, ("rate", *_RATE_HEAD), rows, numbers=range(1, 6))


def _rate_cells(rate: dict[str, Any]) -> tuple[str, ...]:
    names = ("events", "trials", "share", "lower_bound_95", "upper_bound_95")
    return tuple(number(rate[name]) for name in names)


def cycles(report: dict[str, Any]) -> str:
    """Return a row for each cycle."""
    cycles = report["per_cycle"]
    known = [
        (key, name) for key, name in _COLUMNS if any(cycle[key] is not None for cycle in cycles)
    ]
    rows = [
        (
            str(index),
            Markup('<span class="kept">done</span>')
            if cycle["succeeded"]
            else Markup(f'<span class="short">failed</span> {html.escape(cycle["message"])}'),
            *(number(cycle[key]) for key, _ in known),
        )
        for index, cycle in enumerate(cycles, 1)
    ]
    head = ("cycle", "outcome", *(name for _, name in known))
    return page.table("One row a cycle", head, rows, numbers=range(2, len(head)))


def latency(report: dict[str, Any]) -> str:
    """Return the latencies and their parts."""
    keys = ("n", "mean", "p50", "p99", "max")
    rows = [
        (name.replace("_", " "), *(number(figures[key]) for key in keys))
        for name, figures in report["latency_ms"].items()
    ]
    caption = (
        "From the source time stamp of what triggered a decision to its first command, and the "
        "parts of that, transport included [ms]"
    )
    return page.table(caption, ("latency", *keys), rows, numbers=range(1, 6))


def stages(report: dict[str, Any]) -> str:
    """Return durations and rates of each stage, over all cycles and in each."""
    keys = ("p50", "p95", "max")
    rows = [
        (
            name,
            *(number(figures[key]) for key in keys),
            *_rate_cells(report["stage_rate"][name]),
        )
        for name, figures in report["stage_s"].items()
    ]
    head = ("stage", *(f"{key} [s]" for key in keys), "completed", "begun", *_RATE_HEAD[2:])
    caption = "Stages over the cycles in which they were begun, with exact bounds of the rate"
    table = page.table(caption, head, rows, numbers=range(1, len(head)))
    names = list(report["stage_s"])
    each = [
        (str(index), *(number(cycle["stage_s"].get(name)) for name in names))
        for index, cycle in enumerate(report["per_cycle"], 1)
        if cycle["stage_s"]
    ]
    return table + page.table(
        "Time in each stage, cycle by cycle [s]",
        ("cycle", *names),
        each,
        numbers=range(1, 1 + len(names)),
    )


def processes(report: dict[str, Any]) -> str:
    """Return the control loop, and what the processes took."""
    loop = report["control_loop"]
    lateness = loop["lateness_us"]
    rows = [
        ("rate [Hz]", number(loop["rate_hz"])),
        *((f"lateness {name} [us]", number(value)) for name, value in lateness.items()),
        ("periods missed", number(loop["missed"])),
        ("ticks", number(loop["ticks"])),
        ("real-time scheduling", number(loop["realtime"])),
        ("real-time factor of the simulation", number(report["real_time_factor"])),
    ]
    table = page.table("Control loop", ("figure", "value"), rows, numbers=(1,))
    processes = [
        (name, number(cpu), number(report["rss_mb"].get(name)))
        for name, cpu in report["cpu_percent"].items()
    ]
    head = ("process", "CPU [% of a core]", "memory [MB]")
    other = page.table("Processes", head, processes, numbers=(1, 2))
    return f'<div class="pair">{table}{other}</div>'


def setting(report: dict[str, Any]) -> str:
    """Return where, when and of what the run was made."""
    rows = [(name.replace("_", " "), number(report[name])) for name in _SETTING]
    rows += [(name.replace("_", " "), number(value)) for name, value in report["machine"].items()]
    return page.table("Where, when and of what", ("", ""), rows)


def reports(report: dict[str, Any]) -> str:
    """Return what the nodes reported, by its kind."""
    kinds = Counter(_DIGITS.sub("#", text) for text in report["failures"])
    first: dict[str, str] = {}
    for text in report["failures"]:
        first.setdefault(_DIGITS.sub("#", text), text)
    rows = [(str(count), first[kind]) for kind, count in kinds.most_common()]
    stops = [(str(count), text) for text, count in Counter(report["stops"]).most_common()]
    return page.table(
        "Warnings and errors, one row a kind, with the first of it", ("times", "report"), rows
    ) + page.table("Stops", ("times", "by whom, and why"), stops)


def figures(report: dict[str, Any]) -> str:
    """Return what no other table holds."""
    apart = {"per_cycle", "judged", "failures", "stops", "stage_s", "stage_rate", "rates"}
    rest = {key: value for key, value in report.items() if key not in apart}
    rows = [(path, text) for path, text in _flat(rest)]
    return "<p>As in <code>report.json</code>; docs/reports.md says what each is.</p>" + page.table(
        "Figures that no table above holds, and those that sum them up", ("figure", "value"), rows
    )


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)):
        yield path, ", ".join(number(item) for item in value) or "none"
    else:
        yield path, number(value)
