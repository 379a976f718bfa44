"""What the pages of all reports are made of: head, style, tables, figures. No JavaScript.

A page is one file: no font, image or style comes from elsewhere.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence
from typing import Any

from kv_action_router.reporting.plot import Plot
from kv_action_router.reporting.svg import COLORS, inline

_LIGHT = {**COLORS, "paper": "#ffffff", "wash": "#f4f6f8", "kept": "#1d7a4c", "short": "#b3391f"}
_DARK = {
    "ink": "#e8edf2",
    "muted": "#a3b0bd",
    "grid": "#36424f",
    "paper": "#14191f",
    "wash": "#1d242c",
    "blue": "#5cb3d4",
    "orange": "#ee8a66",
    "teal": "#55c7ba",
    "gold": "#e2b94f",
    "violet": "#a792dd",
    "rose": "#e080b2",
    "gray": "#7d8a97",
    "kept": "#6fd1a0",
    "short": "#f08d74",
}
_RULES = """
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 2rem 1.25rem 4rem; background: var(--paper);
  color: var(--ink); font: 16px/1.55 var(--sans); }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; letter-spacing: -.01em; }
h2 { font-size: 1.25rem; margin: 2.8rem 0 .6rem; padding-top: .9rem;
  border-top: 1px solid var(--grid); }
h3 { font-size: 1rem; margin: 1.8rem 0 .4rem; }
p { margin: .5rem 0; max-width: 46rem; }
.lead { font-size: 1.15rem; } .muted, caption, figcaption { color: var(--muted); }
.alarm { border-left: 4px solid var(--short); background: var(--wash); padding: .7rem 1rem;
  max-width: none; }
nav { margin: 1rem 0; } nav a { margin-right: 1rem; color: var(--blue); white-space: nowrap; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.6rem, 1fr)); gap: .6rem;
  margin: 1.4rem 0; padding: 0; list-style: none; }
.tiles li { background: var(--wash); border-radius: .5rem; padding: .8rem .9rem; }
.tiles b { display: block; font-size: 1.3rem; line-height: 1.25; font-weight: 650;
  white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.tiles span { color: var(--muted); font-size: .85rem; line-height: 1.35; display: block; }
.scroll { overflow-x: auto; margin: .8rem 0 1.4rem; }
table { border-collapse: collapse; font-size: .87rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: 0 0 .4rem; font-size: .85rem; }
th, td { padding: .28rem .7rem; text-align: left; border-bottom: 1px solid var(--grid);
  vertical-align: top; }
thead th { color: var(--muted); font-weight: 600; border-bottom: 2px solid var(--grid);
  max-width: 7rem; vertical-align: bottom; }
thead .number { white-space: normal; }
tbody th { font-weight: 500; }
tbody tr:nth-child(even) { background: var(--wash); }
.number { text-align: right; white-space: nowrap; }
.kept, .short { font-weight: 650; white-space: nowrap; }
.kept { color: var(--kept); } .short { color: var(--short); }
figure { margin: 1.2rem 0; } figcaption { font-size: .85rem; margin-top: .3rem; }
figure svg { display: block; width: 100%; height: auto; overflow: visible; }
svg * { stroke-linejoin: round; stroke-linecap: butt; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 0 1.5rem;
  align-items: start; }
.strip { display: grid; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); gap: .9rem;
  margin: 1rem 0; padding: 0; list-style: none; }
.strip img { display: block; width: 100%; height: auto; border-radius: .4rem; }
.strip b { font-weight: 600; } .strip figure { margin: 0; }
pre, code { font: .85rem/1.5 ui-monospace, monospace; }
@media print {
  body { max-width: none; padding: 0; font-size: 10.5pt; } nav { display: none; }
  h2, h3 { break-after: avoid; } figure, tr, .tiles li { break-inside: avoid; }
  .strip { grid-template-columns: repeat(3, 1fr); }
}
"""


def page(title: str, body: Iterable[str]) -> str:
    """Return a whole page; ``body`` holds its elements."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_style()}</style></head>\n<body><main>\n"
        + "\n".join(part for part in body if part)
        + "\n</main></body></html>\n"
    )


def table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    numbers: Iterable[int] = (),
) -> str:
    """Return a table whose first column names its rows.

    Args:
        caption: what it shows.
        head: names of the columns.
        rows: cells; what :func:`verdict` made stays markup, all else is text.
        numbers: columns that are aligned to the right.
    """
    aligned = set(numbers)
    kind = [' class="number"' if column in aligned else "" for column in range(len(head))]
    names = "".join(
        f'<th scope="col"{kind[column]}>{html.escape(name)}</th>'
        for column, name in enumerate(head)
    )
    lines = []
    for first, *others in rows:
        cells = "".join(
            f"<td{kind[column]}>{_cell(text)}</td>" for column, text in enumerate(others, 1)
        )
        lines.append(f'<tr><th scope="row"{kind[0]}>{_cell(first)}</th>{cells}</tr>')
    if not lines:
        return ""
    return (
        f'<div class="scroll" tabindex="0"><table><caption>{html.escape(caption)}</caption>'
        f"<thead><tr>{names}</tr></thead><tbody>\n" + "\n".join(lines) + "</tbody></table></div>"
    )


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def verdict(*, holds: bool, judged: bool = True) -> Markup:
    """Return whether a bound is kept, in words and color."""
    if holds:
        return Markup('<span class="kept">kept</span>')
    return Markup(f'<span class="short">{"falls short" if judged else "short, not judged"}</span>')


def plot(content: Plot) -> str:
    """Return a plot as a figure with its caption."""
    drawn = inline(content.figure, content.name, content.alt)
    return f"<figure>{drawn}<figcaption>{html.escape(content.title)}</figcaption></figure>"


def picture(data: bytes, kind: str, alt: str, caption: str = "") -> str:
    """Return an image as a figure; ``kind`` is ``png`` or ``jpeg``."""
    text = base64.b64encode(data).decode()
    words = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    return (
        f'<figure><img alt="{html.escape(alt)}" src="data:image/{kind};base64,{text}">'
        f"{words}</figure>"
    )


def number(value: Any, digits: int = 4) -> str:
    """Return a figure for people; None is a dash."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def _cell(text: str) -> str:
    return text if isinstance(text, Markup) else html.escape(text)


def _style() -> str:
    def variables(colors: dict[str, str]) -> str:
        return " ".join(f"--{name}: {color};" for name, color in colors.items())

    sans = '--sans: system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;'
    light, dark = variables(_LIGHT), variables(_DARK)
    return (
        f"\n:root {{ {sans} {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
        f"@media print {{ :root {{ {light} }} }}\n{_RULES}"
    )
