"""Joining cached motions: exact ends, limits always kept, or an error."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kv_action_router.errors import ReanchorError
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.reanchor import joined, reanchor, shifted_by_turns
from kv_action_router.synthesis.retime import inside
from kv_action_router.synthesis.spline import Motion, MotionState

SIZE = 28
ONES = np.ones(2)
LIMITS = MotionLimits(("a", "b"), -6.0 * ONES, 6.0 * ONES, 2.0 * ONES, 8.0 * ONES, 120.0 * ONES)
numbers = st.floats(-0.3, 0.3)


def cached() -> Motion:
    points = np.array([[0.0, 1.0], [0.5, 0.8], [0.9, 1.3], [1.0, 1.0]])
    return inside(Motion.through(points), LIMITS).uniform_form(SIZE)


@settings(max_examples=60, deadline=None)
@given(st.tuples(*[numbers] * 8))
def test_ends_are_exact_and_limits_hold(values: tuple[float, ...]) -> None:
    motion = cached()
    start = MotionState(
        motion.start + values[:2], np.array(values[2:4]), 3.0 * np.array(values[4:6])
    )
    end = motion.end + values[6:]
    try:
        made = reanchor(motion, start, end, LIMITS, 4.0 * motion.duration, SIZE)
    except ReanchorError:
        return  # a clear answer, too
    for got, wanted in zip(made.state(0.0), start, strict=True):
        assert np.allclose(got, wanted, atol=1e-8)
    assert np.allclose(made.end, end)
    assert np.allclose(made.derivative(made.duration, 1), 0.0, atol=1e-9)
    dense = np.linspace(0.0, made.duration, 3000)
    assert np.abs(made.derivative(dense, 1)).max() <= 2.0 * 1.005
    assert np.abs(made.derivative(dense, 2)).max() <= 8.0 * 1.005
    assert np.abs(made.derivative(dense, 3)).max() <= 120.0 * 1.02
    assert np.abs(made.derivative(dense, 0)).max() <= 6.0 + 1e-6


def test_same_ends_give_the_same_motion() -> None:
    motion = cached()
    made = joined(motion, motion.state(0.0), motion.end, motion.duration)
    assert np.allclose(made.coefficients, motion.coefficients, atol=1e-9)


def test_shape_is_kept_in_between() -> None:
    motion = cached()
    shift = np.array([0.1, -0.2])
    made = joined(motion, MotionState.at_rest(motion.start + shift), motion.end + shift, 3.0)
    times = np.linspace(0.0, 1.0, 50)
    before = motion.derivative(times * motion.duration, 0)
    assert np.allclose(made.derivative(times * 3.0, 0), before + shift, atol=1e-9)


def test_velocity_and_acceleration_at_the_start_fade_soon() -> None:
    motion = inside(Motion.through(np.array([[0.0, 1.0], [0.4, 0.8]]), [0.0, 3.0]), LIMITS)
    motion = motion.uniform_form(SIZE)
    start = MotionState(motion.start, np.array([0.01, -0.01]), np.array([0.3, 0.5]))
    made = reanchor(motion, start, motion.end, LIMITS, 2.0 * motion.duration, SIZE)
    for got, wanted in zip(made.state(0.0), start, strict=True):
        assert np.allclose(got, wanted, atol=1e-8)
    times = np.linspace(0.0, motion.duration, 300)
    away = made.derivative(times / motion.duration * made.duration, 0) - motion.derivative(times, 0)
    assert np.abs(away).max() < 2e-3
    assert np.abs(away[times > 0.2 * motion.duration]).max() < 1e-6


def test_fast_start_takes_longer_to_fade_and_keeps_the_limits() -> None:
    motion = Motion.uniform(np.tile([0.2, 0.1], (SIZE, 1)), 3.0)
    away = []
    for speed in (0.01, 0.3):
        start = MotionState(motion.start, np.array([speed, 0.0]), np.zeros(2))
        made = reanchor(motion, start, motion.end, LIMITS, 3.0, SIZE)
        times = np.linspace(0.0, made.duration, 3000)
        assert np.abs(made.derivative(times, 3)).max() <= 120.0 * 1.02
        moving = np.abs(made.derivative(times, 0) - motion.start).max(axis=1) > 1e-4
        away.append(float(times[moving].max()))
    assert 0.05 < away[0] < away[1] < 1.0


def test_state_that_cannot_be_joined_is_refused() -> None:
    motion = cached()
    away = MotionState(motion.start + 4.0, np.zeros(2), np.zeros(2))
    with pytest.raises(ReanchorError, match="cannot be joined"):
        reanchor(motion, away, motion.end, LIMITS, 1.05 * motion.duration, SIZE)


def test_end_outside_its_limits_is_refused_by_name() -> None:
    motion = cached()
    with pytest.raises(ReanchorError, match="joint 'b': position must be at most"):
        reanchor(motion, motion.state(0.0), np.array([1.0, 6.2]), LIMITS, 9.0, SIZE)


NEITHER = np.zeros(2, dtype=bool)
SECOND = np.array([False, True])
TURNING = SimpleNamespace(continuous=SECOND, spindles=NEITHER)
BOUNDED = SimpleNamespace(continuous=NEITHER, spindles=NEITHER)
SPINDLE = SimpleNamespace(continuous=SECOND, spindles=SECOND)


def test_a_spindle_begins_where_it_is() -> None:
    motion = cached()
    position = motion.start + np.array([0.1, 40.3])
    made = shifted_by_turns(motion, position, SPINDLE)
    assert np.allclose(made.start, motion.start + np.array([0.0, 40.3]))
    assert np.allclose(made.end - made.start, motion.end - motion.start)


@pytest.mark.parametrize("turns", [-3, -1, 0, 2])
def test_continuous_joints_are_shifted_by_whole_turns(turns: int) -> None:
    motion = cached()
    position = motion.start + np.array([0.1, 0.1 + turns * 2.0 * np.pi])
    made = shifted_by_turns(motion, position, TURNING)
    assert np.allclose(made.start, motion.start + np.array([0.0, turns * 2.0 * np.pi]))
    assert np.allclose(made.derivative(0.5, 1), motion.derivative(0.5, 1))
    assert np.abs(made.start - position).max() < np.pi


def test_case_of_seven_half_turns() -> None:
    """A continuous joint at 3.5 pi and a cached start at -0.5 pi are the same place."""
    motion = Motion.through(np.array([[0.0, -0.5 * np.pi], [0.2, 0.0]]))
    made = shifted_by_turns(motion, np.array([0.0, 3.5 * np.pi]), TURNING)
    assert made.start[1] == pytest.approx(3.5 * np.pi)
    assert made.end[1] == pytest.approx(4.0 * np.pi)


def test_bounded_joints_are_never_shifted() -> None:
    motion = cached()
    far = motion.start + 2.0 * np.pi
    assert shifted_by_turns(motion, far, BOUNDED) is motion
