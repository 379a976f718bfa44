"""One plot: a figure, what it is called, and what can be seen in it."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure


@dataclass(frozen=True)
class Plot:
    """A figure with its words.

    Attributes:
        name: of its file, unique in a report.
        title: that stands under it.
        alt: what can be seen, for those who can't.
        figure: drawn inside :func:`kv_action_router.reporting.svg.style`.
    """

    name: str
    title: str
    alt: str
    figure: Figure
