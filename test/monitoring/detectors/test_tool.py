"""The spindle's torque and speed, and how deep the tip has gone since it met something."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kv_action_router.contracts import (
    Decision,
    ExecutionFeedback,
    InjectorEvent,
    InjectorState,
)
from kv_action_router.monitoring.detectors.motion import Motion
from kv_action_router.monitoring.detectors.stuck import StuckDetector
from kv_action_router.monitoring.detectors.tool import ToolDetector
from kv_action_router.monitoring.detectors.tracking import TrackingDetector
from kv_action_router.monitoring.signals import SignalTable

JOINTS = ("lift", "spindle")
MS = 1_000_000


class Column:
    """A tip that hangs on a column: the lift's position is how far down it is."""

    joint_names = JOINTS
    spindles = np.array([False, True])

    def forward(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.array([0.0, 0.0, -q[0]]), np.diag([1.0, -1.0, -1.0])


def feedback(down: float, torque: float = 0.3, interface: str = "effort") -> ExecutionFeedback:
    return ExecutionFeedback(
        decision=Decision(),
        state=InjectorState.FOLLOW,
        event=InjectorEvent.NONE,
        reason="",
        monotonic_ns=0,
        epoch=1,
        chunk_sequence=1,
        phase=0.5,
        joints=JOINTS,
        position=np.array([down, 7.0]),
        velocity=np.array([0.0, -3.0]),
        setpoint_position=np.array([down, 9.0]),
        setpoint_velocity=np.zeros(2),
        command=np.array([5.0, -torque]),
        command_interface=interface,
        confident=np.ones(2, bool),
        execution_version=1,
    )


@pytest.fixture
def table() -> SignalTable:
    return SignalTable()


def test_torque_and_speed_are_magnitudes(table: SignalTable) -> None:
    detector = ToolDetector(Column())
    detector.on_feedback(feedback(0.1), MS, table)
    assert table.value("spindle_torque", MS) == pytest.approx(0.3)
    assert table.value("spindle_speed", MS) == pytest.approx(3.0)
    detector.on_feedback(feedback(0.1, interface="position"), 2 * MS, table)
    assert math.isnan(table.value("spindle_torque", 2 * MS))


def test_depth_counts_from_the_first_resistance(table: SignalTable) -> None:
    detector = ToolDetector(Column())
    detector.on_task(table, contact=True)
    table.put("wrench_force", 0.4, MS)
    detector.on_feedback(feedback(0.100), MS, table)
    assert math.isnan(table.value("contact_depth", MS))
    for ms in (2, 12, 22, 32, 42):
        table.put("wrench_force", 2.0, ms * MS)
        detector.on_feedback(feedback(0.101 + 1e-5 * (ms - 2)), ms * MS, table)
        measured = table.value("contact_depth", ms * MS)
        assert math.isnan(measured) if ms < 42 else measured == pytest.approx(0.0004)
    table.put("wrench_force", 0.1, 43 * MS)
    detector.on_feedback(feedback(0.1025), 43 * MS, table)
    assert table.value("contact_depth", 43 * MS) == pytest.approx(0.0015)
    detector.on_task(table, contact=False)
    assert math.isnan(table.value("contact_depth", 43 * MS))
    detector.on_task(table, contact=True)
    detector.on_feedback(feedback(0.2), 44 * MS, table)
    assert math.isnan(table.value("contact_depth", 44 * MS))


def test_a_jolt_of_the_arm_is_nothing_that_was_met(table: SignalTable) -> None:
    detector = ToolDetector(Column())
    detector.on_task(table, contact=True)
    for ms, force in ((10, 3.0), (20, 2.0), (30, 1.0), (40, 2.0), (60, 2.0), (80, 2.0)):
        table.put("wrench_force", force, ms * MS)
        detector.on_feedback(feedback(0.1 + 1e-4 * ms), ms * MS, table)
    assert table.value("contact_depth", 80 * MS) == pytest.approx(0.004)


def test_a_spindle_that_is_behind_is_neither_lost_nor_stuck(table: SignalTable) -> None:
    motion = Motion.of(feedback(0.1))
    TrackingDetector(["spindle"]).on_feedback(motion, MS, table)
    assert table.value("tracking_error", MS) == 0.0
    stuck = StuckDetector(["spindle"])
    stuck.on_feedback(motion, MS, table)
    assert table.value("stuck_distance", MS) == 0.0
