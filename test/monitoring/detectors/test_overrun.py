"""Counts of the last second, whatever the injector has counted before."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kv_action_router.monitoring.detectors.overrun import OverrunDetector
from kv_action_router.monitoring.samples import LoopSample
from kv_action_router.monitoring.signals import SignalTable

MS = 1_000_000


def test_only_the_last_second_counts() -> None:
    table, detector = SignalTable(), OverrunDetector()

    def missed(ms: int, total: int) -> float:
        detector.on_loop(LoopSample(total, 0.0001, ms * MS), table)
        return table.value("missed_ticks", ms * MS)

    assert missed(0, 500) == 0.0  # of the time before
    assert missed(200, 504) == 4.0
    assert missed(400, 510) == 10.0
    assert missed(1_250, 510) == 6.0
    assert missed(1_450, 510) == 0.0
    assert missed(1_500, 3) == 0.0  # another activation
    assert missed(1_600, 5) == 2.0
    assert table.value("loop_lateness", 1_600 * MS) == 0.0001


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 900), st.integers(0, 50)), min_size=1, max_size=30))
def test_the_count_is_never_negative_nor_more_than_all(steps: list[tuple[int, int]]) -> None:
    table, detector = SignalTable(), OverrunDetector()
    ms = total = 0
    detector.on_loop(LoopSample(0, 0.0, 0), table)
    for wait, more in steps:
        ms, total = ms + wait, total + more
        detector.on_loop(LoopSample(total, 0.0, ms * MS), table)
        assert more <= table.value("missed_ticks", ms * MS) <= total
