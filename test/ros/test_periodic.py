"""Periodic work: it repeats, survives its errors, and is over once stopped."""

from __future__ import annotations

import time

import pytest

from kv_action_router.ros.periodic import PeriodicThread


def test_work_repeats_until_it_is_stopped(wait_until):
    calls: list[float] = []
    thread = PeriodicThread(0.005, lambda: calls.append(time.monotonic()), calls.clear, name="t")
    thread.start()
    wait_until(lambda: len(calls) >= 5, 5.0, "five calls")
    assert thread.alive(time.monotonic_ns())
    thread.stop()
    done = len(calls)
    assert not thread.alive(time.monotonic_ns())
    assert len(calls) == done


def test_errors_are_passed_on_and_the_work_goes_on(wait_until):
    errors: list[Exception] = []

    def fail() -> None:
        raise ValueError("bad")

    thread = PeriodicThread(0.005, fail, errors.append, name="t")
    thread.start()
    wait_until(lambda: len(errors) >= 3, 5.0, "three errors")
    thread.stop()
    assert str(errors[0]) == "bad"


def test_a_thread_that_hangs_is_not_alive(wait_until):
    released: list[bool] = []
    thread = PeriodicThread(
        0.005, lambda: wait_until(lambda: released, 5.0, "release"), pytest.fail, name="t"
    )
    thread.start()
    wait_until(lambda: not thread.alive(time.monotonic_ns()), 5.0, "the hang to be seen")
    released.append(True)
    thread.stop()


def test_stopping_twice_is_no_error():
    thread = PeriodicThread(0.005, lambda: None, pytest.fail, name="t")
    thread.start()
    thread.stop()
    thread.stop()
