"""The full replan: to the goal, inside every limit, from any start."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthesis_rig import NO_SPHERES, pose

from kv_action_router.errors import CollisionError, LimitError, SynthesisError, UnreachableError
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.kinematics import rotation_vector
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.line import distance_from_line
from kv_action_router.synthesis.progress import StateToState
from kv_action_router.synthesis.replan import ReplanSource
from kv_action_router.synthesis.source import PlanRequest
from kv_action_router.synthesis.spline import Motion, MotionState
from kv_action_router.tasks.stages import TaskDefinition

TARGETS = st.tuples(st.floats(0.35, 0.6), st.floats(-0.25, 0.25))
SPEEDS = st.tuples(*[st.floats(-0.6, 0.6)] * 6)


def check_limits(motion: Motion, model: RobotModel) -> None:
    limits = MotionLimits.of(model)
    dense = np.linspace(0.0, motion.duration, 2500)
    limits.check_positions(motion.derivative(dense, 0))
    load = limits.load(*(motion.derivative(dense, order) for order in (1, 2, 3)))
    assert max(load.velocity, load.acceleration, load.jerk) <= 1.0


@settings(max_examples=25, deadline=None)
@given(target=TARGETS, speeds=SPEEDS)
def test_free_motion_reaches_the_target_inside_all_limits(
    model: RobotModel, source: ReplanSource, task: TaskDefinition, target, speeds
) -> None:
    where = pose(*target)
    start = MotionState(model.home + 0.1 * np.array(speeds), np.array(speeds), np.zeros(6))
    try:
        motion = source.plan(PlanRequest(task.stages[0], start, where, NO_SPHERES))
    except (LimitError, CollisionError):
        return  # refused openly
    for got, wanted in zip(motion.state(0.0), start, strict=True):
        assert np.allclose(got, wanted, atol=1e-8)
    tip, rotation = model.forward(motion.end)
    assert np.allclose(tip, where.position + np.array([0.0, 0.0, 0.06]), atol=1e-5)
    assert rotation[2, 2] == pytest.approx(-1.0, abs=1e-5)
    check_limits(motion, model)


@settings(max_examples=15, deadline=None)
@given(target=TARGETS)
def test_line_is_straight_and_keeps_its_speed(
    model: RobotModel, source: ReplanSource, task: TaskDefinition, target
) -> None:
    where = pose(*target)
    approach = source.plan(
        PlanRequest(task.stages[0], MotionState.at_rest(model.home), where, NO_SPHERES)
    )
    start = MotionState.at_rest(approach.end)
    motion = source.plan(PlanRequest(task.stages[1], start, where, NO_SPHERES))
    first, last = model.forward(motion.start)[0], model.forward(motion.end)[0]
    assert np.allclose(last, where.position + np.array([0.0, 0.0, -0.015]), atol=2e-5)
    times = np.linspace(0.0, motion.duration, 40)
    assert distance_from_line(model, motion.derivative(times, 0), first, last) < 3e-4
    tips = np.array([model.forward(q)[0] for q in motion.derivative(times, 0)])
    speeds = np.linalg.norm(np.diff(tips, axis=0), axis=1) / np.diff(times)
    assert speeds.max() <= task.stages[1].goal.speed_limit * 1.05
    rotations = [model.forward(q)[1] for q in motion.derivative(times, 0)]
    assert max(np.abs(rotation_vector(r @ rotations[0].T)).max() for r in rotations) < 2e-3
    check_limits(motion, model)


def test_line_from_a_moving_start_joins_smoothly(
    model: RobotModel, source: ReplanSource, task: TaskDefinition
) -> None:
    where = pose(0.5, 0.1)
    approach = source.plan(
        PlanRequest(task.stages[0], MotionState.at_rest(model.home), where, NO_SPHERES)
    )
    moving = approach.state(approach.duration * 0.9)
    motion = source.plan(PlanRequest(task.stages[1], moving, where, NO_SPHERES))
    for got, wanted in zip(motion.state(0.0), moving, strict=True):
        assert np.allclose(got, wanted, atol=1e-8)
    check_limits(motion, model)


def test_line_from_an_unquiet_start_is_straight_all_the_same(
    model: RobotModel, source: ReplanSource, task: TaskDefinition
) -> None:
    """A motion that follows a noisy target has hardly any velocity at its end, but acceleration."""
    where = pose(0.5, 0.1)
    above = source.plan(
        PlanRequest(task.stages[0], MotionState.at_rest(model.home), where, NO_SPHERES)
    ).end
    start = MotionState(above, np.full(model.n, 0.005), np.full(model.n, 0.5))
    motion = source.plan(PlanRequest(task.stages[1], start, where, NO_SPHERES))
    for got, wanted in zip(motion.state(0.0), start, strict=True):
        assert np.allclose(got, wanted, atol=1e-8)
    times = np.linspace(0.0, motion.duration, 200)
    first, last = model.forward(motion.start)[0], model.forward(motion.end)[0]
    assert distance_from_line(model, motion.derivative(times, 0), first, last) < 3e-3
    check_limits(motion, model)


@pytest.mark.parametrize("share", [0.0, 1e-6, 1e-3, 0.02])
def test_short_and_empty_ways_are_finite(
    model: RobotModel, source: ReplanSource, task: TaskDefinition, share: float
) -> None:
    start = MotionState.at_rest(model.home + share)
    motion = source.plan(PlanRequest(task.stages[2], start, None, NO_SPHERES))
    assert np.allclose(motion.end, model.home)
    check_limits(motion, model)


def test_velocity_scale_slows_the_motion(
    model: RobotModel, source: ReplanSource, task: TaskDefinition
) -> None:
    motion = source.plan(
        PlanRequest(task.stages[0], MotionState.at_rest(model.home), pose(0.5, 0.1), NO_SPHERES)
    )
    speed = np.abs(motion.derivative(np.linspace(0, motion.duration, 500), 1)).max(axis=0)
    assert (speed <= model.velocity_limit * 0.9 * task.stages[0].velocity_scale * 1.001).all()


@pytest.mark.parametrize(
    ("x", "y", "z"), [(2.0, 0.0, 0.0), (0.5, 0.0, 3.0), (float("nan"), 0.0, 0.0)]
)
def test_unreachable_target_is_named(
    model: RobotModel, source: ReplanSource, task: TaskDefinition, x: float, y: float, z: float
) -> None:
    start = MotionState.at_rest(model.home)
    with pytest.raises(UnreachableError):
        source.plan(PlanRequest(task.stages[0], start, pose(x, y, z), NO_SPHERES))


def test_missing_target_is_named(
    model: RobotModel, source: ReplanSource, task: TaskDefinition
) -> None:
    start = MotionState.at_rest(model.home)
    with pytest.raises(UnreachableError, match="'approach' needs a target"):
        source.plan(PlanRequest(task.stages[0], start, None, NO_SPHERES))


def test_start_outside_the_limits_is_refused_by_name(
    model: RobotModel, source: ReplanSource, task: TaskDefinition
) -> None:
    outside = np.array(model.home)
    outside[2] = model.upper[2] + 0.1
    with pytest.raises(LimitError, match="elbow_joint"):
        source.plan(PlanRequest(task.stages[2], MotionState.at_rest(outside), None, NO_SPHERES))


def test_obstacle_in_the_way_is_refused_and_contact_only_where_allowed(
    model: RobotModel, source: ReplanSource, task: TaskDefinition
) -> None:
    where = pose(0.5, 0.1)
    start = MotionState.at_rest(model.home)
    free = source.plan(PlanRequest(task.stages[0], start, where, NO_SPHERES))
    middle = model.forward(free.derivative(0.5 * free.duration, 0))[0]
    sphere = np.array([[*middle, 0.05]])
    with pytest.raises(CollisionError, match="obstacle 0"):
        source.plan(PlanRequest(task.stages[0], start, where, sphere))
    above = MotionState.at_rest(free.end)
    touched = np.array([[*where.position, 0.01]])
    source.plan(PlanRequest(task.stages[1], above, where, touched))  # may touch the target


def test_without_a_collision_model_nothing_is_tested(
    model: RobotModel, config: SynthesisConfig, task: TaskDefinition
) -> None:
    blocked = np.array([[*model.forward(model.home)[0], 0.5]])
    source = ReplanSource(model, config)
    motion = source.plan(
        PlanRequest(task.stages[0], MotionState.at_rest(model.home), pose(0.5, 0.1), blocked)
    )
    assert motion.duration > 0.1


def test_line_through_a_singularity_is_an_error_not_a_jump(
    model: RobotModel, config: SynthesisConfig, task: TaskDefinition
) -> None:
    source = ReplanSource(model, config)
    start = MotionState.at_rest(model.home)
    with pytest.raises(SynthesisError):
        source.plan(PlanRequest(task.stages[1], start, pose(-0.5, 0.0, 0.3), NO_SPHERES))


@pytest.mark.parametrize("share", [0.9, 0.265, 0.1])
def test_slow_ways_are_nearly_as_fast_as_their_limits_allow(
    model: RobotModel, task: TaskDefinition, share: float
) -> None:
    source = ReplanSource(model, SynthesisConfig(velocity_share=share))
    limits = MotionLimits.of(model).scaled(0.6 * share, 0.48, 0.48)  # of the retreat
    random = np.random.default_rng(3)
    for _ in range(20):
        start = MotionState.at_rest(model.home + random.uniform(-0.8, 0.8, 6))
        motion = source.plan(PlanRequest(task.stages[2], start, None, NO_SPHERES))
        fastest = StateToState(model.n).solve(start, model.home, limits)
        assert motion.duration <= 1.3 * fastest


def test_a_start_that_brakes_hard_is_no_obstacle_to_a_slow_way(
    model: RobotModel, task: TaskDefinition
) -> None:
    source = ReplanSource(model, SynthesisConfig(velocity_share=0.265))
    limits = MotionLimits.of(model)
    random = np.random.default_rng(5)
    for _ in range(100):
        velocity = random.uniform(-0.5, 0.5, 6)
        deceleration = random.uniform(0.1, 0.95) * limits.acceleration.min()
        start = MotionState(
            model.home + random.uniform(-0.8, 0.8, 6),
            velocity,
            -velocity / np.abs(velocity).max() * deceleration,
        )
        motion = source.plan(PlanRequest(task.stages[2], start, None, NO_SPHERES))
        for got, wanted in zip(motion.state(0.0), start, strict=True):
            assert np.allclose(got, wanted, atol=1e-8)
        assert motion.duration < 3.0
        check_limits(motion, model)
