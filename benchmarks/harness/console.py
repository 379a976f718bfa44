"""The console of the benchmarks: tables keep their columns where the output is no terminal."""

from __future__ import annotations

from rich.console import Console

_WIDTH = 120


def wide_console() -> Console:
    """Return a console of at least 120 columns."""
    console = Console()
    return console if console.width >= _WIDTH else Console(width=_WIDTH)
