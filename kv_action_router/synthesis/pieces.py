"""A spline as polynomials, one a span of its knots: what evaluating it costs least in.

One row of powers and one small product give a state; a chunk's samples, positions and velocities
side by side, are one product a span that it crosses.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from kv_action_router.contracts import FloatArray

_TERMS = 6  # of a polynomial of degree 5
_FACTORS: FloatArray = np.array(  # of the terms of derivatives 0 to 5 (6, 6)
    [[np.prod(np.arange(k - r + 1, k + 1)) if k >= r else 0.0 for k in range(6)] for r in range(6)]
)


class Pieces:
    """Polynomials in the share x of each span, 0 to 1. Times are [s] and inside the spline.

    Args:
        breaks: beginnings and end of the k spans, rising [s] (k + 1,).
        polynomials: values' coefficients of x^0 to x^5, a span (k, 6, n).
    """

    __slots__ = ("_breaks", "_ends", "_inner", "_inverse", "_inverses", "_polynomials", "_size")

    def __init__(self, breaks: FloatArray, polynomials: FloatArray) -> None:
        self._size = size = polynomials.shape[2]
        self._inner = breaks[1:-1]
        self._inverses = 1.0 / np.diff(breaks)
        self._breaks: list[float] = breaks.tolist()
        self._ends = self._breaks[1:-1]
        self._inverse: list[float] = self._inverses.tolist()
        self._polynomials = np.zeros((len(polynomials), _TERMS, 2 * size))  # values, then rates
        self._polynomials[:, :, :size] = polynomials
        np.multiply(
            polynomials[:, 1:],
            _FACTORS[1, 1:, None] * self._inverses[:, None, None],
            out=self._polynomials[:, :-1, size:],
        )

    def value(self, time: float) -> FloatArray:
        """Return the value (n,) at one time."""
        span = bisect_right(self._ends, time)
        x = (time - self._breaks[span]) * self._inverse[span]
        x2 = x * x
        x4 = x2 * x2
        powers = np.array((1.0, x, x2, x2 * x, x4, x4 * x))
        value: FloatArray = powers @ self._polynomials[span, :, : self._size]
        return value

    def state(self, time: float) -> FloatArray:
        """Return the value, its rate and its second derivative (3, n) at one time."""
        span = bisect_right(self._ends, time)
        w = self._inverse[span]
        x = (time - self._breaks[span]) * w
        x2 = x * x
        x3 = x2 * x
        x4 = x2 * x2
        w2 = 2.0 * w * w
        powers = np.array(
            (
                (1.0, x, x2, x3, x4, x4 * x),
                (0.0, w, 2.0 * w * x, 3.0 * w * x2, 4.0 * w * x3, 5.0 * w * x4),
                (0.0, 0.0, w2, 3.0 * w2 * x, 6.0 * w2 * x2, 10.0 * w2 * x3),
            )
        )
        state: FloatArray = powers @ self._polynomials[span, :, : self._size]
        return state

    def sample(self, times: FloatArray, out: FloatArray) -> None:
        """Write values and rates side by side (m, 2 n) for rising times (m,), m at least 1."""
        count = len(times)
        span = bisect_right(self._ends, times[0])
        last = bisect_right(self._ends, times[-1])
        begin = 0
        while begin < count:
            end = count
            if span < last:
                end = int(times.searchsorted(self._ends[span]))
            if end > begin:
                powers = np.empty((_TERMS, end - begin))
                powers[0] = 1.0
                np.subtract(times[begin:end], self._breaks[span], out=powers[1])
                powers[1] *= self._inverse[span]
                np.multiply(powers[1], powers[1], out=powers[2])
                np.multiply(powers[1:3], powers[2], out=powers[3:5])
                np.multiply(powers[4], powers[1], out=powers[5])
                np.dot(powers.T, self._polynomials[span], out=out[begin:end])
            begin, span = end, span + 1

    def derivative(self, times: FloatArray, order: int) -> FloatArray:
        """Return a derivative, 0 to 5, at any times (m,): (m, n)."""
        spans = self._inner.searchsorted(times, side="right")
        inverses = self._inverses[spans]
        powers = np.zeros((len(times), _TERMS))
        powers[:, order] = inverses**order
        x = (times - np.asarray(self._breaks)[spans]) * inverses
        for term in range(order + 1, _TERMS):
            np.multiply(powers[:, term - 1], x, out=powers[:, term])
        powers *= _FACTORS[order]
        pieces = self._polynomials[spans, :, : self._size]
        values: FloatArray = np.matmul(powers[:, None, :], pieces)[:, 0]
        return values
