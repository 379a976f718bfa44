"""What a long run is judged by: a growth that is shown, and nothing that only looks like one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kv_action_router.reporting.bounds import broken
from kv_action_router.reporting.soak import BOUNDS, Cycle, Holding, Life, figures, slope_per_hour


def life(
    growth: float = 0.0, descriptors: int = 0, noise: float = 0.0, wrong: int = 0, killed: str = ""
) -> Life:
    """Five minutes of one process, 20 cycles of 3 decisions; growth [MB/h] as given."""
    random = np.random.default_rng(1)
    seconds = np.arange(45.0, 345.0, 5.0)
    held = 150.0 + growth * seconds / 3600.0 + noise * random.normal(size=len(seconds))
    open_files = 40 + descriptors * (seconds > 200.0)
    columns = (seconds.tolist(), held.tolist(), open_files.tolist())
    holdings = [Holding(*row) for row in zip(*columns, strict=True)]
    cycles = [Cycle(3, 3, wrong if i == 5 else 0, True) for i in range(20)]
    return Life({"cache_manager": holdings}, cycles, killed)


def names(report) -> list[str]:
    return [line.split(":")[0] for line in broken(report, BOUNDS, essential_only=False)]


def test_a_slope_is_found_with_the_lower_end_of_its_interval() -> None:
    seconds = np.linspace(0.0, 3600.0, 50)
    slope, low = slope_per_hour(seconds.tolist(), (100.0 + 12.0 * seconds / 3600.0).tolist())
    assert slope == pytest.approx(12.0)
    assert low == pytest.approx(12.0)
    assert all(map(math.isnan, slope_per_hour([0.0, 1.0], [1.0, 2.0])))


def test_a_run_in_which_nothing_grows_keeps_all_bounds() -> None:
    report = figures([life(noise=0.3, killed="cache_manager"), life(noise=0.3)])
    assert names(report) == []
    assert report["killed"] == ["cache_manager"]
    assert report["cycles"] == 40
    assert report["hit_rate_after_restart"] == 1.0
    assert 0.92 < report["rates"]["cycles"]["lower_bound_95"] < 1.0


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ({"growth": 60.0, "noise": 0.3}, "growth of a process that is shown [MB/h]"),
        ({"descriptors": 1}, "file descriptors that a process gained"),
        ({"wrong": 2}, "false hits"),
    ],
)
def test_what_grows_is_named(kind: dict, said: str) -> None:
    assert names(figures([life(), life(**kind)])) == [said]


def test_forgotten_entries_and_segments_left_are_named() -> None:
    after = life()
    after.cycles[0] = Cycle(3, 0, 0, True)
    after.segments = 2
    assert names(figures([life(), after])) == [
        "shared-memory segments left behind",
        "task hits in the cycle after a restart",
    ]


def test_a_run_that_measured_nothing_is_no_success() -> None:
    assert len(names(figures([]))) == len(BOUNDS) - 1  # no segment was left, indeed
