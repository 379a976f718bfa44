"""Robust linear regression with a prior: few rows that do not belong change next to nothing.

Iteratively reweighted least squares: first with Huber's weights, which find the bulk from any
start, then with Tukey's biweight, which gives rows far off no say at all (Huber & Ronchetti,
*Robust Statistics*, 2009, ch. 7). The scale is the median absolute deviation. What the rows do not
tell is left to the prior, so that the fit never runs away along a direction without excitation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import InputError

_HUBER = 1.345  # 95 % efficient for normal residuals
_TUKEY = 4.685  # likewise
_DEVIATION = 1.4826  # of normal residuals over their median absolute deviation
_ITERATIONS = 12  # of each kind
_TINY = 1e-12
_BESIDE = 3.0  # deviations from which on a row counts as one that does not belong
CORRELATED = 10  # rows in a row tell about as much as a single one: motions are smooth


@dataclass(frozen=True, slots=True)
class LinearFit:
    """Coefficients of ``values = regressors @ coefficients``.

    Attributes:
        coefficients: (p,).
        deviation: standard error of each (p,), counting ``CORRELATED`` rows as one.
        spread: robust standard deviation of the residuals, in the values' unit.
        inliers: share of rows within three of that.
        rows: that were fitted.
    """

    coefficients: FloatArray
    deviation: FloatArray
    spread: float
    inliers: float
    rows: int


def robust_fit(
    regressors: FloatArray, values: FloatArray, prior: FloatArray, prior_deviation: FloatArray
) -> LinearFit:
    """Fit coefficients.

    Args:
        regressors: (k, p).
        values: (k,).
        prior: coefficients that are likely beforehand (p,).
        prior_deviation: standard deviation of each (p,), above 0.

    Raises:
        InputError: wrong sizes, nothing to fit, or a number that is not finite.
    """
    k, p = regressors.shape
    if k == 0 or values.shape != (k,) or prior.shape != (p,) or prior_deviation.shape != (p,):
        raise InputError("rows", f"at least one, of {p} regressors and a value", (k, values.shape))
    if not all(np.isfinite(part).all() for part in (regressors, values, prior)):
        raise InputError("rows", "finite", "NaN or infinity")
    if not (np.isfinite(prior_deviation).all() and (prior_deviation > 0.0).all()):
        raise InputError("prior_deviation", "finite and above 0", prior_deviation.tolist())
    precision = np.diag(prior_deviation**-2.0)
    coefficients = np.array(prior, float)
    weights = np.ones(k)
    spread = _spread(values - regressors @ coefficients)
    for step in range(2 * _ITERATIONS):
        information = (regressors * weights[:, None]).T @ regressors / spread**2 + precision
        told = (regressors * weights[:, None]).T @ values / spread**2 + precision @ prior
        coefficients = np.linalg.solve(information, told)
        residuals = values - regressors @ coefficients
        spread = _spread(residuals)
        ratio = np.abs(residuals) / spread
        if step < _ITERATIONS:
            weights = np.minimum(1.0, _HUBER / np.maximum(ratio, _TINY))
        else:
            weights = np.square(np.maximum(0.0, 1.0 - np.square(ratio / _TUKEY)))
    effective = spread**2 * CORRELATED
    information = (regressors * weights[:, None]).T @ regressors / effective + precision
    deviation = np.sqrt(np.diag(np.linalg.inv(information)))
    inliers = float(np.mean(ratio <= _BESIDE))
    return LinearFit(coefficients, deviation, spread, inliers, k)


def _spread(residuals: FloatArray) -> float:
    median = float(np.median(residuals))
    return max(_TINY, _DEVIATION * float(np.median(np.abs(residuals - median))))
