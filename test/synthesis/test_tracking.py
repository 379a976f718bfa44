"""How far the arm is from where it was led."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from kv_action_router.contracts import (
    Decision,
    ExecutionFeedback,
    InjectorEvent,
    InjectorState,
)
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.tracking import ADOPTION_NS, Tracking

JOINTS = ("a", "b")
BEGUN_NS = 1_000_000_000


def told(**changed) -> ExecutionFeedback:
    feedback = ExecutionFeedback(
        decision=Decision(),
        state=InjectorState.FOLLOW,
        event=InjectorEvent.NONE,
        reason="",
        monotonic_ns=BEGUN_NS + ADOPTION_NS + 1,
        epoch=1,
        chunk_sequence=1,
        phase=0.5,
        joints=JOINTS,
        position=np.array([0.10, -0.50]),
        velocity=np.zeros(2),
        setpoint_position=np.array([0.12, -0.47]),
        setpoint_velocity=np.zeros(2),
        command=np.zeros(2),
        command_interface="effort",
        confident=np.ones(2, dtype=bool),
        execution_version=1,
    )
    return dataclasses.replace(feedback, **changed)


def led(feedback: ExecutionFeedback | None, spindles=()):
    tracking = Tracking(JOINTS, SynthesisConfig(), spindles)
    tracking.feedback = feedback
    return tracking.led(BEGUN_NS)


def test_positions_and_set_points_of_the_joints_that_are_led():
    assert led(told()) == ([0.10, -0.50], [0.12, -0.47])


def test_a_spindle_is_led_along_no_path():
    assert led(told(), [False, True]) == ([0.10], [0.12])


@pytest.mark.parametrize(
    "feedback",
    [
        None,
        told(state=InjectorState.HOLD),
        told(state=InjectorState.RAMP),
        told(state=InjectorState.FAIL_SAFE),
        told(monotonic_ns=BEGUN_NS - 1),
        told(monotonic_ns=BEGUN_NS + ADOPTION_NS),  # may be of the motion before
        told(setpoint_position=np.zeros(0)),
        told(joints=("b", "a")),
    ],
)
def test_what_is_not_on_the_motions_path_says_nothing(feedback):
    assert led(feedback) is None
