"""Predicates over named signals, and the conditions that are made of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kv_action_router.errors import ConditionError
from kv_action_router.tasks.signals import SIGNALS

JUMP = "jump"
OPERATORS: tuple[str, ...] = (">", ">=", "<", "<=", JUMP)
MAXIMUM_HELD_MS = 600_000.0
DEFAULT_MAX_GAP_MS = 50.0  # for signals that the table doesn't know


@dataclass(frozen=True, slots=True)
class Predicate:
    """One comparison of a signal with a limit.

    Attributes:
        signal: name of the signal.
        operator: one of ``OPERATORS``; ``jump`` compares the magnitude of the difference of two
            consecutive samples with ``limit`` (strictly greater).
        limit: in the signal's unit.
        clear_limit: hysteresis: once true, the predicate stays true until the signal is back on
            this side of ``clear_limit``; None = ``limit``.

    Raises:
        ConditionError: unknown operator, limit not finite, or ``clear_limit`` on the wrong side.
    """

    signal: str
    operator: str
    limit: float
    clear_limit: float | None = None

    def __post_init__(self) -> None:
        if not self.signal:
            raise ConditionError("signal must be a name, got ''")
        if self.operator not in OPERATORS:
            raise ConditionError(f"op must be one of {' '.join(OPERATORS)}, got {self.operator!r}")
        if not math.isfinite(self.limit):
            raise ConditionError(f"limit must be finite, got {self.limit!r}")
        if self.operator == JUMP and self.limit < 0.0:
            raise ConditionError(f"limit must be at least 0 for a jump, got {self.limit!r}")
        clear = self.clear_limit
        if clear is None:
            return
        if self.operator == JUMP:
            raise ConditionError(f"clear_limit must be left out for a jump, got {clear!r}")
        if not math.isfinite(clear):
            raise ConditionError(f"clear_limit must be finite, got {clear!r}")
        upward = self.operator in (">", ">=")
        if (upward and clear > self.limit) or (not upward and clear < self.limit):
            side = "at most" if upward else "at least"
            raise ConditionError(f"clear_limit must be {side} {self.limit!r}, got {clear!r}")

    def holds(self, value: float, *, was_true: bool = False) -> bool:
        """Compare one sample; NaN never holds. Not for ``jump``, which needs two samples.

        Args:
            value: of the signal.
            was_true: the predicate was true on the sample before (selects ``clear_limit``).
        """
        limit = self.clear_limit if was_true and self.clear_limit is not None else self.limit
        match self.operator:
            case ">":
                return value > limit
            case ">=":
                return value >= limit
            case "<":
                return value < limit
            case "<=":
                return value <= limit
        raise ConditionError("a jump must be judged on two samples, got one")


@dataclass(frozen=True, slots=True)
class Condition:
    """All predicates at once, for a time.

    Attributes:
        name: for people and events.
        predicates: all of them must hold; the first one is the one that is reported.
        held_ms: how long they must hold [ms]; 0 = one sample is enough.
        max_gap_ms: samples further apart than this break the holding [ms]; 0 = as the slowest of
            its signals allows (``SIGNALS``).

    Raises:
        ConditionError: no predicate, a time out of range, or a ``jump`` that should hold.
    """

    name: str
    predicates: tuple[Predicate, ...]
    held_ms: float = 0.0
    max_gap_ms: float = 0.0

    def __post_init__(self) -> None:
        if not self.name:
            raise ConditionError("condition: name must not be empty, got ''")
        if not self.predicates:
            raise ConditionError(f"condition {self.name!r}: all must hold a predicate, got none")
        for field, value in (("held_ms", self.held_ms), ("max_gap_ms", self.max_gap_ms)):
            if not 0.0 <= value <= MAXIMUM_HELD_MS:  # also refuses NaN
                raise ConditionError(
                    f"condition {self.name!r}: {field} must be from 0 to {MAXIMUM_HELD_MS:g} ms,"
                    f" got {value!r}"
                )
        if self.held_ms > 0.0 and any(p.operator == JUMP for p in self.predicates):
            raise ConditionError(
                f"condition {self.name!r}: held_ms must be 0 with a jump, got {self.held_ms!r}"
            )

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals it needs, without repetition."""
        return tuple(dict.fromkeys(predicate.signal for predicate in self.predicates))

    @property
    def signal(self) -> str:
        """Signal of the reported predicate."""
        return self.predicates[0].signal

    @property
    def operator(self) -> str:
        """Operator of the reported predicate."""
        return self.predicates[0].operator

    @property
    def limit(self) -> float:
        """Limit of the reported predicate."""
        return self.predicates[0].limit

    @property
    def gap_ns(self) -> int:
        """Largest distance of two samples that still counts as holding [ns]."""
        if self.max_gap_ms > 0.0:
            return int(self.max_gap_ms * 1e6)
        gaps = (
            SIGNALS[name].stale_after_ms if name in SIGNALS else DEFAULT_MAX_GAP_MS
            for name in self.signals
        )
        return int(max(gaps) * 1e6)
