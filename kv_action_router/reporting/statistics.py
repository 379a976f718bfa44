"""Summaries of measured values, and exact bounds beside success rates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import beta


def summary(values: Sequence[float]) -> dict[str, float | int | None]:
    """Return n, mean, p50, p99 and max; without values all but n are None."""
    if not len(values):
        return {"n": 0, "mean": None, "p50": None, "p99": None, "max": None}
    data = np.asarray(values, dtype=float)
    p50, p99 = np.percentile(data, (50, 99))
    return {
        "n": int(data.size),
        "mean": float(data.mean()),
        "p50": float(p50),
        "p99": float(p99),
        "max": float(data.max()),
    }


def quantiles(values: Sequence[float], **shares: float) -> dict[str, float | None]:
    """Return the named quantiles, e.g. ``p95=0.95``; None without values."""
    data = np.asarray([value for value in values if np.isfinite(value)], dtype=float)
    return {
        name: float(np.quantile(data, share)) if data.size else None
        for name, share in shares.items()
    }


def lower_confidence_bound(successes: int, trials: int, confidence: float = 0.95) -> float:
    """Return the exact (Clopper-Pearson) one-sided lower bound of a success rate."""
    if trials == 0 or successes == 0:
        return 0.0
    return float(beta.ppf(1.0 - confidence, successes, trials - successes + 1))
