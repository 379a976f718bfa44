"""Tracking error belongs to controlled joints, and each joint has its own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.contracts import Decision, ExecutionFeedback, InjectorEvent, InjectorState
from kv_action_router.monitoring.detectors.motion import Motion
from kv_action_router.monitoring.detectors.tracking import TrackingDetector
from kv_action_router.monitoring.signals import SignalTable


def feedback(
    state: InjectorState, setpoint: list[float], position: list[float], velocity: list[float]
) -> ExecutionFeedback:
    return ExecutionFeedback(
        decision=Decision(),
        state=state,
        event=InjectorEvent.NONE,
        reason="",
        monotonic_ns=0,
        epoch=1,
        chunk_sequence=1,
        phase=0.5,
        joints=("elbow", "wrist"),
        position=np.array(position),
        velocity=np.array(velocity),
        setpoint_position=np.array(setpoint),
        setpoint_velocity=np.zeros(2),
        command=np.zeros(2),
        command_interface="effort",
        confident=np.ones(2, dtype=np.bool_),
        execution_version=1,
    )


def test_each_joint_has_its_error() -> None:
    table = SignalTable()
    sample = feedback(InjectorState.FOLLOW, [1.0, 2.0], [0.9, 2.3], [0.1, -0.4])
    TrackingDetector().on_feedback(Motion.of(sample), 7, table)
    assert table.value("tracking_error", 7, source="elbow") == pytest.approx(0.1)
    assert table.value("tracking_error", 7, source="wrist") == pytest.approx(0.3)
    assert table.value("tracking_error", 7) == pytest.approx(0.3)
    assert table.value("joint_speed", 7) == 0.4
    assert table.value("setpoint_speed", 7) == 0.0
    assert table.value("motion_phase", 7) == 0.5


@pytest.mark.parametrize(
    "state", [InjectorState.INACTIVE, InjectorState.FAIL_SAFE, InjectorState.STOPPED]
)
def test_who_controls_nothing_has_no_error(state: InjectorState) -> None:
    table = SignalTable()
    detector = TrackingDetector()
    detector.on_feedback(
        Motion.of(feedback(InjectorState.FOLLOW, [1, 2], [0, 0], [0, 0])), 0, table
    )
    detector.on_feedback(Motion.of(feedback(state, [1, 2], [0, 0], [0, 0])), 1, table)
    assert math.isnan(table.value("tracking_error", 1))
    assert table.value("joint_speed", 1) == 0.0


def test_a_joint_that_is_not_measured_makes_the_speed_unknown() -> None:
    table = SignalTable()
    sample = feedback(InjectorState.HOLD, [1.0, 2.0], [1.0, math.nan], [0.0, math.nan])
    TrackingDetector().on_feedback(Motion.of(sample), 0, table)
    assert math.isnan(table.value("joint_speed", 0))
    assert table.value("tracking_error", 0, source="elbow") == 0.0
    assert math.isnan(table.value("tracking_error", 0, source="wrist"))


pairs = st.lists(st.floats(-7.0, 7.0), min_size=2, max_size=2)


@given(pairs, pairs)
def test_error_is_a_distance(setpoint: list[float], position: list[float]) -> None:
    table, mirror = SignalTable(), SignalTable()
    detector = TrackingDetector()
    detector.on_feedback(
        Motion.of(feedback(InjectorState.FOLLOW, setpoint, position, [0, 0])), 0, table
    )
    detector.on_feedback(
        Motion.of(feedback(InjectorState.FOLLOW, position, setpoint, [0, 0])), 0, mirror
    )
    error = table.value("tracking_error", 0)
    assert error >= 0.0
    assert error == mirror.value("tracking_error", 0)
    assert (error == 0.0) == (setpoint == position)
