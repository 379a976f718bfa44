"""Motions that are run slower than planned: continuous, on the path, and back again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthesis_rig import MS, NO_SPHERES, Rig, pose

from kv_action_router.contracts import ChunkKind
from kv_action_router.errors import InputError
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.path_clock import PathClock
from kv_action_router.synthesis.reference import Reference
from kv_action_router.synthesis.replan import ReplanSource
from kv_action_router.synthesis.source import PlanRequest
from kv_action_router.synthesis.speed_limits import MAXIMUM_SOURCES, SpeedLimits
from kv_action_router.synthesis.spline import Motion, MotionState
from kv_action_router.tasks.stages import TaskDefinition

SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def motion(model: RobotModel, source: ReplanSource, task: TaskDefinition) -> Motion:
    start = MotionState.at_rest(model.home)
    return source.plan(PlanRequest(task.stages[0], start, pose(0.55, -0.2), NO_SPHERES))


def test_the_smallest_scale_is_in_force_until_its_source_lifts_it() -> None:
    limits = SpeedLimits()
    assert limits.scale == 1.0
    limits.ask("monitor", 0.5, "images are late")
    limits.ask("person", 0.2, "near the arm")
    assert limits.scale == 0.2
    assert "person 0.2 (near the arm)" in limits.describe()
    limits.ask("person", 1.0, "")
    assert limits.scale == 0.5
    limits.ask("stranger", 1.0, "")  # lifting what was not asked for is no error
    limits.ask("monitor", 1.0, "")
    assert limits.scale == 1.0
    assert limits.describe() == "planned speed"


@pytest.mark.parametrize(
    ("source", "scale", "reason", "field"),
    [
        ("", 0.5, "x", "source"),
        ("a", 0.0, "x", "scale"),
        ("a", 1.01, "x", "scale"),
        ("a", float("nan"), "x", "scale"),
        ("a", 0.5, " ", "reason"),
    ],
)
def test_a_bad_request_changes_nothing(source: str, scale: float, reason: str, field: str) -> None:
    limits = SpeedLimits()
    limits.ask("a", 0.7, "before")
    with pytest.raises(InputError, match=field):
        limits.ask(source, scale, reason)
    assert limits.scale == 0.7


def test_sources_are_bounded() -> None:
    limits = SpeedLimits()
    for number in range(MAXIMUM_SOURCES):
        limits.ask(f"s{number}", 0.5, "x")
    with pytest.raises(InputError, match="source"):
        limits.ask("one more", 0.5, "x")
    limits.ask("s0", 0.1, "x")  # who is known may still ask
    assert limits.scale == 0.1


@settings(max_examples=25, deadline=None)
@given(share=st.floats(0.0, 1.0), rate=st.floats(0.05, 0.9), wait=st.floats(0.0, 0.8))
def test_slowing_down_and_speeding_up_keep_path_and_limits(
    model: RobotModel, motion: Motion, share: float, rate: float, wait: float
) -> None:
    limits = MotionLimits.of(model)
    reference = Reference(motion, 0)
    first = round(share * motion.duration * SECOND)
    for when, target in ((first, rate), (first + round(wait * SECOND), 1.0)):
        before = reference.state(when)
        reference.release(when, limits, target)
        for got, wanted in zip(reference.state(when), before, strict=True):
            assert np.allclose(got, wanted, atol=1e-8)
    rows = [
        reference.chunk(first + round(k * 0.05 * SECOND))[1]
        for k in range(round((motion.duration + 1.0) / 0.05))
    ]
    velocity = np.concatenate(rows)
    assert (np.abs(velocity) <= model.velocity_limit * 1.001).all()
    acceleration = np.diff(velocity, axis=0) / 0.0005
    assert (np.abs(acceleration) <= model.acceleration_limit * 1.01).all()
    times = [reference.motion_time(first + k * 10 * MS) for k in range(200)]
    assert np.all(np.diff(times) >= -1e-12)  # never backward


@settings(max_examples=60, deadline=None)
@given(
    rate=st.floats(0.05, 1.0), duration=st.floats(0.02, 1.0), at=st.floats(0.1, 1.5),
    later=st.floats(0.0, 1.0),
)  # fmt: skip
def test_a_rebased_clock_goes_on_as_the_one_before(
    rate: float, duration: float, at: float, later: float
) -> None:
    clock = PathClock(0)
    clock.change(clock.candidate(100 * MS, rate, duration))
    now = round(at * SECOND)
    rebased = clock.rebased(now)
    then = now + round(later * SECOND)
    whole, rest = clock.moment(then), rebased.moment(then)
    assert rest.position == pytest.approx(whole.position - clock.moment(now).position, abs=1e-9)
    assert rest.rate == pytest.approx(whole.rate, abs=1e-9)
    assert rest.change == pytest.approx(whole.change, abs=1e-6)


def test_a_task_slows_down_and_goes_on_at_its_speed(rig: Rig, task: TaskDefinition) -> None:
    rig.start(task)
    rig.run_until(lambda: float(np.abs(rig.velocity).max()) > 0.3)
    rig.synthesizer.motion.limit_speed("monitor", 0.25, "images are late", rig.now_ns)
    rig.at_once()
    rig.run(0.4)
    reference = rig.synthesizer.motion.reference
    assert reference is not None
    planned = reference.own_state(rig.now_ns).velocity
    assert np.allclose(reference.state(rig.now_ns).velocity, 0.25 * planned, atol=1e-9)
    rig.synthesizer.motion.limit_speed("monitor", 1.0, "", rig.now_ns)
    rig.at_once()
    rig.run(0.4)
    assert np.allclose(
        reference.state(rig.now_ns).velocity, reference.own_state(rig.now_ns).velocity, atol=1e-9
    )
    velocity_step, acceleration_step = rig.largest_steps()
    assert velocity_step < float(rig.model.acceleration_limit.max()) * 1.1e-3
    assert acceleration_step < float(rig.model.jerk_limit.max()) * 1.1e-6 * 1.5


def test_a_slow_motion_still_follows_its_target_without_a_step(
    rig: Rig, task: TaskDefinition
) -> None:
    rig.synthesizer.motion.limit_speed("monitor", 0.3, "obstacle", rig.now_ns)
    rig.start(task)
    for shift in range(40):
        rig.target = pose(0.5 + 0.001 * shift, 0.1)
        rig.run(0.02)
    assert [chunk.kind for chunk in rig.chunks].count(ChunkKind.REFRESH) >= 5
    velocity_step, acceleration_step = rig.largest_steps()
    assert velocity_step < float(rig.model.acceleration_limit.max()) * 1.1e-3
    assert acceleration_step < float(rig.model.jerk_limit.max()) * 1.1e-6 * 1.5
    reference = rig.synthesizer.motion.reference
    assert reference is not None
    ratio = np.abs(reference.state(rig.now_ns).velocity).max()
    assert ratio == pytest.approx(0.3 * np.abs(reference.own_state(rig.now_ns).velocity).max())


def test_a_slow_task_is_interrupted_and_resumed_slowly(rig: Rig, task: TaskDefinition) -> None:
    rig.synthesizer.motion.limit_speed("monitor", 0.3, "obstacle", rig.now_ns)
    rig.start(task)
    rig.run(0.5)
    rig.synthesizer.tasks.interrupt("person", "near", rig.now_ns)
    rig.at_once()
    rig.run(0.5)
    assert not rig.velocity.any()
    rig.synthesizer.motion.limit_speed("monitor", 0.2, "obstacle is nearer", rig.now_ns)
    rig.run(0.1)
    assert not rig.velocity.any()  # what stops goes on to stop
    rig.synthesizer.tasks.resume("person", rig.now_ns)
    rig.run(0.6)
    reference = rig.synthesizer.motion.reference
    assert reference is not None
    planned = reference.own_state(rig.now_ns).velocity
    assert np.allclose(reference.state(rig.now_ns).velocity, 0.2 * planned, atol=1e-9)
