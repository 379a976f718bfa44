"""Plots of shifts: rates over a window, files that are there."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kv_action_router.reporting.shift_plots import ShiftSeries, rates, write_all


def test_rates_are_over_the_last_cycles_and_nan_without_any() -> None:
    found = rates([0, 1, 1, 0], [0, 1, 3, 0])
    assert np.isnan(found[0])
    assert found[1:].tolist() == [1.0, 0.5, 0.5]
    late = rates([0] * 30 + [3] * 30, [3] * 60)
    assert late[29] == 0.0
    assert late[42] == 13 / 25
    assert late[-1] == 1.0


def test_both_plots_are_written(tmp_path: Path) -> None:
    shifts = [
        ShiftSeries(name, [3, 3], [0, 3], [0, 2], [1.0, 0.5], [0, 1], [3, 3])
        for name in ("ours", "other")
    ]
    files = write_all(shifts, 0.89, tmp_path / "plots")
    assert [file.name for file in files] == ["layers.png", "comparison.png"]
    assert all(file.stat().st_size > 1000 for file in files)
