"""A spindle works against what it turns: how far behind it is says nothing."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from kv_action_router.contracts import (
    Decision,
    ExecutionFeedback,
    InjectorEvent,
    InjectorState,
    JointSample,
)
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.reference import Reference
from kv_action_router.synthesis.spline import Motion
from kv_action_router.synthesis.tracking import Tracking

JOINTS = ("lift", "spindle")
NOW = 1_000_000_000


def tracking(spindles: list[bool], setpoint: list[float], state: InjectorState) -> Tracking:
    """Return one that has measured the lift at 0.1 rad and the spindle at 7 rad."""
    found = Tracking(JOINTS, SynthesisConfig(), spindles)
    measured = np.array([0.1, 7.0])
    found.joints = JointSample(JOINTS, measured, np.array([0.0, 0.3]), np.zeros(2), NOW)
    found.feedback = ExecutionFeedback(
        decision=Decision(),
        state=state,
        event=InjectorEvent.NONE,
        reason="",
        monotonic_ns=NOW,
        epoch=1,
        chunk_sequence=1,
        phase=0.5,
        joints=JOINTS,
        position=measured,
        velocity=np.zeros(2),
        setpoint_position=np.array(setpoint),
        setpoint_velocity=np.zeros(2),
        command=np.zeros(2),
        command_interface="effort",
        confident=np.ones(2, bool),
        execution_version=1,
    )
    return found


@pytest.mark.parametrize("is_spindle", [True, False])
def test_only_a_spindle_may_be_far_behind_its_reference(is_spindle: bool) -> None:
    reference = Reference(Motion.hold(np.array([0.1, 9.0])), NOW)
    found = tracking([False, is_spindle], [0.1, 9.0], InjectorState.FOLLOW)
    assert found.follows(reference, NOW) == is_spindle


def test_a_spindle_whose_set_point_has_left_the_reference_is_not_followed() -> None:
    # Chunks came late, the injector stands; it refuses what goes on a radian further.
    reference = Reference(Motion.hold(np.array([0.1, 9.0])), NOW - 1_000_000_000)
    found = tracking([False, True], [0.1, 8.0], InjectorState.HOLD)
    assert not found.follows(reference, NOW - 1_000_000_000)
    assert not found.held_back(reference)


def test_a_motion_begins_at_a_spindles_set_point_and_at_the_arms_measured_place() -> None:
    state = tracking([False, True], [0.11, 9.0], InjectorState.RAMP).standing()
    np.testing.assert_array_equal(state.position, [0.1, 9.0])
    np.testing.assert_array_equal(state.velocity, [0.0, 0.0])


@pytest.mark.parametrize("spindles", [[False, True], [False, False]])
def test_an_arm_that_presses_goes_on_at_its_set_point(spindles: list[bool]) -> None:
    found = tracking(spindles, [0.11, 9.0], InjectorState.RAMP)
    np.testing.assert_array_equal(found.standing(presses=True).position, [0.11, 9.0])
    found = tracking(spindles, [0.11, 9.0], InjectorState.STOPPED)
    np.testing.assert_array_equal(found.standing(presses=True).position, [0.1, 7.0])


def test_a_spindles_set_point_is_carried_on_to_the_present_at_its_speed() -> None:
    found = tracking([False, True], [0.11, 9.0], InjectorState.FOLLOW)
    assert found.feedback is not None
    assert found.joints is not None
    found.feedback.setpoint_velocity[:] = 0.1, 4.0
    found.joints = dataclasses.replace(found.joints, receipt_ns=NOW + 5_000_000)
    state = found.standing()
    np.testing.assert_allclose(state.position, [0.1, 9.02])
    np.testing.assert_array_equal(state.velocity, [0.0, 4.0])
    found.joints = dataclasses.replace(found.joints, receipt_ns=NOW + 500_000_000)
    np.testing.assert_allclose(found.standing().position, [0.1, 9.08])


@pytest.mark.parametrize(
    ("spindles", "state"),
    [([False, False], InjectorState.HOLD), ([False, True], InjectorState.STOPPED)],
)
def test_else_it_begins_where_all_is_measured(spindles: list[bool], state: InjectorState) -> None:
    found = tracking(spindles, [0.11, 9.0], state).standing()
    np.testing.assert_array_equal(found.position, [0.1, 7.0])
