"""The live table of a run on a terminal; plain lines where there is no terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from kv_action_router.reporting.records import PARTS, CycleRecord, RunRecord
from kv_action_router.reporting.statistics import share_of, summary


class LiveView:
    """Shows a run while it goes on."""

    def __init__(self, title: str, cycles: int, console: Console | None = None) -> None:
        self._console = console or Console()
        self._progress = Progress(
            TextColumn(f"[bold]{title}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        )
        self._task = self._progress.add_task(title, total=cycles)
        self._live: Live | None = None

    @contextmanager
    def shown(self, run: RunRecord) -> Iterator[LiveView]:
        """Show the view inside the block."""
        with Live(
            self._render(run), console=self._console, refresh_per_second=4, transient=False
        ) as live:
            self._live = live
            yield self
            live.update(self._render(run))
        self._live = None

    def cycle_done(self, run: RunRecord, cycle: CycleRecord) -> None:
        """Advance by one cycle; without a terminal, print a line."""
        self._progress.advance(self._task)
        if not self._console.is_terminal:
            outcome = "done" if cycle.succeeded else f"FAILED: {cycle.message}"
            figure = f"error {cycle.touch_error * 1e3:.2f} mm"
            if math.isfinite(cycle.final_torque):
                figure = f"{cycle.final_torque:.2f} N m, searched {cycle.search * 1e3:.1f} mm"
            self._console.print(
                f"cycle {cycle.index:3d}  {outcome}  {figure}  "
                f"task hits {cycle.task_hits}/{cycle.decisions}  {cycle.duration:.1f} s",
                highlight=False,
            )
        self.refresh(run)

    def refresh(self, run: RunRecord) -> None:
        """Draw the run's present figures."""
        if self._live is not None and self._console.is_terminal:
            self._live.update(self._render(run))

    def _render(self, run: RunRecord) -> Group:
        return Group(self._progress, _rates(run), _latencies(run))


def _rates(run: RunRecord) -> Table:
    table = Table(title=None, box=None, padding=(0, 2))
    for name in ("", "task hits", "behavior", "execution", "dropped", "lateness [us]"):
        table.add_column(name, justify="right" if name else "left")
    decisions = sum(cycle.decisions for cycle in run.cycles)
    counters = run.counters
    rates = (
        share_of(sum(cycle.task_hits for cycle in run.cycles), decisions),
        share_of(sum(cycle.behavior_hits for cycle in run.cycles), decisions),
        share_of(counters.confident_ticks, counters.ticks),
    )
    table.add_row(
        "rate",
        *(_shown(rate["share"]) for rate in rates),
        f"{counters.chunks_late + run.decisions_unsent}",
        f"p99.9 {run.lateness_us.get('p999', float('nan')):.0f}",
    )
    table.add_row(
        "at least",  # at 95 % confidence
        *(_shown(rate["lower_bound_95"]) for rate in rates),
        "",
        f"max {run.lateness_us.get('max', float('nan')):.0f}",
    )
    return table


def _latencies(run: RunRecord) -> Table:
    table = Table(box=None, padding=(0, 2))
    for name in ("latency [ms]", "n", "p50", "p99", "max"):
        table.add_column(name, justify="left" if name.startswith("lat") else "right")
    rows = {
        "pipeline hit": [passage.total_ms for passage in run.of_kind("hit")],
        "pipeline miss": [passage.total_ms for passage in run.of_kind("miss")],
        "refresh": [passage.total_ms for passage in run.of_kind("refresh")],
    }
    decided = [passage for passage in run.passages if passage.kind != "refresh"]
    rows |= {part: [passage.part_ms(part) for passage in decided] for part in PARTS}
    for name, values in rows.items():
        figures = summary(values)
        table.add_row(
            name,
            str(figures["n"]),
            *(
                "-" if figures[key] is None else f"{figures[key]:.2f}"
                for key in ("p50", "p99", "max")
            ),
        )
    return table


def _shown(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.3f}"
