"""The reports of all benchmarks as one page: what was judged, every distribution, plots."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterator
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt

_TAILS = ("n", "mean", "p50", "p99", "p999", "max")
_LINES = 8  # of one plot
_STYLE = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; }
table { border-collapse: collapse; margin: 0.5em 0 1.5em; }
td, th { border: 1px solid #ccc; padding: 0.2em 0.6em; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
tr.short td { background: #fde7e2; } tr.kept td { background: #e8f4ea; }
img { max-width: 100%; } .setting { color: #555; }
"""


def page(reports: dict[str, dict[str, Any]]) -> str:
    """Return the page of some reports, by the name of their benchmark."""
    parts = [f"<h1>Benchmarks</h1>{_judged(reports)}"]
    parts += [_section(name, report) for name, report in reports.items()]
    body = "\n".join(parts)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Benchmarks</title>'
        f"<style>{_STYLE}</style><body>{body}</body></html>\n"
    )


def distributions(report: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every distribution that a report holds, with its path; those without values too."""
    if isinstance(report, dict):
        if "n" in report and "mean" in report:
            yield path, report
            return
        for key, value in report.items():
            yield from distributions(value, f"{path} / {key}" if path else str(key))
    elif isinstance(report, list):
        for index, value in enumerate(report):
            yield from distributions(value, f"{path} / {index}")


def _judged(reports: dict[str, dict[str, Any]]) -> str:
    rows = []
    for name, report in reports.items():
        for bound in report.get("judged", []):
            kind = "kept" if bound["holds"] else "short"
            value = "not measured" if bound["value"] is None else _number(bound["value"])
            cells = (name, bound["name"], value, f"{bound['compare']} {bound['limit']:g}")
            rows.append(f'<tr class="{kind}">{"".join(map(_cell, cells))}</tr>')
    head = _head("benchmark", "figure", "value", "bound")
    return f"<h2>What was judged</h2><table>{head}{''.join(rows)}</table>"


def _section(name: str, report: dict[str, Any]) -> str:
    setting = report.get("setting", {})
    known = ", ".join(f"{key}: {_number(value)}" for key, value in setting.items())
    found = list(distributions({k: v for k, v in report.items() if k != "judged"}))
    rows = []
    for path, figures in found:
        cells = "".join(_cell(_number(figures.get(key)), number=True) for key in _TAILS)
        rows.append(f"<tr>{_cell(path)}{cells}</tr>")
    table = f"<table>{_head('what', *_TAILS)}{''.join(rows)}</table>" if rows else ""
    plotted = _tails([(path, f) for path, f in found if f.get("curve")])
    return (
        f'<h2>{html.escape(name)}</h2><p class="setting">{html.escape(known)}</p>{table}{plotted}'
    )


def _tails(found: list[tuple[str, dict[str, Any]]]) -> str:
    """Return plots of how much of each distribution lies above a value."""
    whole = [entry for entry in found if entry[0].endswith(("total", "ms", "reaction"))]
    images = []
    for first in range(0, len(whole), _LINES):
        figure, axis = plt.subplots(figsize=(8.0, 3.6))
        for path, figures in whole[first : first + _LINES]:
            shares = [max(1.0 - share, 1e-5) for share, _ in figures["curve"]]
            values = [value for _, value in figures["curve"]]
            axis.plot(values, shares, label=f"{path} (n = {figures['n']})", linewidth=1.2)
        axis.set(yscale="log", ylabel="share above", ylim=(8e-5, 1.2))
        axis.set_xlabel("ms")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7)
        images.append(_image(figure))
    return "".join(images)


def _image(figure: Any) -> str:
    data = io.BytesIO()
    figure.savefig(data, dpi=110, bbox_inches="tight")
    plt.close(figure)
    text = base64.b64encode(data.getvalue()).decode()
    return f'<p><img alt="tails" src="data:image/png;base64,{text}"></p>'


def _head(*names: str) -> str:
    return f"<tr>{''.join(f'<th>{html.escape(name)}</th>' for name in names)}</tr>"


def _cell(text: str, *, number: bool = False) -> str:
    return f"<td{' class=number' if number else ''}>{html.escape(text)}</td>"


def _number(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
