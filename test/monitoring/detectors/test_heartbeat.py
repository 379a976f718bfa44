"""Silence is measured from the last sign of life, and judged fairly."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.monitoring.detectors.heartbeat import HeartbeatDetector
from kv_action_router.monitoring.samples import (
    LIFECYCLE_ACTIVE,
    LIFECYCLE_INACTIVE,
    HeartbeatSample,
)
from kv_action_router.monitoring.signals import SignalTable

MS = 1_000_000


class Bench:
    def __init__(self, settle: float = 0.0) -> None:
        self.table = SignalTable()
        self.detector = HeartbeatDetector(["encoder", "manager"], settle)
        self.now = 1_000

    def beat(self, node: str = "encoder", state: int = LIFECYCLE_ACTIVE) -> None:
        self.detector.on_heartbeat(HeartbeatSample(node, state, self.now * MS))

    def run(self, milliseconds: int, *, step: int = 10) -> float:
        """Measure on every step; return the encoder's age at the end [s]."""
        for _ in range(0, milliseconds, step):
            self.now += step
            self.detector.measure(self.table, self.now * MS)
        return self.age()

    def age(self, node: str = "encoder", signal: str = "heartbeat_age") -> float:
        return self.table.value(signal, self.now * MS, source=node)

    def absence(self, node: str = "encoder") -> float:
        return self.age(node, "node_absence")


def test_age_since_the_last_beat() -> None:
    bench = Bench()
    bench.run(10)
    bench.beat()
    assert bench.run(60) == 0.06
    bench.beat()
    assert bench.run(10) == 0.01


def test_a_start_up_is_late_without_a_fault_but_a_death_in_it_is_still_seen() -> None:
    bench = Bench(settle=1.0)
    bench.run(10)
    bench.beat()
    assert math.isnan(bench.run(2000))  # the manager is still missing
    bench.beat("manager")
    bench.beat()
    assert math.isnan(bench.run(990))
    assert bench.run(10) == 1.0
    bench.beat(state=LIFECYCLE_INACTIVE)
    bench.beat()  # active again: settles again
    assert math.isnan(bench.run(500))


def test_a_node_never_seen_is_absent_from_activation_on() -> None:
    bench = Bench()
    assert math.isnan(bench.run(510))
    assert bench.absence() == bench.absence("manager") == 0.5
    bench.beat()
    assert bench.run(10) == 0.01
    assert math.isnan(bench.absence())
    assert bench.absence("manager") == 0.51


def test_a_node_in_transition_is_absent_not_lost() -> None:
    bench = Bench()
    bench.run(10)
    bench.beat()
    bench.run(20)
    bench.beat(state=LIFECYCLE_INACTIVE)
    assert math.isnan(bench.run(200))
    assert bench.absence() == 0.2


def test_a_stall_of_the_monitor_is_nobody_elses() -> None:
    bench = Bench()
    bench.run(10)
    bench.beat()
    bench.run(10)
    bench.now += 300
    bench.detector.measure(bench.table, bench.now * MS)
    assert bench.age() == 0.04  # of the stall, one longest step counts
    bench.beat()
    assert bench.run(30) == 0.03


def test_a_dead_node_is_still_found_after_a_stall() -> None:
    bench = Bench()
    bench.run(10)
    bench.beat()
    bench.run(10)
    bench.now += 300
    assert bench.run(40) > 0.06


def test_other_nodes_are_ignored() -> None:
    bench = Bench()
    bench.beat("somebody")
    bench.run(10)
    assert math.isnan(bench.age("somebody"))
    assert not bench.detector.is_active("somebody")


def test_the_clock_going_back_names_nobody() -> None:
    bench = Bench()
    bench.run(10)
    bench.beat()
    bench.run(10)
    bench.now -= 900
    assert bench.run(10) == 0.0
    assert bench.absence("manager") == 0.0


def test_a_lost_node_stays_lost_over_a_stall() -> None:
    """Otherwise every stall would report it again."""
    bench = Bench()
    bench.run(10)
    bench.beat()
    assert bench.run(600) == 0.6
    bench.now += 300
    assert bench.run(10) > 0.6


@given(st.lists(st.integers(1, 29), min_size=1, max_size=60), st.lists(st.booleans(), max_size=60))
def test_age_is_exactly_the_silence(steps: list[int], beats: list[bool]) -> None:
    bench = Bench()
    bench.run(10)
    bench.beat()
    last = bench.now
    for step, beats_now in zip(steps, beats, strict=False):
        bench.now += step
        if beats_now:
            bench.beat()
            last = bench.now
        bench.detector.measure(bench.table, bench.now * MS)
        assert abs(bench.age() - (bench.now - last) * 1e-3) < 1e-9


def test_a_monitor_of_no_nodes_measures_nothing() -> None:
    HeartbeatDetector([], 0.5).measure(SignalTable(), MS)
