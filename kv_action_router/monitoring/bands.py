"""Bands in which samples change nothing: no condition could begin to hold there."""

from __future__ import annotations

import math
from collections.abc import Iterable

from kv_action_router.tasks.predicates import JUMP, Condition

Band = tuple[float, float]
_EVERYTHING: Band = (-math.inf, math.inf)


def quiet_band(condition: Condition) -> Band | None:
    """Return the open interval of the signal in which a condition does not begin to hold.

    None = there is none: it looks at several signals, or at differences, where every sample counts.
    """
    if len(condition.predicates) > 1 or condition.operator == JUMP:
        return None
    if condition.operator in (">", ">="):
        return -math.inf, condition.limit
    return condition.limit, math.inf


def quiet_bands(names: Iterable[str], conditions: Iterable[Condition]) -> dict[str, Band]:
    """Return the band of each signal in which none of the conditions begins to hold.

    Signals of which every sample counts are left out.
    """
    bands = dict.fromkeys(names, _EVERYTHING)
    for condition in conditions:
        band = quiet_band(condition)
        for name in condition.signals:
            if band is None:
                bands.pop(name, None)
            elif name in bands:
                low, high = bands[name]
                bands[name] = max(low, band[0]), min(high, band[1])
    return bands
