"""Which instants a film strip shows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.reporting.film import FRAMES, shots
from kv_action_router.reporting.records import CycleTrace, MotionSample, StageSpan

S = 1_000_000_000


def trace_of(seconds: float) -> CycleTrace:
    nothing = np.zeros(0)
    times = np.arange(0.0, seconds, 0.02)
    return CycleTrace(1, (), [MotionSample(float(t), nothing, nothing, nothing) for t in times])


def test_few_stages_are_shown_in_their_middles_too() -> None:
    spans = [
        StageSpan("approach", 0, S, True),
        StageSpan("touch", S, 3 * S, True),
        StageSpan("retreat", 3 * S, 4 * S, False),
    ]
    found = shots(trace_of(4.0), spans)
    captions = [shot.caption for shot in found]
    assert captions == [
        "begin", "approach", "approach: ends", "touch", "touch: ends", "retreat", "retreat: fails"
    ]  # fmt: skip
    assert [round(shot.seconds, 1) for shot in found] == [0.0, 0.5, 1.0, 2.0, 3.0, 3.5, 4.0]
    assert found[3].sample == 100


def test_the_shortest_of_many_stages_are_left_out() -> None:
    ends = np.cumsum([5, 1, 5, 5, 5, 1, 5, 5, 5, 5, 5]) * S // 10
    spans = [
        StageSpan(str(number), int(begin), int(end), True)
        for number, (begin, end) in enumerate(pairwise(ends), 1)
    ]
    captions = [shot.caption for shot in shots(trace_of(5.0), spans)]
    assert len(captions) == FRAMES
    assert "1: ends" not in captions and "5: ends" not in captions


def test_without_motion_there_is_nothing_to_show() -> None:
    assert shots(CycleTrace(), [StageSpan("a", 0, 1, True)]) == []
    assert [shot.caption for shot in shots(trace_of(0.1), [])] == ["begin"]


@given(st.lists(st.integers(0, 3 * S), max_size=15), st.integers(2, 12))
def test_shots_are_in_order_and_not_too_many(lengths: list[int], count: int) -> None:
    spans, at = [], 0
    for number, length in enumerate(lengths):
        spans.append(StageSpan(str(number), at, at + length, True))
        at += length
    found = shots(trace_of(0.2), spans, count)
    assert 1 <= len(found) <= max(count, 1)
    assert [shot.seconds for shot in found] == sorted(shot.seconds for shot in found)
