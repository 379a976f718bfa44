"""Rows of stage times: written by a process of a benchmark, read by the one that judges.

A row is the way of one decision: CLOCK_MONOTONIC at the source time stamp of its image and at the
publication of key, match, chunk and first command [ns].
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kv_action_router.reporting.records import PARTS
from kv_action_router.reporting.statistics import distribution

Rows = npt.NDArray[np.int64]  # (n, 5)
STAGES = 5


def save(path: Path, rows: Sequence[Sequence[int]]) -> None:
    """Write rows; the folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.asarray(rows, np.int64).reshape(-1, STAGES))


def load(path: Path) -> Rows:
    """Return the rows of a file (n, 5)."""
    rows: Rows = np.load(path)
    return rows


def since(rows: Rows, begin_ns: int) -> Rows:
    """Return the rows of images that were taken from then on."""
    return rows[rows[:, 0] >= begin_ns]


def totals(rows: Rows) -> list[float]:
    """Return the time of the whole way, of each row [ms]."""
    whole: list[float] = ((rows[:, -1] - rows[:, 0]) / 1e6).tolist()
    return whole


def latencies(rows: Rows) -> dict[str, Any]:
    """Return the distributions of the whole way and of each hop [ms]."""
    figures = {"total": distribution(totals(rows))}
    for name, (begin, end) in PARTS.items():
        figures[name] = distribution(((rows[:, end] - rows[:, begin]) / 1e6).tolist())
    return figures
