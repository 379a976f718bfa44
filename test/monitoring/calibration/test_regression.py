"""The robust fit: exact where it can be, unmoved by what does not belong, bounded by its prior."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kv_action_router.errors import InputError
from kv_action_router.monitoring.calibration.regression import robust_fit

ROWS = 400
TRUTH = np.array([2.0, -1.0])
LOOSE = np.full(2, 10.0)


def data(seed: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    regressors = generator.standard_normal((ROWS, 2))
    return regressors, regressors @ TRUTH + noise * generator.standard_normal(ROWS)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.floats(1e-3, 0.3))
def test_the_truth_is_within_what_the_fit_says_of_its_own_error(seed, noise):
    fit = robust_fit(*data(seed, noise), np.zeros(2), LOOSE)
    assert (np.abs(fit.coefficients - TRUTH) <= 3.0 * fit.deviation).all()
    assert fit.spread == pytest.approx(noise, rel=0.25)
    assert fit.inliers > 0.97


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.floats(1.0, 1e4), st.floats(0.0, 0.25))
def test_rows_that_do_not_belong_change_next_to_nothing(seed, size, share):
    regressors, values = data(seed, 0.05)
    wrong = np.arange(ROWS) < share * ROWS
    values[wrong] += size
    fit = robust_fit(regressors, values, np.zeros(2), LOOSE)
    assert np.abs(fit.coefficients - TRUTH).max() < 0.03
    assert fit.inliers <= 1.0 - wrong.mean() + 1e-9


def test_what_the_rows_do_not_tell_is_left_to_the_prior():
    regressors, values = data(1, 0.01)
    regressors[:, 1] = 0.0  # the second coefficient has no excitation
    fit = robust_fit(regressors, values - values, np.array([1.0, 7.0]), np.array([1.0, 0.5]))
    assert fit.coefficients[1] == pytest.approx(7.0)
    assert fit.deviation[1] == pytest.approx(0.5)


def test_exact_rows_are_fitted_exactly():
    regressors, values = data(3, 0.0)
    fit = robust_fit(regressors, values, np.zeros(2), LOOSE)
    np.testing.assert_allclose(fit.coefficients, TRUTH, atol=1e-9)


@pytest.mark.parametrize(
    ("regressors", "values", "deviation"),
    [
        (np.zeros((0, 2)), np.zeros(0), LOOSE),
        (np.ones((3, 2)), np.ones(2), LOOSE),
        (np.full((3, 2), np.nan), np.ones(3), LOOSE),
        (np.ones((3, 2)), np.array([1.0, np.inf, 1.0]), LOOSE),
        (np.ones((3, 2)), np.ones(3), np.zeros(2)),
    ],
)
def test_what_cannot_be_fitted_is_refused(regressors, values, deviation):
    with pytest.raises(InputError):
        robust_fit(regressors, values, np.zeros(2), deviation)
