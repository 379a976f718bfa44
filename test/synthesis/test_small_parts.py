"""Kinematic steps, measurements, tracking, warm-up, parameters."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthesis_rig import MS, Rig

from kv_action_router.contracts import InjectorState, JointSample
from kv_action_router.errors import ConfigError, ReanchorError, UnreachableError
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.goal import TOOL_DOWN, tool_down_at
from kv_action_router.synthesis.kinematics import (
    rotation_about,
    rotation_vector,
    shifted_end,
    solve_near,
)
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.line import LinePath
from kv_action_router.synthesis.measurement import in_model_order
from kv_action_router.synthesis.progress import StateToState
from kv_action_router.synthesis.reference import Reference
from kv_action_router.synthesis.spline import Motion, MotionState
from kv_action_router.synthesis.warmup import warm_up

VECTORS = st.tuples(*[st.floats(-1.5, 1.5)] * 3)


@given(VECTORS)
def test_rotation_and_its_vector_are_inverse(values: tuple[float, ...]) -> None:
    vector = np.array(values)
    rotation = rotation_about(vector)
    assert np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)
    assert np.allclose(rotation_vector(rotation), vector, atol=1e-7)


@settings(max_examples=25, deadline=None)
@given(st.tuples(*[st.floats(-0.08, 0.08)] * 3))
def test_end_moves_by_the_displacement_and_keeps_its_rotation(
    model: RobotModel, values: tuple[float, ...]
) -> None:
    position, rotation = model.forward(model.home)
    moved = shifted_end(model, model.home, np.array(values))
    there, turned = model.forward(moved)
    assert np.allclose(there - position, values, atol=2e-5)
    assert np.abs(rotation_vector(turned @ rotation.T)).max() < 2e-5
    assert np.abs(moved - model.home).max() < 0.8  # the same branch


def test_pose_out_of_reach_is_no_local_correction(model: RobotModel) -> None:
    position, rotation = model.forward(model.home)
    with pytest.raises(ReanchorError, match="local correction"):
        solve_near(model, position + np.array([1.5, 0.0, 0.0]), rotation, model.home)


@given(st.floats(-3.0, 3.0))
def test_tool_down_keeps_the_turn_about_its_axis(turn: float) -> None:
    straight = rotation_about(np.array([0.0, 0.0, turn])) @ TOOL_DOWN
    assert np.allclose(tool_down_at(straight), straight, atol=1e-9)
    tilted = rotation_about(np.array([0.1, -0.05, 0.0])) @ straight
    assert np.allclose(tool_down_at(tilted)[:, 2], [0.0, 0.0, -1.0])


def test_line_that_leaves_the_workspace_says_where(model: RobotModel) -> None:
    position, rotation = model.forward(model.home)
    with pytest.raises(UnreachableError, match=r"line cannot be followed at \d+%"):
        LinePath(model, model.home, position + np.array([1.0, 0.0, 0.0]), rotation)


def test_state_to_state_respects_the_start_velocity() -> None:
    solver = StateToState(1)
    one = np.ones(1)
    limits = MotionLimits(("x",), -9.0 * one, 9.0 * one, one, 4.0 * one, 40.0 * one)
    start = MotionState(np.zeros(1), np.array([0.5]), np.zeros(1))
    duration = solver.solve(start, np.array([1.0]), limits)
    values = solver.positions(np.array([0.0, 1e-4 / duration, 1.0]))[:, 0]
    assert (values[1] - values[0]) / 1e-4 == pytest.approx(0.5, rel=0.01)
    assert values[2] == pytest.approx(1.0)


def sample(names: tuple[str, ...], **changes: object) -> JointSample:
    count = len(names)
    made = JointSample(
        names, np.arange(float(count)), np.full(count, np.nan), np.full(count, np.nan), 5
    )
    return dataclasses.replace(made, **changes)


def test_joints_are_read_by_name_in_any_order(model: RobotModel) -> None:
    names = (*reversed(model.joint_names), "gripper")
    ordered = in_model_order(sample(names), model)
    assert ordered is not None
    assert ordered.names == model.joint_names
    assert np.array_equal(ordered.position, [5.0, 4.0, 3.0, 2.0, 1.0, 0.0])


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_partial_or_bad_joints_are_left_out(model: RobotModel, bad: float) -> None:
    assert in_model_order(sample(("gripper",)), model) is None
    position = np.zeros(6)
    position[2] = bad
    assert in_model_order(sample(model.joint_names, position=position), model) is None


def test_velocity_that_is_not_measured_counts_as_rest(rig: Rig) -> None:
    tracking = rig.synthesizer.tracking
    tracking.joints = sample(rig.model.joint_names, receipt_ns=rig.now_ns)
    assert not tracking.measured().velocity.any()
    assert tracking.at_rest(rig.now_ns)
    assert not tracking.at_rest(rig.now_ns + 1000 * MS)  # too old to know


def followed(rig: Rig, **changes: object) -> bool:
    """Say whether a hold at home counts as followed with a changed feedback."""
    reference = Reference(Motion.hold(rig.model.home), rig.now_ns - 500 * MS)
    tracking = rig.synthesizer.tracking
    tracking.joints = rig.joints()
    rig.state = InjectorState.FOLLOW
    tracking.feedback = dataclasses.replace(rig.feedback(), chunk_sequence=4, **changes)
    return tracking.follows(reference, rig.now_ns - 400 * MS)


def test_reference_is_followed_only_while_everything_agrees(rig: Rig) -> None:
    assert followed(rig)
    assert followed(rig, state=InjectorState.HOLD)
    assert not followed(rig, state=InjectorState.RAMP)
    assert not followed(rig, state=InjectorState.STOPPED)
    assert not followed(rig, setpoint_position=rig.model.home + 0.3)
    assert not followed(rig, setpoint_position=np.full(6, np.nan))
    assert not followed(rig, joints=("other",) * 6)
    swapped = followed(
        rig,
        joints=rig.model.joint_names[::-1],
        setpoint_position=rig.model.home[::-1].copy(),
    )
    assert swapped
    rig.offset = np.full(6, 0.3)
    assert not followed(rig)


def test_feedback_from_before_the_motion_is_not_asked(rig: Rig) -> None:
    reference = Reference(Motion.hold(rig.model.home), rig.now_ns)
    tracking = rig.synthesizer.tracking
    tracking.joints, tracking.feedback = rig.joints(), rig.feedback()
    assert tracking.feedback.chunk_sequence == 0
    assert tracking.follows(reference, rig.now_ns)


def test_warm_up_goes_through_everything(model: RobotModel, config: SynthesisConfig) -> None:
    chunks = warm_up(model, config)
    assert len(chunks) >= 8
    assert all(np.isfinite(chunk.samples).all() for chunk in chunks)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coefficients": 5}, "coefficients must be at least 6"),
        ({"velocity_share": 0.0}, "velocity_share must be at least 0.01"),
        ({"velocity_share": 1.5}, "velocity_share must be at most 1.0"),
        ({"line_speed": float("nan")}, "line_speed must be finite"),
        ({"plan_attempts": 0}, "plan_attempts must be at least 1"),
        ({"robot": ""}, "robot must be the name of a robot model"),
        ({"contact_links": "tool"}, "contact_links must be a list"),
    ],
)
def test_bad_parameter_is_named_with_limit_and_value(
    change: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        SynthesisConfig(**change)  # type: ignore[arg-type]


def test_table_can_be_left_out() -> None:
    assert SynthesisConfig(table_height=-1.0).table_plane is None
    assert SynthesisConfig(table_height=0.0).table_plane == 0.0


def test_only_a_stop_keeps_a_task_from_beginning(rig: Rig) -> None:
    tracking = rig.synthesizer.tracking
    assert tracking.stopped() == ""
    for state in InjectorState:
        rig.state = state
        tracking.feedback = rig.feedback()
        assert bool(tracking.stopped()) == (state is InjectorState.STOPPED)
