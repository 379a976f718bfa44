"""The page of a demonstration: what was measured, in words, tables and pictures."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from kv_action_router.reporting import demo_tables as tables
from kv_action_router.reporting import page, sentences
from kv_action_router.reporting.film import Frame
from kv_action_router.reporting.page import number
from kv_action_router.reporting.plot import Plot

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


def render(report: dict[str, Any], plots: Sequence[Plot], frames: Sequence[Frame]) -> str:
    """Return the page.

    Args:
        report: what ``report.json`` holds.
        plots: that were drawn of the run.
        frames: of one cycle, in order; none where it could not be rendered.
    """
    drawn = {plot.name: page.plot(plot) for plot in plots}

    def take(*names: str) -> str:
        return "".join(drawn.pop(name, "") for name in names)

    sections = {
        "bounds": tables.bounds(report),
        "film": _film(report, frames),
        "cycles": take("hit_rate") + tables.cycles(report),
        "latency": take("latency") + tables.latency(report) + take("latency_tails", "image_age"),
        "stages": take("stages") + tables.stages(report),
        "processes": tables.processes(report),
        "setting": tables.setting(report),
        "reports": tables.reports(report),
        "figures": tables.figures(report),
    }
    small = take("search_path", "target")
    pair = f'<div class="pair">{small}</div>' if small else ""
    sections["work"] = "".join(drawn.values()) + pair
    shown = [(key, name) for key, name in _SECTIONS if sections[key]]
    links = "\n".join(f'<a href="#{key}">{html.escape(name)}</a>' for key, name in shown)
    return page.page(
        sentences.title(report),
        (
            f"<h1>{html.escape(sentences.title(report))}</h1>",
            _ended_by(report),
            _summary(report),
            _tiles(report),
            f'<nav aria-label="sections">{links}</nav>',
            *(
                f'<section id="{key}"><h2>{html.escape(name)}</h2>{sections[key]}</section>'
                for key, name in shown
            ),
        ),
    )


def _summary(report: dict[str, Any]) -> str:
    first, *others = sentences.summary(report)
    return f'<p class="lead">{html.escape(first)}</p><p>{html.escape(" ".join(others))}</p>'


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


def _of(rate: dict[str, Any]) -> str:
    return f"{rate['events']} of {rate['trials']}"


def _bound(rate: dict[str, Any]) -> str:
    return number(rate["lower_bound_95"], 3)


def _with(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:.3g} {unit}"
