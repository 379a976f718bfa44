"""What grows while a system works for long: slopes of what its processes hold, and of its rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import linregress, t

from kv_action_router.reporting.bounds import Bound, at
from kv_action_router.reporting.statistics import share_of

GROWTH_MB_H = 5.0  # resident memory that a process may be shown to grow by in an hour
LATE_HITS = 0.8  # share of hits of the last half's decisions
FALSE_HITS = 0.01
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Holding:
    """What one process holds at an instant: memory [MB] and open file descriptors."""

    second: float
    rss_mb: float
    descriptors: int


class Cycle(NamedTuple):
    """One task: its decisions, how many of them hit, how many hits were wrong, how it ended."""

    decisions: int
    hits: int
    false_hits: int
    succeeded: bool


@dataclass
class Life:
    """A system from its start to the kill, or to the end.

    Attributes:
        holdings: process -> what it held, in order of time; from when it had warmed up.
        cycles: in order of time.
        killed: node that was killed at the end; empty = none.
        segments: shared-memory segments of the middleware left after its end and clean-up.
    """

    holdings: dict[str, list[Holding]] = field(default_factory=dict)
    cycles: list[Cycle] = field(default_factory=list)
    killed: str = ""
    segments: int = 0


def slope_per_hour(seconds: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """Return the slope of a straight fit per hour, and the lower end of its 95 % interval.

    NaN without at least three values at different instants. The values of one process are not
    independent, so the interval is narrower than it should be: a slope is called shown too soon
    rather than too late.
    """
    if len(seconds) < 3 or max(seconds) == min(seconds):
        return math.nan, math.nan
    fit = linregress(seconds, values)
    if not fit.stderr > 0.0:  # NaN for values that are all the same
        return 3600.0 * float(fit.slope), 3600.0 * float(fit.slope)
    margin = float(t.ppf(0.5 + _CONFIDENCE / 2, len(seconds) - 2)) * fit.stderr
    return 3600.0 * float(fit.slope), 3600.0 * (float(fit.slope) - margin)


def figures(lives: Sequence[Life]) -> dict[str, Any]:
    """Return the report of all lives of a system."""
    cycles = [cycle for life in lives for cycle in life.cycles]
    half = cycles[len(cycles) // 2 :]
    total_hits, total_wrong = sum(c.hits for c in cycles), sum(c.false_hits for c in cycles)
    rates = [(i, c.hits / c.decisions) for i, c in enumerate(cycles) if c.decisions]
    back = [life.cycles[0] for life in lives[1:] if life.cycles]
    succeeded = sum(cycle.succeeded for cycle in cycles)
    trend, _ = slope_per_hour(*zip(*rates, strict=True)) if len(rates) > 2 else (math.nan, 0.0)
    return {
        "lives": len(lives),
        "killed": [life.killed for life in lives if life.killed],
        "cycles": len(cycles),
        "succeeded": succeeded,
        "rates": {
            "cycles": share_of(succeeded, len(cycles)),
            "late_task_hits": share_of(sum(c.hits for c in half), sum(c.decisions for c in half)),
            "false_hits": share_of(total_wrong, max(total_wrong, total_hits)),
        },
        "processes": _processes(lives),
        "worst_growth_mb_h": _worst(lives),
        "descriptors_grown": _grown(lives),
        "segments_left": max((life.segments for life in lives), default=0),
        "late_hit_rate": _rate(half),
        "hit_rate_slope_per_100_cycles": trend / 36.0,
        "hit_rate_after_restart": _rate(back),
        "false_hit_rate": total_wrong / total_hits if total_hits else None,
    }


def _rate(cycles: Sequence[Cycle]) -> float | None:
    decisions = sum(cycle.decisions for cycle in cycles)
    return sum(cycle.hits for cycle in cycles) / decisions if decisions else None


def _processes(lives: Sequence[Life]) -> list[dict[str, Any]]:
    rows = []
    for number, life in enumerate(lives):
        for name, holdings in life.holdings.items():
            slope, low = _growth(holdings)
            rows.append(
                {
                    "life": number,
                    "process": name,
                    "n": len(holdings),
                    "rss_mb": holdings[-1].rss_mb if holdings else None,
                    "growth_mb_h": slope,
                    "growth_mb_h_low": low,
                    "descriptors": [h.descriptors for h in (holdings[:1] + holdings[-1:])],
                }
            )
    return rows


def _growth(holdings: Sequence[Holding]) -> tuple[float, float]:
    return slope_per_hour([h.second for h in holdings], [h.rss_mb for h in holdings])


def _worst(lives: Sequence[Life]) -> float | None:
    lows = [_growth(holdings)[1] for life in lives for holdings in life.holdings.values()]
    known = [low for low in lows if not math.isnan(low)]
    return max(known) if known else None


def _grown(lives: Sequence[Life]) -> int | None:
    """Descriptors by which the medians of a life's halves differ, at most over all processes."""
    grown = []
    for life in lives:
        for holdings in life.holdings.values():
            counts = [h.descriptors for h in holdings]
            if len(counts) > 3:
                middle = len(counts) // 2
                grown.append(int(np.median(counts[middle:]) - np.median(counts[:middle])))
    return max(grown, default=None)


BOUNDS = (
    Bound("growth of a process that is shown [MB/h]", at("worst_growth_mb_h"), "<=", GROWTH_MB_H),
    Bound("file descriptors that a process gained", at("descriptors_grown"), "<=", 0),
    Bound("shared-memory segments left behind", at("segments_left"), "==", 0),
    Bound("task hits over the last half", at("late_hit_rate"), ">=", LATE_HITS),
    Bound("task hits in the cycle after a restart", at("hit_rate_after_restart"), ">=", LATE_HITS),
    Bound("false hits", at("false_hit_rate"), "<=", FALSE_HITS),
)
