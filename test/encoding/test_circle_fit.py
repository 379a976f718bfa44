"""A circle of known radius is found from an arc, in spite of outliers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.encoding.circle_fit import fit_circle

RADIUS, NOISE = 0.02, 0.0005


def arc(center, first, last, count=80, seed=0):
    angles = np.linspace(first, last, count)
    points = center + RADIUS * np.column_stack((np.cos(angles), np.sin(angles)))
    return points + NOISE * np.random.default_rng(seed).standard_normal(points.shape)


@given(st.floats(-0.01, 0.01), st.floats(-0.01, 0.01), st.floats(0.0, 6.0), st.integers(0, 9))
def test_half_circle_is_enough(dx, dy, turn, seed):
    center = np.array([0.4, -0.1])
    fit = fit_circle(
        arc(center, turn, turn + math.pi, seed=seed), center + np.array([dx, dy]), RADIUS, NOISE
    )
    error = fit.center - center
    assert np.linalg.norm(error) < 1e-3
    assert error @ np.linalg.solve(fit.covariance, error) < 25.0


def test_covariance_grows_as_the_arc_shrinks():
    center = np.zeros(2)
    spreads = [
        np.linalg.eigvalsh(fit_circle(arc(center, 0.0, last), center, RADIUS, NOISE).covariance)[-1]
        for last in (2 * math.pi, math.pi, math.pi / 2, math.pi / 4)
    ]
    assert spreads == sorted(spreads)
    assert spreads[-1] > 10 * spreads[0]


def test_outliers_do_not_pull():
    center = np.array([0.3, 0.2])
    points = arc(center, 0.0, 2 * math.pi)
    stray = np.column_stack((np.linspace(0.30, 0.33, 30), np.full(30, 0.205)))
    fit = fit_circle(np.concatenate((points, stray)), center + 0.004, RADIUS, NOISE)
    assert np.linalg.norm(fit.center - center) < 3e-4
    assert fit.inliers <= 90


def test_common_shift_of_the_edge_cancels():
    center = np.zeros(2)
    points = arc(center, 0.0, 1.2 * math.pi)
    inside = points * (1.0 - 0.0004 / RADIUS)
    fit = fit_circle(inside, center, RADIUS, NOISE)
    assert np.linalg.norm(fit.center) < 4e-4


@pytest.mark.parametrize("count", [0, 5])
def test_too_few_points(count):
    assert fit_circle(np.zeros((count, 2)), np.zeros(2), RADIUS, NOISE) is None


def test_circle_of_another_radius_has_no_inliers():
    points = 0.4 * arc(np.zeros(2), 0.0, 2 * math.pi)
    fit = fit_circle(points, np.zeros(2), RADIUS, NOISE)
    assert fit is None or fit.inliers < 0.5 * len(points)
