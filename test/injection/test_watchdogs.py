"""Watchdogs judge receipts on the clock that they are given, from the start on (K49)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.injection.watchdogs import Watchdog, first_lost

MS = 1_000_000
START = 10_000 * MS


def make(timeout: int = 60, grace: int = 3000) -> Watchdog:
    watchdog = Watchdog("source", timeout * MS, grace * MS)
    watchdog.start(START)
    return watchdog


def test_never_heard_of_counts_as_lost_after_the_grace() -> None:
    watchdog = make()
    assert not watchdog.lost(START + 3000 * MS)
    assert watchdog.lost(START + 3000 * MS + 1)
    assert "never heard of" in watchdog.describe(START + 3001 * MS)


def test_lost_after_the_timeout_and_found_again() -> None:
    watchdog = make()
    watchdog.seen(START + 5 * MS)
    assert not watchdog.lost(START + 65 * MS)
    assert watchdog.lost(START + 65 * MS + 1)
    assert watchdog.describe(START + 70 * MS) == "source not heard of for 65 ms"
    watchdog.seen(START + 100 * MS)
    assert not watchdog.lost(START + 110 * MS)


def test_gaps_of_a_source_that_starts_are_forgiven_until_the_grace_is_over() -> None:
    watchdog = make()
    watchdog.seen(START + 5 * MS, starting=True)
    assert not watchdog.lost(START + 2900 * MS)
    assert watchdog.lost(START + 3001 * MS)
    watchdog = make()
    watchdog.seen(START + 5 * MS, starting=True)
    watchdog.seen(START + 900 * MS)
    assert watchdog.lost(START + 961 * MS)  # it is at work: no more forgiveness
    watchdog.seen(START + 970 * MS, starting=True)
    assert watchdog.lost(START + 1031 * MS)


def test_a_sample_from_before_the_start_does_not_count() -> None:
    watchdog = make()
    watchdog.seen(START - 61 * MS)
    assert watchdog.last_ns == 0
    assert not watchdog.lost(START + 100 * MS)


def test_older_receipts_do_not_turn_the_clock_back() -> None:
    watchdog = make()
    watchdog.seen(START + 50 * MS)
    watchdog.seen(START + 10 * MS)
    assert not watchdog.lost(START + 105 * MS)


@given(st.integers(0, 10_000))
def test_a_receipt_from_the_future_buys_no_time(ahead: int) -> None:
    watchdog = make()
    watchdog.seen(START + 10 * MS + ahead * MS)
    assert not watchdog.lost(START + 10 * MS)
    assert watchdog.lost(START + 10 * MS + 60 * MS + 1)


def test_first_lost_names_the_source() -> None:
    good, bad = make(), make()
    good.seen(START + 100 * MS)
    bad.seen(START + 1 * MS)
    assert first_lost([good, bad], START + 101 * MS) is bad
    assert first_lost([good], START + 101 * MS) is None
