"""The table that ``pipeline.py`` prints."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table

_TAILS = ("mean", "p50", "p99", "p999", "max")


def show(report: dict[str, Any]) -> Group:
    """Return latencies, shares and ratios of a report."""
    return Group(_latencies(report), _shares(report), _ratios(report))


def _latencies(report: dict[str, Any]) -> Table:
    table = Table("what", "part", "n", "mean", "p50", "p99", "p99.9", "max", title="ms")
    for kind in ("separate", "composed"):
        for phase, found in report.get(kind, {}).items():
            if isinstance(found, dict):
                for part in (
                    "total",
                    "followed",
                    "encode",
                    "match",
                    "synthesize",
                    "inject",
                    "reaction",
                ):
                    if found[part]["n"]:
                        _row(table, f"{kind}, {phase}", part, found[part])
    for kind, found in report.get("floor", {}).items():
        _row(table, f"{kind}, floor", "total", found["total"])
    for name, policy in report.get("end_to_end", {}).items():
        if "ms" in policy:
            _row(table, f"end-to-end, {name}", "inference", policy["ms"])
        else:
            table.add_row(f"end-to-end, {name}", policy["trouble"])
    return table


def _row(table: Table, name: str, part: str, found: dict[str, Any]) -> None:
    cells = ("-" if found[key] is None else f"{found[key]:.2f}" for key in _TAILS)
    table.add_row(name, part, str(found["n"]), *cells)


def _shares(report: dict[str, Any]) -> Table:
    table = Table("what", "hits", "misses", "late", "dropped", "at most", "cpu %", "MB", "trouble")
    for kind in ("separate", "composed"):
        for phase, found in report.get(kind, {}).items():
            if not isinstance(found, dict):
                continue
            lost = found["dropped"]
            table.add_row(
                f"{kind}, {phase}",
                str(found["decisions"].get("hit", 0)),
                str(found["decisions"].get("miss", 0)),
                str(found["late_commands"]["events"]),
                f"{lost['events']} of {lost['trials']}",
                _shown(lost["upper_bound_95"], "{:.2%}"),
                _shown(found["nodes_cpu_percent"], "{:.0f}"),
                _shown(found["nodes_rss_mb"], "{:.0f}"),
                found["trouble"],
            )
    return table


def _ratios(report: dict[str, Any]) -> Table:
    table = Table("ratio to the mean of a hit", "separate", "composed")
    found = report["ratios"]
    rows = [("mean above the floor's [ms]", "above_floor_ms"), ("cache off", "cache_off")]
    for title, key in rows:
        table.add_row(title, *(_shown(found[kind][key], "{:.2f}") for kind in found))
    for name in found["separate"]["end_to_end"]:
        ratios = (found[kind]["end_to_end"].get(name) for kind in found)
        table.add_row(f"end-to-end, {name}", *(_shown(ratio, "{:.1f}") for ratio in ratios))
    return table


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)
