"""Hit rate: a cache that answers less often than it used to."""

from __future__ import annotations

import math

from kv_action_router.monitoring.samples import RatesSample
from kv_action_router.monitoring.signals import SignalTable

RECENT = 30  # decisions whose rate is compared ...
LONG_TERM = 200  # ... with the rate of about so many before them
LEAST = 60  # decisions before which nothing is compared: a cache that fills has no long term


class HitRateDetector:
    """Writes ``hit_rate_decay`` of the layers task and behavior.

    The value is 1 - recent / long-term: 0.15 means that 15 % fewer decisions are hits than used to
    be. Both rates are exponential means over decisions, not over time, so that a robot that rests
    forgets nothing. The first ``LEAST`` decisions only fill them.

    Attributes:
        rates: recent and long-term hit rate of each layer.
    """

    def __init__(self) -> None:
        self._counted: dict[str, tuple[int, int]] = {}  # layer -> decisions, hits so far
        self._seen: dict[str, int] = {}
        self.rates: dict[str, tuple[float, float]] = {}

    def reset(self) -> None:
        """Forget all rates."""
        self._counted.clear()
        self._seen.clear()
        self.rates.clear()

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Nothing here changes with time alone."""

    def on_rates(self, sample: RatesSample, table: SignalTable) -> None:
        """Take the cache's counters; counters that fall are another activation of the cache."""
        for layer, counts in sample.counts.items():
            self._take(layer, counts)
            if self._seen.get(layer, 0) >= LEAST:
                recent, long_term = self.rates[layer]
                decay = 1.0 - recent / long_term if long_term > 0.0 else 0.0
                table.put("hit_rate_decay", decay, sample.receipt_ns, layer)

    def _take(self, layer: str, counts: tuple[int, int]) -> None:
        before = self._counted.get(layer)
        self._counted[layer] = counts
        if before is None:
            return
        decisions, hits = counts[0] - before[0], counts[1] - before[1]
        if not (0 <= hits <= decisions and decisions > 0):
            return
        seen = self._seen.get(layer, 0)
        share = hits / decisions
        recent, long_term = self.rates.get(layer, (share, share))
        self._seen[layer] = seen + decisions
        self.rates[layer] = (
            _toward(recent, share, decisions, seen, RECENT),
            _toward(long_term, share, decisions, seen, LONG_TERM),
        )


def _toward(mean: float, share: float, decisions: int, before: int, length: int) -> float:
    """Return the mean after so many decisions of the same share.

    Exponential over ``length`` decisions; the plain mean of all while there were fewer ``before``.
    """
    weight = max(-math.expm1(-decisions / length), decisions / (before + decisions))
    return mean + (share - mean) * weight
