"""The reports of all benchmarks as one page: what was judged, rates, distributions, plots."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

from matplotlib import pyplot as plt

from kv_action_router.reporting import page as pages
from kv_action_router.reporting.page import number
from kv_action_router.reporting.plot import Plot
from kv_action_router.reporting.svg import style

_TAILS = ("n", "mean", "p50", "p99", "p999", "max")
_RATE = ("events", "trials", "share", "lower_bound_95", "upper_bound_95")
_LINES = 8  # of one plot
_NO_NAME = re.compile(r"[^A-Za-z0-9]+")


def page(reports: dict[str, dict[str, Any]]) -> str:
    """Return the page of some reports, by the name of their benchmark."""
    sections = [_section(name, report) for name, report in reports.items()]
    return pages.page("Benchmarks", ("<h1>Benchmarks</h1>", _judged(reports), *sections))


def distributions(report: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every distribution that a report holds, with its path; those without values too."""
    yield from _with_keys(report, ("n", "mean"), path)


def rates(report: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every rate that a report holds with its bounds, and its path."""
    yield from _with_keys(report, _RATE, "")


def _with_keys(
    report: Any, keys: tuple[str, ...], path: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(report, dict):
        if all(key in report for key in keys):
            yield path, report
            return
        for key, value in report.items():
            yield from _with_keys(value, keys, f"{path} / {key}" if path else str(key))
    elif isinstance(report, list):
        for index, value in enumerate(report):
            yield from _with_keys(value, keys, f"{path} / {index}")


def _judged(reports: dict[str, dict[str, Any]]) -> str:
    rows = [
        (
            name,
            bound["name"],
            "not measured" if bound["value"] is None else number(bound["value"]),
            f"{bound['compare']} {bound['limit']:g}",
            pages.verdict(holds=bound["holds"]),
        )
        for name, report in reports.items()
        for bound in report.get("judged", [])
    ]
    head = ("benchmark", "figure", "value", "bound", "")
    caption = "Every bound of every benchmark, with what was measured"
    return f"<h2>What was judged</h2>{pages.table(caption, head, rows, numbers=(2, 3))}"


def _section(name: str, report: dict[str, Any]) -> str:
    figures = {key: value for key, value in report.items() if key != "judged"}
    known = ", ".join(f"{key}: {number(value)}" for key, value in report.get("setting", {}).items())
    found = list(distributions(figures))
    rows = [(path, *(number(entry.get(key)) for key in _TAILS)) for path, entry in found]
    counted = [(path, *(number(entry[key]) for key in _RATE)) for path, entry in rates(figures)]
    head = ("what", "events", "of", "share", "at least", "at most")
    return (
        f'<h2>{html.escape(name)}</h2><p class="muted">{html.escape(known)}</p>'
        + pages.table("Rates, with exact bounds at 95 %", head, counted, numbers=range(1, 6))
        + pages.table("Distributions", ("what", *_TAILS), rows, numbers=range(1, 7))
        + _tails(name, [(path, entry) for path, entry in found if entry.get("curve")])
    )


def _tails(name: str, found: list[tuple[str, dict[str, Any]]]) -> str:
    """Return plots of how much of each distribution lies above a value."""
    whole = [entry for entry in found if entry[0].endswith(("total", "ms", "reaction"))]
    images = []
    for first in range(0, len(whole), _LINES):
        shown = whole[first : first + _LINES]
        with style():
            figure, axis = plt.subplots(figsize=(8.0, 3.4))
            for path, figures in shown:
                shares = [max(1.0 - share, 1e-5) for share, _ in figures["curve"]]
                values = [value for _, value in figures["curve"]]
                axis.plot(values, shares, label=f"{path} (n = {figures['n']})", linewidth=1.2)
            axis.set(yscale="log", ylabel="share above", ylim=(8e-5, 1.2), xlabel="ms")
            axis.grid(visible=True)
            axis.legend(fontsize=7)
        longest = "; ".join(f"{path} {number(figures['max'])} ms" for path, figures in shown)
        alt = f"Share of the values that lie above a time, falling lines; largest: {longest}."
        unique = _NO_NAME.sub("_", f"{name}_{first}")
        images.append(pages.plot(Plot(unique, f"Tails of {name}", alt, figure)))
        plt.close(figure)
    return "".join(images)
