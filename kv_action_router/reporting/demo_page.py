"""The page of a demonstration: what was measured, in words, tables and pictures."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from kv_action_router.reporting import page, sentences
from kv_action_router.reporting.film import Frame
from kv_action_router.reporting.page import Markup, number
from kv_action_router.reporting.plot import Plot

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
_SECTIONS = (
    ("bounds", "Bounds"),
    ("film", "One cycle in pictures"),
    ("cycles", "Cycles"),
    ("latency", "Latency"),
    ("stages", "Stages"),
    ("work", "At work"),
    ("processes", "Control loop and processes"),
    ("setting", "Setting"),
    ("reports", "What the nodes reported"),
    ("figures", "Every figure"),
)
_RATE_HEAD = ("events", "of", "share", "at least", "at most")
_DIGITS = re.compile(r"\d+(\.\d+)?")


def render(report: dict[str, Any], plots: Sequence[Plot], frames: Sequence[Frame]) -> str:
    """Return the page.

    Args:
        report: what ``report.json`` holds.
        plots: that were drawn of the run.
        frames: of one cycle, in order; none where it could not be rendered.
    """
    drawn = {plot.name: page.plot(plot) for plot in plots if plot.name != "target"}
    target = next((plot for plot in plots if plot.name == "target"), None)
    sections = {
        "bounds": _bounds(report),
        "film": _film(report, frames),
        "cycles": _cycles(report) + drawn.pop("hit_rate", ""),
        "latency": _latency(report)
        + "".join(drawn.pop(name, "") for name in ("latency", "latency_tails", "image_age")),
        "stages": drawn.pop("stages", "") + _stages(report),
        "processes": _processes(report),
        "setting": _setting(report),
        "reports": _reports(report),
        "figures": _figures(report),
    }
    pair = "".join(drawn.pop(name, "") for name in ("search_path",))
    pair += page.plot(target) if target is not None else ""
    sections["work"] = "".join(drawn.values()) + (f'<div class="pair">{pair}</div>' if pair else "")
    shown = [(key, name) for key, name in _SECTIONS if sections[key]]
    links = "".join(f'<a href="#{key}">{html.escape(name)}</a>' for key, name in shown)
    return page.page(
        sentences.title(report),
        (
            f"<h1>{html.escape(sentences.title(report))}</h1>",
            _ended_by(report),
            f'<p class="lead">{html.escape(" ".join(sentences.summary(report)))}</p>',
            _tiles(report),
            f'<nav aria-label="sections">{links}</nav>',
            *(
                f'<section id="{key}"><h2>{html.escape(name)}</h2>{sections[key]}</section>'
                for key, name in shown
            ),
        ),
    )


def _ended_by(report: dict[str, Any]) -> str:
    if not report["ended_by"]:
        return ""
    return (
        f'<p class="alarm" role="alert"><strong>The run is not complete.</strong> '
        f"It ended after {report['cycles']} of {report['cycles_asked']} cycles: "
        f"{html.escape(report['ended_by'])}</p>"
    )


def _tiles(report: dict[str, Any]) -> str:
    rates, hit = report["rates"], report["latency_ms"]["pipeline_hit"]
    kept = sum(bound["holds"] for bound in report["judged"])
    cycles, hits = rates["cycles"], rates["task_hits"]
    tiles = [
        (_of(cycles), f"cycles succeeded; at 95 % at least {_bound(cycles)}"),
        (_of(hits), f"decisions from the cache; at 95 % at least {_bound(hits)}"),
        (_with(hit["mean"], "ms"), f"image to command of a hit; at most {_with(hit['max'], 'ms')}"),
    ]
    if report["commanded_torque_nm"]:
        worst = None if report["torque_off"] is None else 100.0 * report["torque_off"]
        tiles.append((_with(worst, "%"), "worst torque off what was commanded"))
    else:
        tiles.append((_with(report["touch_error_mm"]["max"], "mm"), "largest error of a touch"))
    looks = report["target_error_mm"]
    tiles.append(
        (_with(looks["p95"], "mm"), f"error of the seen target, p95 of {looks['n']} looks")
    )
    tiles.append((f"{kept} of {len(report['judged'])}", "bounds kept"))
    items = "".join(
        f"<li><b>{html.escape(value)}</b><span>{html.escape(text)}</span></li>"
        for value, text in tiles
    )
    return f'<ul class="tiles">{items}</ul>'


def _bounds(report: dict[str, Any]) -> str:
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


def _film(report: dict[str, Any], frames: Sequence[Frame]) -> str:
    if not frames:
        return ""
    items = []
    for frame in frames:
        shot = frame.shot
        alt = f"The cell at {shot.seconds:.2f} s; {shot.caption}."
        caption = f"{shot.seconds:.2f} s  {shot.caption}"
        items.append(f"<li>{page.picture(frame.jpeg, 'jpeg', alt, caption)}</li>")
    return (
        f"<p>Cycle {report['traced_cycle']}, rendered after the run from the joint positions that "
        "were measured in it; the eye goes nearer as the tool does.</p>"
        f'<ol class="strip">{"".join(items)}</ol>'
    )


def _cycles(report: dict[str, Any]) -> str:
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


def _latency(report: dict[str, Any]) -> str:
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


def _stages(report: dict[str, Any]) -> str:
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


def _processes(report: dict[str, Any]) -> str:
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


def _setting(report: dict[str, Any]) -> str:
    rows = [(name.replace("_", " "), number(report[name])) for name in _SETTING]
    rows += [(name.replace("_", " "), number(value)) for name, value in report["machine"].items()]
    return page.table("Where, when and of what", ("", ""), rows)


def _reports(report: dict[str, Any]) -> str:
    kinds = Counter(_DIGITS.sub("#", text) for text in report["failures"])
    first: dict[str, str] = {}
    for text in report["failures"]:
        first.setdefault(_DIGITS.sub("#", text), text)
    rows = [(str(count), first[kind]) for kind, count in kinds.most_common()]
    stops = [(str(count), text) for text, count in Counter(report["stops"]).most_common()]
    return page.table(
        "Warnings and errors, one row a kind, with the first of it", ("times", "report"), rows
    ) + page.table("Stops", ("times", "by whom, and why"), stops)


def _figures(report: dict[str, Any]) -> str:
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


def _of(rate: dict[str, Any]) -> str:
    return f"{rate['events']} of {rate['trials']}"


def _bound(rate: dict[str, Any]) -> str:
    return number(rate["lower_bound_95"], 3)


def _with(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:.3g} {unit}"
