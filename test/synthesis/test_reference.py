"""A motion under way: braking and going on stay on the path, inside the limits, without a step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthesis_rig import NO_SPHERES, pose

from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.path_clock import RateChange, path_time
from kv_action_router.synthesis.reference import Reference
from kv_action_router.synthesis.replan import ReplanSource
from kv_action_router.synthesis.source import PlanRequest
from kv_action_router.synthesis.spline import Motion, MotionState
from kv_action_router.tasks.stages import TaskDefinition

SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def motion(model: RobotModel, source: ReplanSource, task: TaskDefinition) -> Motion:
    start = MotionState.at_rest(model.home)
    return source.plan(PlanRequest(task.stages[0], start, pose(0.55, -0.2), NO_SPHERES))


def sampled(reference: Reference, begin_ns: int, seconds: float) -> np.ndarray:
    """Return velocities every 0.5 ms over some time, from chunk to chunk."""
    rows = [
        reference.chunk(begin_ns + round(k * 0.05 * SECOND))[1]
        for k in range(round(seconds / 0.05))
    ]
    return np.concatenate(rows)


@settings(max_examples=30, deadline=None)
@given(share=st.floats(0.0, 1.1), wait=st.floats(0.0, 0.6))
def test_brake_and_release_keep_path_and_limits(
    model: RobotModel, motion: Motion, share: float, wait: float
) -> None:
    limits = MotionLimits.of(model)
    reference = Reference(motion, 0)
    first = round(share * motion.duration * SECOND)
    before = reference.state(first)
    taken = reference.brake(first, limits)
    for got, wanted in zip(reference.state(first), before, strict=True):
        assert np.allclose(got, wanted, atol=1e-8)
    assert taken < 0.6
    second = first + round(wait * SECOND)
    middle = reference.state(second)
    reference.release(second, limits)
    for got, wanted in zip(reference.state(second), middle, strict=True):
        assert np.allclose(got, wanted, atol=1e-8)
    velocity = sampled(reference, first, motion.duration + 1.5)
    assert (np.abs(velocity) <= model.velocity_limit * 1.001).all()
    acceleration = np.diff(velocity, axis=0) / 0.0005
    assert (np.abs(acceleration) <= model.acceleration_limit * 1.01).all()
    end = first + round((motion.duration + 4.0) * SECOND)
    assert np.allclose(reference.position(end), motion.end)
    assert reference.phase(end) == 1.0
    assert reference.at_rest(end)


def test_braked_reference_stands_at_its_phase(model: RobotModel, motion: Motion) -> None:
    reference = Reference(motion, 0)
    when = round(0.5 * motion.duration * SECOND)
    taken = reference.brake(when, MotionLimits.of(model))
    assert reference.stops
    stopped = when + round(taken * SECOND) + 1
    assert not reference.at_rest(when)
    assert reference.at_rest(stopped)
    phase = reference.phase(stopped)
    assert 0.5 < phase < 0.9
    assert reference.phase(stopped + 5 * SECOND) == phase
    assert not reference.state(stopped).velocity.any()
    path = motion.derivative(phase * motion.duration, 0)
    assert np.allclose(reference.position(stopped), path, atol=1e-9)


def test_phase_goes_on_from_what_was_done_before(motion: Motion) -> None:
    reference = Reference(motion, 0, phase=0.4)
    half = round(0.5 * motion.duration * SECOND)
    assert reference.phase(0) == pytest.approx(0.4)
    assert reference.phase(half) == pytest.approx(0.7)
    assert reference.phase(half * 3) == 1.0


def test_brake_at_rest_takes_no_time(model: RobotModel, motion: Motion) -> None:
    reference = Reference(motion, 0)
    over = round((motion.duration + 1.0) * SECOND)
    assert reference.brake(over, MotionLimits.of(model)) == 0.0
    assert np.allclose(reference.position(over), motion.end)


@settings(max_examples=60, deadline=None)
@given(
    first=st.floats(0.0, 1.0),
    slope=st.floats(-3.0, 3.0),
    last=st.sampled_from([0.0, 1.0]),
    duration=st.floats(0.02, 2.0),
)
def test_path_time_is_the_integral_of_its_rate(
    first: float, slope: float, last: float, duration: float
) -> None:
    change = RateChange(0, 0.3, first, slope, last, duration)
    instants = np.linspace(0.0, duration * 1.2, 4001)
    time = path_time(change, instants)
    step = instants[1]
    whole = 0.3 + np.concatenate(([0.0], np.cumsum((time.rate[1:] + time.rate[:-1]) * step / 2)))
    assert np.allclose(time.position, whole, atol=1e-5)
    inner = slice(1, int(4000 / 1.2) - 2)
    slopes = np.gradient(time.rate, step)[inner]
    assert np.allclose(slopes, time.change[inner], atol=2e-2 * (1.0 + abs(slope) / duration))
    assert time.rate[-1] == pytest.approx(last)
