"""Repeats are counted, never lost, and let through one a period."""

from __future__ import annotations

import itertools
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.contracts import Decision
from kv_action_router.monitoring.events import FailureReport, ReportThrottle
from kv_action_router.tasks.rules import Response, Severity

MS = 1_000_000
REPORT = FailureReport(
    Decision(), 510, "lost", Severity.FATAL, "encoder", "node_lost", "heartbeat_age", 0.07, 0.06,
    0.0, (Response.BRAKE,), "", "", 0, 0,
)  # fmt: skip


def at(ms: int, source: str = "encoder") -> FailureReport:
    return replace(REPORT, monotonic_ns=ms * MS, source=source)


def test_the_first_goes_out_at_once_and_repeats_are_kept_back() -> None:
    throttle = ReportThrottle(1.0)
    first = throttle.offer(at(0))
    assert first is not None
    assert first.count == 1
    assert throttle.offer(at(300)) is None
    assert throttle.offer(at(600)) is None
    assert throttle.due(999 * MS) == []
    (kept,) = throttle.due(1000 * MS)
    assert kept.count == 3
    assert kept.monotonic_ns == 600 * MS
    assert throttle.due(5000 * MS) == []
    assert throttle.count("node_lost") == 3


def test_other_sources_are_not_kept_back() -> None:
    throttle = ReportThrottle(1.0)
    assert throttle.offer(at(0)) is not None
    other = throttle.offer(at(1, "manager"))
    assert other is not None
    assert other.count == 1
    assert throttle.count("node_lost") == 2


def test_the_clock_going_back_keeps_nothing_back() -> None:
    throttle = ReportThrottle(1.0)
    throttle.offer(at(5000))
    assert throttle.offer(at(0)) is not None


def test_responses_by_name() -> None:
    both = replace(REPORT, responses=(Response.FAIL_SAFE, Response.INVALIDATE))
    assert both.response == "fail_safe, invalidate"


@given(st.lists(st.integers(0, 700), max_size=60))
def test_at_most_one_a_period_and_the_last_count_is_the_total(steps: list[int]) -> None:
    throttle = ReportThrottle(1.0)
    now, times, counts = 0, [], []
    for step in steps:
        now += step
        out = throttle.due(now * MS)
        sent = throttle.offer(at(now))
        for report in [*out, *([sent] if sent else [])]:
            times.append(now)
            counts.append(report.count)
    counts += [report.count for report in throttle.due((now + 2000) * MS)]
    assert all(later - earlier >= 1000 for earlier, later in itertools.pairwise(times))
    assert counts == sorted(counts)
    assert (counts[-1] if counts else 0) == len(steps)
