"""Motions: way-points of every number, behavior values as their inverse, ends and remainders."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kv_action_router.contracts import CHUNK_SAMPLES, Pose
from kv_action_router.errors import InputError, LimitError
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.retime import inside, load_of
from kv_action_router.synthesis.spline import Motion

NAMES = ("a", "b")
TIMES = np.arange(CHUNK_SAMPLES) * 0.0005


def limits(lower: float = -20.0, upper: float = 20.0) -> MotionLimits:
    ones = np.ones(2)
    return MotionLimits(NAMES, ones * lower, ones * upper, ones * 2.0, ones * 8.0, ones * 100.0)


def a_motion() -> Motion:
    return Motion.through(np.array([[0.0, 1.0], [0.5, 0.8], [0.2, 1.4], [1.0, 1.0]]))


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_identical_waypoints_are_a_finite_hold(count: int) -> None:
    motion = Motion.through(np.tile([0.3, -0.7], (count, 1)))
    for order in range(3):
        values = motion.derivative(TIMES, order)
        assert values.shape == (CHUNK_SAMPLES, 2)
        assert np.allclose(values, [0.3, -0.7] if order == 0 else 0.0, atol=1e-12)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 20])
def test_few_waypoints_are_passed_from_rest_to_rest(count: int) -> None:
    points = np.random.default_rng(count).normal(size=(count, 2))
    motion = Motion.through(points)
    assert np.allclose(motion.derivative(np.arange(float(count)), 0), points)
    for time in (0.0, motion.duration):
        assert np.allclose(motion.derivative(time, 1), 0.0, atol=1e-9)
        assert np.allclose(motion.derivative(time, 2), 0.0, atol=1e-9)


@pytest.mark.parametrize(
    "waypoints",
    [np.zeros((0, 2)), np.array([[0.0, np.nan]]), np.array([[np.inf, 0.0], [0.0, 0.0]])],
)
def test_unusable_waypoints_are_refused(waypoints: np.ndarray) -> None:
    with pytest.raises(InputError, match="waypoints must be"):
        Motion.through(waypoints)


@pytest.mark.parametrize("times", [[0.0, 0.0], [1.0, 2.0], [0.0, -1.0], [0.0, np.nan], [0.0]])
def test_times_that_do_not_rise_from_zero_are_refused(times: list[float]) -> None:
    with pytest.raises(InputError, match="times must be"):
        Motion.through(np.array([[0.0, 0.0], [1.0, 1.0]]), np.array(times))


@pytest.mark.parametrize("end", [10.0, 0.05, -3.0])
def test_uneven_waypoints_are_retimed_openly_or_refused(end: float) -> None:
    """Way-points 0, 1, end on equal knots overshoot; no sample may be clipped into the limits."""
    motion = Motion.through(np.array([[0.0, 0.0], [1.0, 1.0], [end, end]]))
    slowed = inside(motion, limits())
    assert slowed.duration >= motion.duration
    assert np.array_equal(slowed.coefficients, motion.coefficients)  # the same path
    dense = np.linspace(0.0, slowed.duration, 5000)
    assert np.abs(slowed.derivative(dense, 1)).max() <= 2.0 * 1.002
    assert np.abs(slowed.derivative(dense, 2)).max() <= 8.0 * 1.002


def test_waypoint_on_a_limit_that_is_overshot_is_refused_by_name() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    motion = Motion.through(points)
    assert motion.derivative(np.linspace(0, 3, 1000), 0).max() > 1.0
    with pytest.raises(LimitError, match=r"joint 'a': position must be at most 1.0000 rad, got"):
        inside(motion, limits(upper=1.0))


def test_waypoint_on_a_limit_that_is_kept_is_accepted() -> None:
    motion = Motion.through(np.array([[0.0, 0.0], [1.0, 0.5]]))
    slowed = inside(motion, limits(upper=1.0))
    assert slowed.derivative(np.linspace(0, slowed.duration, 1000), 0).max() <= 1.0 + 1e-9


def test_behavior_value_and_motion_are_an_inverse_pair() -> None:
    motion = a_motion()
    value = motion.to_behavior("grip_v1", NAMES, Pose())
    back = Motion.from_behavior(value, NAMES)
    assert np.array_equal(back.knots, motion.knots)
    assert np.array_equal(back.coefficients, motion.coefficients)
    again = back.to_behavior("grip_v1", NAMES, value.target)
    assert again.dimensions == value.dimensions
    assert np.array_equal(again.coefficients, value.coefficients)


def test_columns_are_found_by_name() -> None:
    value = a_motion().to_behavior("grip_v1", NAMES, None)
    swapped = dataclasses.replace(
        value, dimensions=("b/position", "a/position"), coefficients=value.coefficients[:, ::-1]
    )
    back = Motion.from_behavior(swapped, NAMES)
    assert np.array_equal(back.coefficients, value.coefficients)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"degree": 3}, "degree must be 5"),
        ({"dimensions": ("a/position", "c/position")}, "b/position"),
        ({"dimensions": ("a/position", "a/position")}, "distinct"),
        ({"coefficients": np.zeros((0, 2)), "knots": np.zeros(0)}, "coefficients must be"),
        ({"knots": np.zeros(14)}, "at least 0.001 s long"),
        ({"knots": np.arange(14.0)}, "clamped"),
        ({"knots": np.full(14, np.nan)}, "finite"),
        ({"coefficients": np.full((8, 2), np.nan)}, "finite"),
        ({"coefficients": np.zeros((9, 2))}, "15 values"),
    ],
)
def test_broken_behavior_values_are_refused(change: dict[str, object], message: str) -> None:
    value = a_motion().to_behavior("grip_v1", NAMES, None)
    assert value.coefficients.shape == (8, 2)
    with pytest.raises(InputError, match=message):
        Motion.from_behavior(dataclasses.replace(value, **change), NAMES)


def test_before_and_after_itself_a_motion_stays() -> None:
    motion = a_motion()
    times = np.array([-1.0, motion.duration + 1.0])
    assert np.allclose(motion.derivative(times, 0), [motion.start, motion.end])
    assert not motion.derivative(times, 1).any()
    assert not motion.derivative(times, 2).any()


@settings(max_examples=40, deadline=None)
@given(share=st.floats(0.0, 1.0))
def test_remainder_is_the_same_motion_from_there_on(share: float) -> None:
    motion = inside(a_motion(), limits())
    rest = motion.remainder(share * motion.duration, 28)
    if share * motion.duration > motion.duration - 1e-3:
        assert np.allclose(rest.start, motion.end)
        return
    begin = motion.duration - rest.duration
    for order, scale in ((0, 1.0), (1, 2.0), (2, 8.0)):
        first = motion.derivative(begin, order) - rest.derivative(0.0, order)
        assert np.abs(first).max() < 1e-6 * scale
    times = np.linspace(0.0, rest.duration, 200)
    away = rest.derivative(times, 0) - motion.derivative(begin + times, 0)
    assert np.abs(away).max() < 2e-4


def test_load_of_any_knots_equals_that_of_uniform_ones() -> None:
    points = np.array([[0.0, 1.0], [0.5, 0.8], [0.2, 1.4], [1.0, 1.0]])
    motion = Motion.through(points, np.array([0.0, 0.7, 2.0, 3.0]))
    assert not motion.is_uniform()
    exact = load_of(motion, limits())
    fitted = load_of(motion.uniform_form(60), limits())
    assert exact.velocity == pytest.approx(fitted.velocity, rel=0.01)
    assert exact.acceleration == pytest.approx(fitted.acceleration, rel=0.02)
