"""Summaries of measured values, and exact bounds beside success rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import beta, binom

from kv_action_router.contracts import FloatArray

_CURVE = (*np.linspace(0.0, 0.99, 100), 0.995, 0.998, 0.999, 0.9995, 0.9999, 1.0)


def summary(values: Sequence[float]) -> dict[str, float | int | None]:
    """Return n, mean, p50, p99 and max of what is finite; without values all but n are None."""
    data = _finite(values)
    if not data.size:
        return {"n": 0, "mean": None, "p50": None, "p99": None, "max": None}
    p50, p99 = np.percentile(data, (50, 99))
    return {
        "n": int(data.size),
        "mean": float(data.mean()),
        "p50": float(p50),
        "p99": float(p99),
        "max": float(data.max()),
    }


def _finite(values: Sequence[float]) -> FloatArray:
    data = np.asarray(values, dtype=float)
    return data[np.isfinite(data)]


def quantiles(values: Sequence[float], **shares: float) -> dict[str, float | None]:
    """Return the named quantiles, e.g. ``p95=0.95``; None without values."""
    data = _finite(values)
    return {
        name: float(np.quantile(data, share)) if data.size else None
        for name, share in shares.items()
    }


def lower_confidence_bound(successes: int, trials: int, confidence: float = 0.95) -> float:
    """Return the exact one-sided lower bound of a success rate.

    Clopper and Pearson, Biometrika 26 (1934): the rate at which as many successes or more have the
    probability ``1 - confidence``, by the quantile of a beta distribution. Exact for trials that do
    not depend on each other.
    """
    if trials == 0 or successes == 0:
        return 0.0
    return float(beta.ppf(1.0 - confidence, successes, trials - successes + 1))


def upper_confidence_bound(events: int, trials: int, confidence: float = 0.95) -> float:
    """Return the exact one-sided upper bound of the rate of an event, as the lower one."""
    if events >= trials:
        return 1.0
    return float(beta.ppf(confidence, events + 1, trials - events))


def share_of(events: int, trials: int) -> dict[str, Any]:
    """Return an event's share of the trials, and its exact one-sided bounds at 95 % each.

    Every rate of every report comes from here. Without trials share and bounds are None.
    """
    known = trials > 0
    return {
        "events": events,
        "trials": trials,
        "share": events / trials if known else None,
        "lower_bound_95": lower_confidence_bound(events, trials) if known else None,
        "upper_bound_95": upper_confidence_bound(events, trials) if known else None,
    }


def describe_share(rate: dict[str, Any]) -> str:
    """Return a rate of :func:`share_of` for people, with both bounds."""
    if rate["share"] is None:
        return "-"
    return (
        f"{rate['events']} of {rate['trials']} ({rate['share']:.4g}; with 95 % confidence "
        f"at least {rate['lower_bound_95']:.4g}, and at most {rate['upper_bound_95']:.4g})"
    )


def quantile_interval(
    values: Sequence[float], share: float, confidence: float = 0.95
) -> tuple[float, float] | None:
    """Return the distribution-free interval of a quantile, from order statistics.

    Below and above its true value lie binomially many of the values (David and Nagaraja, Order
    Statistics, 7.1). None where there are too few values for an upper end.
    """
    data = np.sort(np.asarray(values, dtype=float))
    if not data.size:
        return None
    rest = (1.0 - confidence) / 2.0
    low = int(binom.ppf(rest, data.size, share))
    high = int(binom.ppf(1.0 - rest, data.size, share))
    if high >= data.size:
        return None
    return float(data[max(0, low - 1)]), float(data[high])


def distribution(values: Sequence[float]) -> dict[str, Any]:
    """Return n, mean, median and tails, and the quantiles that a plot is drawn from.

    Without values all but n are None.
    """
    data = np.asarray(values, dtype=float)
    figures: dict[str, Any] = {"n": int(data.size), "mean": None, "curve": []}
    figures |= quantiles(values, p50=0.5, p99=0.99, p999=0.999, max=1.0)
    figures["p999_interval"] = quantile_interval(values, 0.999)
    if data.size:
        figures["mean"] = float(data.mean())
        figures["curve"] = [
            [float(share), float(value)]
            for share, value in zip(_CURVE, np.quantile(data, _CURVE), strict=True)
        ]
    return figures
