"""The few things of a match that say whether the rest of it is needed."""

from __future__ import annotations

from typing import NamedTuple

from kv_action_router.contracts import Trigger


class MatchGlance(NamedTuple):
    """A look at a match.

    Attributes:
        decision_id: that it answers, or that is in force; 0 = none.
        trigger_monotonic_ns: CLOCK_MONOTONIC at the receipt of the trigger sample [ns].
        published_ns: CLOCK_MONOTONIC when it was published [ns]; 0 = not told.
        trigger: which sample caused it.
        hit: it carries a behavior.
        is_decision: it answers a decision.
    """

    decision_id: int
    trigger_monotonic_ns: int
    published_ns: int
    trigger: Trigger
    hit: bool
    is_decision: bool
