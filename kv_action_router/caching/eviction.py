"""Which entry goes when the cache is full."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from kv_action_router.caching.layers.task import TaskLayer


class EvictionPolicy(Protocol):
    """Chooses a victim."""

    name: str

    def choose(self, layer: TaskLayer, slots: npt.NDArray[np.intp], now: int) -> int:
        """Return one of ``slots`` (n,), n >= 1; ``now`` is the decision count."""


class LeastRecentlyUsed:
    """The entry whose last use lies furthest back."""

    name = "least_recently_used"

    def choose(self, layer: TaskLayer, slots: npt.NDArray[np.intp], now: int) -> int:
        """Return the slot with the oldest use; the lowest one among equals."""
        return int(slots[np.argmin(layer.last_used[slots])])


class LeastUseful:
    """The entry with the lowest success x recency; one without its confidence bit goes first.

    Success is the rule-of-succession estimate (s + 1) / (s + f + 2), recency 1 / (1 + decisions
    since the last use): both count, and neither is ever zero.
    """

    name = "least_useful"

    def choose(self, layer: TaskLayer, slots: npt.NDArray[np.intp], now: int) -> int:
        """Return the slot with the lowest score; the lowest one among equals."""
        successes = layer.successes[slots].astype(np.float64)
        failures = layer.failures[slots]
        recency = 1.0 / (1.0 + np.maximum(0, now - layer.last_used[slots]))
        score = (successes + 1.0) / (successes + failures + 2.0) * recency
        score[~layer.confident[slots]] *= 1e-6
        return int(slots[np.argmin(score)])


def make_policy(name: str) -> EvictionPolicy:
    """Return the policy of that name."""
    policies: dict[str, type[EvictionPolicy]] = {
        LeastUseful.name: LeastUseful,
        LeastRecentlyUsed.name: LeastRecentlyUsed,
    }
    return policies[name]()
