"""Polynomials of a spline's spans give what the spline gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import BSpline

from kv_action_router.contracts import CHUNK_PERIOD, CHUNK_SAMPLES
from kv_action_router.synthesis.path_clock import RateChange, path_moment, path_time
from kv_action_router.synthesis.reference import Reference
from kv_action_router.synthesis.spline import Motion

GRID = np.arange(CHUNK_SAMPLES) * CHUNK_PERIOD


def uniform(size: int, duration: float) -> Motion:
    return Motion.uniform(np.random.default_rng(size).normal(size=(size, 3)), duration)


def uneven() -> Motion:
    points = np.random.default_rng(1).normal(size=(7, 3))
    return Motion.through(points, np.array([0.0, 0.3, 0.4, 1.1, 1.3, 2.0, 2.4]))


def spline(motion: Motion) -> BSpline:
    return BSpline(motion.knots, motion.coefficients, 5)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([6, 7, 28, 60]), st.floats(0.05, 20.0), st.integers(0, 3))
def test_derivatives_of_uniform_motions(size: int, duration: float, order: int) -> None:
    motion = uniform(size, duration)
    times = np.random.default_rng(0).uniform(0.0, duration, 40)
    wanted = spline(motion)(times, order)
    tolerance = 1e-10 * (size / duration) ** order
    assert np.allclose(motion.derivative(times, order), wanted, rtol=0.0, atol=tolerance)


@pytest.mark.parametrize("motion", [uniform(28, 1.7), uneven()])
def test_one_instant_and_many_agree(motion: Motion) -> None:
    for time in (0.0, 0.31, 1.0999, 1.1, motion.duration):
        state = motion.state(time)
        assert np.allclose(motion.position(time), state.position, atol=1e-12)
        for order, got in enumerate(state):
            assert np.allclose(got, spline(motion)(time, order), rtol=1e-9, atol=1e-9)
            assert np.allclose(got, motion.derivative(np.array([time]), order)[0], atol=1e-8)


@settings(max_examples=60, deadline=None)
@given(st.floats(-0.1, 2.6), st.sampled_from([0.0, 0.4, 1.0, 3.0]), st.booleans())
def test_samples_are_positions_and_velocities(begin: float, step: float, even: bool) -> None:
    """Also before the beginning, after the end, and across many spans at once."""
    motion = uniform(28, 2.4) if even else uneven()
    samples = np.full((CHUNK_SAMPLES, 6), np.nan)
    times = begin + step * GRID
    motion.sample(times, samples)
    assert np.allclose(samples[:, :3], motion.derivative(times, 0), atol=1e-10)
    assert np.allclose(samples[:, 3:], motion.derivative(times, 1), atol=1e-8)


@settings(max_examples=60, deadline=None)
@given(
    st.floats(0.0, 1.0),
    st.floats(-3.0, 3.0),
    st.sampled_from([0.0, 1.0]),
    st.floats(0.0, 2.0),
    st.floats(-0.5, 3.0),
)
def test_one_moment_of_a_path_clock_is_one_of_its_times(
    first: float, slope: float, last: float, duration: float, instant: float
) -> None:
    change = RateChange(0, 0.3, first, slope, last, duration if duration > 0.02 else 0.0)
    moment, time = path_moment(change, instant), path_time(change, np.array([instant]))
    assert moment.position == pytest.approx(float(time.position[0]), abs=1e-12)
    assert moment.rate == pytest.approx(float(time.rate[0]), abs=1e-12)
    assert moment.change == pytest.approx(float(time.change[0]), abs=1e-9)


def test_a_chunk_of_a_motion_that_is_over_stands_at_its_end() -> None:
    motion = uniform(28, 0.5)
    reference = Reference(motion, 0)
    for anchor_ns in (480_000_000, 500_000_000, 900_000_000):
        samples = reference.samples(anchor_ns)
        over = anchor_ns * 1e-9 + GRID > motion.duration
        assert over.any()
        assert np.array_equal(samples[over, :3], np.tile(motion.end, (over.sum(), 1)))
        assert not samples[over, 3:].any()
