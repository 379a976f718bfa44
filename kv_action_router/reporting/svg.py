"""Figures as SVG that stands inside a page and follows its colors, in light and in dark."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler

# Colors are drawn as these and become the page's variables of the same name (reporting/page.py).
INK, MUTED, GRID, PAPER = "#1f2a37", "#5b6876", "#d5dce3", "#fefefe"
BLUE, ORANGE, TEAL, GOLD = "#2a7f9e", "#d1603d", "#2a9d8f", "#c99a2e"
VIOLET, ROSE, GRAY = "#7a62b3", "#c2528b", "#8794a1"
COLORS = {
    "ink": INK,
    "muted": MUTED,
    "grid": GRID,
    "paper": PAPER,
    "blue": BLUE,
    "orange": ORANGE,
    "teal": TEAL,
    "gold": GOLD,
    "violet": VIOLET,
    "rose": ROSE,
    "gray": GRAY,
}
SERIES = (BLUE, ORANGE, TEAL, GOLD, VIOLET, ROSE, GRAY)

_STYLE: Any = {
    "svg.fonttype": "none",  # text stays text: it can be searched, and takes the page's font
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": GRAY,
    "axes.labelcolor": MUTED,
    "axes.titlecolor": INK,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler(color=SERIES),
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "figure.facecolor": "none",
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "lines.linewidth": 1.4,
    "lines.solid_capstyle": "round",
}
_NAMES = {color: f"var(--{name})" for name, color in COLORS.items()}
_COLOR = re.compile("|".join(_NAMES), re.IGNORECASE)
_PIXELS = 1.65  # of the widest that a figure is shown, for each point
_ID = re.compile(r'(\bid="|xlink:href="#|url\(#)')
_FONT = re.compile(r"(font: [^;\"]*?px |font-family: )[^;\"]+")
_HEAD = re.compile(
    r'<svg [^>]*?width="([\d.]+)pt"[^>]*?(viewBox="[^"]*")[^>]*>\s*<defs>.*?</defs>', re.S
)
_PATH = re.compile(r'(\sd=")([^"]*)"')
_LONG = re.compile(r"(-?\d+\.\d\d)\d+")


@contextmanager
def style() -> Iterator[None]:
    """Draw in the reports' style inside the block."""
    with plt.rc_context(_STYLE):
        yield


def inline(figure: Figure, name: str, alt: str) -> str:
    """Return a figure as an SVG element.

    Args:
        figure: drawn inside :func:`style`.
        name: unique on the page; its ids begin with it.
        alt: what can be seen, for those who can't.
    """
    data = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with plt.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure.savefig(data, format="svg", bbox_inches="tight", transparent=True, metadata=nothing)
    text = data.getvalue()
    head = _HEAD.search(text)
    assert head is not None
    width = float(head[1]) * _PIXELS
    text = text[head.end() :]
    text = _COLOR.sub(lambda found: _NAMES[found.group().lower()], text)
    text = _ID.sub(rf"\1{name}-", text).replace("xlink:href", "href")
    text = _FONT.sub(r"\1var(--sans)", text)
    text = _PATH.sub(_shortened, text)
    return (
        f'<svg role="img" aria-label="{html.escape(alt)}" {head[2]} '
        f'style="max-width: {width:.0f}px">{text.strip()}'
    )


def _shortened(path: re.Match[str]) -> str:
    """Return a path with hundredths of a point, which nobody can see."""
    points = _LONG.sub(r"\1", path[2])
    return f'{path[1]}{points}"'
