"""Lateness histogram against NumPy's quantiles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.injection.lateness import BIN_US, BINS, Histogram, LatenessMeter

SECOND = 1_000_000_000


@given(st.lists(st.floats(0.0, 9_999.0), min_size=1, max_size=300))
def test_quantiles_are_right_to_a_bin(samples: list[float]) -> None:
    histogram = Histogram()
    for sample in samples:
        histogram.record(sample)
    summary = histogram.summary()
    assert summary.count == sum(histogram.counts) == len(samples)
    assert summary.max_us == max(samples)
    for share, value in ((0.5, summary.p50_us), (0.99, summary.p99_us), (0.999, summary.p999_us)):
        exact = float(np.quantile(samples, share, method="inverted_cdf"))
        assert exact <= value + 1e-9
        assert value <= exact + BIN_US


def test_what_is_later_than_all_bins_is_counted_in_the_last() -> None:
    histogram = Histogram()
    histogram.record(1e6)
    histogram.record(-3.0)  # woken early by rounding
    assert histogram.counts[BINS - 1] == 1
    assert histogram.counts[0] == 1
    assert histogram.summary().max_us == 1e6
    histogram.clear()
    assert math.isnan(histogram.summary().p50_us)
    assert sum(histogram.counts) == 0


def test_meter_tells_the_last_full_second() -> None:
    meter = LatenessMeter(0)
    assert meter.last.count == 0
    for tick in range(1, 501):
        meter.record(tick * SECOND // 500, 20_000)
    assert meter.rate_hz == pytest.approx(500.0)
    assert meter.last.count == 500
    assert meter.last.p50_us == 20.0
    for tick in range(501, 1001):
        meter.record(tick * SECOND // 500, 90_000)
    assert meter.last.p50_us == 90.0
    assert meter.total.summary().count == 1000
