"""A drive that pushes and does not move, and no flicker between standing and moving."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from monitoring_builders import JOINTS, MS, feedback

from kv_action_router.contracts import DriveSample
from kv_action_router.monitoring.detectors.motion import Motion
from kv_action_router.monitoring.detectors.stall import MOVES, STANDS, StallDetector
from kv_action_router.monitoring.signals import SignalTable


def drives(ms: float, current: list[float], rated: list[float] | None = None) -> DriveSample:
    empty = np.zeros(0)
    return DriveSample(
        JOINTS, empty, np.array(current), np.array(rated or [2.0, 2.0]), empty, empty,
        np.zeros(0, dtype=np.bool_), int(ms * MS),
    )  # fmt: skip


class Stall:
    def __init__(self) -> None:
        self.table, self.detector = SignalTable(), StallDetector()

    def load(self, speed: float, current: float, ms: float = 0) -> float:
        """Return the elbow's stall load at a speed and a current."""
        motion = Motion.of(feedback(ms, velocity=(speed, 0.0)))
        self.detector.on_feedback(motion)
        self.detector.on_drives(drives(ms, [current, 0.0]), self.table)
        return self.table.value("stall_load", int(ms * MS), source="elbow")


def test_only_a_standing_drive_is_stalled_by_its_load() -> None:
    stall = Stall()
    assert stall.load(0.5, 3.0) == 0.0
    assert stall.load(0.0, -3.0) == 1.5
    assert stall.load(0.0, 0.2) == 0.1


def test_before_a_speed_is_known_nothing_is_measured() -> None:
    table, detector = SignalTable(), StallDetector()
    detector.on_drives(drives(0, [3.0, 3.0]), table)
    assert math.isnan(table.value("stall_load", 0, source="elbow"))
    stall = Stall()
    assert math.isnan(stall.load(math.nan, 3.0))


@pytest.mark.parametrize("rated", [0.0, math.nan, -1.0])
def test_without_a_rated_current_there_is_no_load(rated: float) -> None:
    stall = Stall()
    stall.load(0.0, 3.0)
    stall.detector.on_drives(drives(1, [3.0, 3.0], [rated, 2.0]), stall.table)
    assert math.isnan(stall.table.value("stall_load", MS, source="elbow"))
    assert stall.table.value("stall_load", MS, source="wrist") == 1.5


def test_a_drive_that_reports_no_current_has_none() -> None:
    stall = Stall()
    stall.load(0.0, 3.0)
    short = drives(1, [])
    stall.detector.on_drives(short, stall.table)  # not one value a drive
    assert stall.table.receipt_ns(["stall_load"], "elbow") == 0


@settings(max_examples=40)
@given(st.lists(st.floats(STANDS, MOVES, exclude_max=True), max_size=30), st.booleans())
def test_between_standing_and_moving_nothing_flickers(speeds: list[float], moves: bool) -> None:
    stall = Stall()
    first = stall.load(1.0 if moves else 0.0, 3.0)
    assert {stall.load(sign * s, 3.0) for s in speeds for sign in (1, -1)} <= {first}
