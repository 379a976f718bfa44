"""The control loop's thread: absolute deadlines, skipped periods counted, errors survived."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from kv_action_router.injection.loop import DeadlineLoop

PERIOD_NS = 2_000_000


def ignore(error: Exception) -> None:
    raise AssertionError(error)


def test_ticks_follow_absolute_deadlines(wait_until: Callable[..., Any]) -> None:
    times: list[int] = []
    loop = DeadlineLoop(PERIOD_NS, times.append, ignore)
    begin = time.monotonic_ns()
    loop.start()
    wait_until(lambda: len(times) > 30, 5.0, "thirty ticks")
    assert loop.alive(time.monotonic_ns())
    loop.stop()
    assert not loop.alive(time.monotonic_ns())
    # What was late or skipped is accounted for: no drift.
    due = len(times) + loop.meter.missed
    assert times[-1] - begin >= due * PERIOD_NS
    assert times[-1] - begin <= (due + 1) * PERIOD_NS + 50_000_000


def test_skipped_periods_are_counted_and_not_made_up_for(wait_until: Callable[..., Any]) -> None:
    times: list[int] = []
    slow = threading.Event()

    def tick(now_ns: int) -> None:
        times.append(now_ns)
        if len(times) == 5:
            time.sleep(0.03)  # what is tested: a tick that takes 15 periods
            slow.set()

    loop = DeadlineLoop(PERIOD_NS, tick, ignore)
    loop.start()
    wait_until(lambda: len(times) > 10, 5.0, "ten ticks")
    loop.stop()
    assert slow.is_set()
    assert loop.meter.missed >= 13
    # No burst: a late tick may be followed by one on time, but never by two within a period.
    ends = zip(times[5:], times[7:], strict=False)
    assert min(later - earlier for earlier, later in ends) > PERIOD_NS


def test_an_error_is_told_and_the_loop_goes_on(wait_until: Callable[..., Any]) -> None:
    errors: list[Exception] = []
    count = 0

    def tick(_: int) -> None:
        nonlocal count
        count += 1
        if count == 2:
            raise ValueError("once")

    loop = DeadlineLoop(PERIOD_NS, tick, errors.append)
    loop.start()
    wait_until(lambda: count > 4, 5.0, "five ticks")
    loop.stop()
    assert [str(error) for error in errors] == ["once"]


def test_what_must_happen_before_the_end_happens_while_it_runs() -> None:
    alive: list[bool] = []
    ticks: list[int] = []
    loop = DeadlineLoop(
        PERIOD_NS,
        ticks.append,
        ignore,
        before_stop=lambda: alive.append(loop.alive(time.monotonic_ns())),
    )
    loop.stop()  # never started: nothing to do
    assert alive == []
    loop.start()
    loop.stop()
    count = len(ticks)
    loop.stop()
    assert alive == [True]
    assert len(ticks) == count
