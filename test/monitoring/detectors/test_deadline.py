"""Missed deadlines count for a second, and only while the writer should be at work."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.monitoring.detectors.deadline import DeadlineDetector
from kv_action_router.monitoring.samples import TransportFault, TransportSample
from kv_action_router.monitoring.signals import SignalTable

MS = 1_000_000
TOPIC = "task_key"


class Bench:
    def __init__(self) -> None:
        self.at_work = True
        self.table = SignalTable()
        self.detector = DeadlineDetector([TOPIC], lambda topic: self.at_work)

    def event(
        self, ms: int, fault: TransportFault = TransportFault.DEADLINE, count: int = 1
    ) -> None:
        self.detector.on_event(TransportSample(fault, TOPIC, count, "reliability", ms * MS))

    def count(self, ms: int, fault: TransportFault = TransportFault.DEADLINE) -> float:
        self.detector.measure(self.table, ms * MS)
        return self.table.value(fault.value, ms * MS, source=TOPIC)


def test_counts_of_the_last_second() -> None:
    bench = Bench()
    assert bench.count(0) == 0.0
    bench.event(300)
    bench.event(800, count=2)
    assert bench.count(900) == 3.0
    assert bench.count(1301) == 2.0
    assert bench.count(1801) == 0.0


def test_an_idle_writer_misses_nothing() -> None:
    bench = Bench()
    bench.at_work = False
    bench.count(0)
    bench.event(300)
    assert bench.count(400) == 0.0


def test_events_of_the_idle_time_before_do_not_count() -> None:
    bench = Bench()
    bench.at_work = False
    bench.count(0)
    bench.at_work = True
    bench.count(1000)
    bench.event(1100, count=50)  # still about the silence before
    assert bench.count(1150) == 0.0
    bench.event(1250)
    assert bench.count(1260) == 1.0


def test_going_idle_forgets() -> None:
    bench = Bench()
    bench.count(0)
    bench.event(300, TransportFault.LEASE)
    assert bench.count(310, TransportFault.LEASE) == 1.0
    bench.at_work = False
    assert bench.count(320, TransportFault.LEASE) == 0.0


def test_profiles_that_do_not_match_stay() -> None:
    bench = Bench()
    bench.at_work = False
    bench.event(0, TransportFault.INCOMPATIBLE)
    assert bench.count(60_000, TransportFault.INCOMPATIBLE) == 1.0
    assert bench.detector.detail[TOPIC] == "reliability"


def test_recovery_is_no_miss() -> None:
    bench = Bench()
    bench.count(0)
    bench.event(300, TransportFault.LEASE, count=-1)
    bench.event(300, TransportFault.DEADLINE, count=0)
    assert bench.count(310, TransportFault.LEASE) == 0.0
    assert bench.count(310) == 0.0


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 5)), max_size=30))
def test_the_count_is_that_of_the_window(events: list[tuple[int, int]]) -> None:
    bench = Bench()
    bench.count(0)
    now = 200
    history: list[tuple[int, int]] = []
    for step, count in events:
        now += step
        bench.event(now, count=count)
        history.append((now, count))
        expected = sum(c for t, c in history if now - t <= 1000)
        assert bench.count(now) == expected
