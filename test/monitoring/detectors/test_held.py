"""Held threshold: one detection a crossing, for each source on its own."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.monitoring.detectors.base import Detection
from kv_action_router.monitoring.detectors.held import HeldThreshold
from kv_action_router.monitoring.signals import SignalTable, SignalView
from kv_action_router.tasks.conditions import Condition, Predicate

MS = 1_000_000


class Bench:
    """A detector with its table, fed by milliseconds."""

    def __init__(self, signal: str, limit: float, clear: float | None, held_ms: float) -> None:
        self.signal = signal
        self.table = SignalTable()
        self.view = SignalView(self.table)
        self.detector = HeldThreshold(
            Condition("it", (Predicate(signal, ">", limit, clear),), held_ms)
        )

    def feed(self, ms: float, value: float, source: str = "") -> list[Detection]:
        self.table.put(self.signal, value, int(ms * MS), source)
        return self.tick(ms)

    def tick(self, ms: float) -> list[Detection]:
        self.view.now_ns = int(ms * MS)
        return self.detector.update(self.table, self.view)


def test_one_detection_with_its_number() -> None:
    bench = Bench("wrench_force", 15.0, None, 200.0)
    found = [hit for ms in range(0, 400, 4) for hit in bench.feed(ms, 16.0)]
    assert found == [Detection("it", "", "wrench_force", 16.0, 15.0, 0.2, 200 * MS)]
    assert bench.detector.active[""].held == 0.396


def test_nan_does_not_hold() -> None:
    bench = Bench("wrench_force", 15.0, None, 200.0)
    for ms in range(0, 400, 4):
        assert not bench.feed(ms, math.nan if ms == 196 else 16.0)
    assert bench.feed(400, 16.0)


def test_silence_ends_it_without_a_new_sample() -> None:
    bench = Bench("wrench_force", 15.0, None, 0.0)
    assert bench.feed(0, 16.0)
    assert bench.detector.engaged
    assert not bench.tick(10)
    assert bench.detector.active
    assert not bench.tick(16)
    assert not bench.detector.active
    assert not bench.detector.engaged
    assert bench.feed(20, 16.0)


def test_each_source_holds_on_its_own() -> None:
    bench = Bench("drive_temperature", 70.0, 65.0, 0.0)
    assert [hit.source for hit in bench.feed(0, 71.0, "elbow")] == ["elbow"]
    assert not bench.feed(20, 69.0, "wrist")
    assert [hit.source for hit in bench.feed(40, 72.0, "wrist")] == ["wrist"]
    assert set(bench.detector.active) == {"elbow", "wrist"}
    bench.feed(60, 64.0, "elbow")
    assert set(bench.detector.active) == {"wrist"}


def test_a_source_that_leaves_is_forgotten() -> None:
    bench = Bench("drive_temperature", 70.0, None, 0.0)
    bench.feed(0, 71.0, "elbow")
    bench.feed(0, 71.0, "wrist")
    bench.table.forget("drive_temperature", "elbow")
    bench.tick(1)
    assert set(bench.detector.active) == {"wrist"}


def test_reset_lets_it_report_again() -> None:
    bench = Bench("wrench_force", 15.0, None, 0.0)
    assert bench.feed(0, 16.0)
    assert not bench.feed(2, 16.0)
    bench.detector.reset()
    assert bench.feed(4, 16.0)


@given(st.lists(st.floats(0.0, 100.0), max_size=80))
def test_detections_are_a_whole_band_apart(values: list[float]) -> None:
    """No chatter: between two detections the signal was at or below the clear limit."""
    bench = Bench("drive_temperature", 70.0, 65.0, 0.0)
    low = True
    for index, value in enumerate(values):
        found = bench.feed(index * 20, value, "elbow")
        assert bool(found) == (low and value > 70.0)
        if found:
            low = False
        if value <= 65.0:
            low = True
