"""Tables of the uniform clamped B-spline basis on [0, 1], made once a size.

Every motion that is planned or re-anchored here has uniform knots, so fitting samples, joining end
states and checking limits are each one small matrix product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.interpolate import BSpline

from kv_action_router.contracts import FloatArray

DEGREE = 5
ENDS = 3  # coefficients at each end that fix position, velocity and acceleration there
FEWEST = 2 * ENDS
CHECKS_A_SPAN = 6  # instants a span at which limits are checked
SAMPLES_A_SPAN = 4  # instants a span that a fit looks at


@dataclass(frozen=True, slots=True)
class Basis:
    """Matrices of one basis with n coefficients; s is the share of the duration, 0 to 1.

    Attributes:
        knots: (n + DEGREE + 1,) on [0, 1].
        breaks: ends of the spans on [0, 1], one more than spans.
        pieces: the spans' polynomials in the share of the span, terms 0 to 5 a span, one below the
            other (6 spans, n).
        checks: instants at which limits are checked (m,).
        checked: values and derivatives 1 to 3 with respect to s at ``checks``, one beside the other
            (n, 4 m): rows of coefficients (d, n) times it are rows of samples.
        samples: instants at which a fit wants its samples (l,).
        start: coefficients 0 to 2 from position, velocity and acceleration at s = 0 (3, 3).
        end: coefficients n-3 to n-1 from the same at s = 1 (3, 3).
        at_start: position, velocity and acceleration at s = 0 from coefficients 0 to 2 (3, 3).
        at_end: the same at s = 1 from coefficients n-3 to n-1 (3, 3).
        quintic: coefficients of the polynomial of degree 5 that has given position, velocity and
            acceleration at s = 0 and s = 1 (n, 6). The polynomial is in the spline's space, so
            adding it is exact.
        fading: for each number m of leading coefficients, from ENDS on: coefficients (m, 3) of the
            deviation of least jerk that has unit position, velocity or acceleration, and 0 of the
            other two, at s = 0, and is over after m spans.
    """

    knots: FloatArray
    breaks: FloatArray
    pieces: FloatArray
    checks: FloatArray
    checked: FloatArray
    samples: FloatArray
    start: FloatArray
    end: FloatArray
    at_start: FloatArray
    at_end: FloatArray
    quintic: FloatArray
    fading: tuple[FloatArray, ...]
    _design: FloatArray
    _inner: FloatArray

    @property
    def size(self) -> int:
        """Number of coefficients n."""
        return len(self.knots) - DEGREE - 1

    def fit(self, values: FloatArray, first: FloatArray, last: FloatArray) -> FloatArray:
        """Return least-squares coefficients (n, d) with exact end states.

        Args:
            values: at ``samples`` (l, d).
            first: position, velocity, acceleration with respect to s at s = 0 (3, d).
            last: the same at s = 1 (3, d).
        """
        coefficients = np.empty((self.size, values.shape[1]))
        coefficients[:ENDS] = self.start @ first
        coefficients[-ENDS:] = self.end @ last
        if self.size > FEWEST:
            known = self._design[:, :ENDS] @ coefficients[:ENDS]
            known += self._design[:, -ENDS:] @ coefficients[-ENDS:]
            coefficients[ENDS:-ENDS] = self._inner @ (values - known)
        return coefficients


@lru_cache(maxsize=16)
def uniform_knots(size: int) -> FloatArray:
    """Return clamped uniform knots on [0, 1] for ``size`` coefficients; not to be written to."""
    inner = np.linspace(0.0, 1.0, size - DEGREE + 1)
    knots = np.concatenate((np.zeros(DEGREE), inner, np.ones(DEGREE)))
    knots.flags.writeable = False
    return knots


def taylor(spline: BSpline, breaks: FloatArray) -> FloatArray:
    """Return a spline's polynomials in the share of each span (spans, DEGREE + 1, n).

    Args:
        spline: of this degree.
        breaks: its knots without repetition (spans + 1,).
    """
    lengths = np.diff(breaks)[:, None]
    terms = [
        spline(breaks[:-1], order) * (lengths**order / math.factorial(order))
        for order in range(DEGREE + 1)
    ]
    return np.stack(terms, axis=1)


@lru_cache(maxsize=16)
def basis(size: int) -> Basis:
    """Return the tables for ``size`` coefficients (at least 6)."""
    if size < FEWEST:
        raise ValueError(f"size must be at least {FEWEST}, got {size}")
    knots = uniform_knots(size)
    unit = BSpline(knots, np.eye(size), DEGREE)
    spans = size - DEGREE
    checks = np.linspace(0.0, 1.0, spans * CHECKS_A_SPAN + 1)
    samples = np.linspace(0.0, 1.0, spans * SAMPLES_A_SPAN + 1)
    ends = np.array([0.0, 1.0])
    boundary = [unit(ends, nu) for nu in range(ENDS)]  # each (2, n)
    at_start = np.array([row[0, :ENDS] for row in boundary])
    at_end = np.array([row[1, -ENDS:] for row in boundary])
    design = unit(samples)
    jerk = unit(checks, 3)
    start = np.linalg.inv(at_start)
    inner = np.linalg.pinv(design[:, ENDS:-ENDS]) if size > FEWEST else np.empty((0, len(samples)))
    return Basis(
        knots=knots,
        breaks=knots[DEGREE:-DEGREE],
        pieces=taylor(unit, knots[DEGREE:-DEGREE]).reshape(-1, size),
        checks=checks,
        checked=np.ascontiguousarray(
            np.concatenate((unit(checks), unit(checks, 1), unit(checks, 2), jerk)).T
        ),
        samples=samples,
        start=start,
        end=np.linalg.inv(at_end),
        at_start=at_start,
        at_end=at_end,
        quintic=_quintic_coefficients(knots, size),
        fading=_fading_coefficients(jerk, start, size),
        _design=design,
        _inner=inner,
    )


def _fading_coefficients(jerk: FloatArray, start: FloatArray, size: int) -> tuple[FloatArray, ...]:
    """Tables (m, 3) for m = ENDS to size - ENDS leading coefficients; see ``Basis.fading``."""
    fixed = start
    cost = jerk.T @ jerk
    tables = [fixed]
    for count in range(ENDS + 1, size - ENDS + 1):
        free = slice(ENDS, count)
        rest = np.linalg.solve(cost[free, free], -cost[free, :ENDS] @ fixed)
        tables.append(np.concatenate((fixed, rest)))
    return tuple(tables)


def _quintic_coefficients(knots: FloatArray, size: int) -> FloatArray:
    """Coefficients (n, 6) of the six Hermite polynomials of degree 5, by their Greville values."""
    conditions = np.zeros((6, 6))  # rows: value and two derivatives at 0, then at 1
    for power in range(6):
        conditions[0, power] = power == 0
        conditions[1, power] = power == 1
        conditions[2, power] = 2.0 * (power == 2)
        conditions[3, power] = 1.0
        conditions[4, power] = power
        conditions[5, power] = power * (power - 1)
    polynomials = np.linalg.inv(conditions)  # columns: monomial coefficients of each Hermite one
    greville = np.array([knots[i + 1 : i + 1 + DEGREE].mean() for i in range(size)])
    values = np.vander(greville, 6, increasing=True) @ polynomials
    return np.linalg.solve(BSpline(knots, np.eye(size), DEGREE)(greville), values)
