"""Rows of the response table that hit the execution layer, judged in the tick itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kv_action_router.contracts import DriveSample, FloatArray
from kv_action_router.tasks.conditions import HeldCondition
from kv_action_router.tasks.predicates import JUMP
from kv_action_router.tasks.rules import Rule

_NAN = math.nan


@dataclass(frozen=True, slots=True)
class Finding:
    """A row that began to hold for a drive, or no longer does.

    Attributes:
        rule: the row.
        drive: it is about.
        holds: it began to hold.
        value: of the row's signal.
    """

    rule: Rule
    drive: str
    holds: bool
    value: float


class _Row:
    """One row, with what it remembers of each drive."""

    __slots__ = ("active", "alone", "held", "rule", "signals")

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.signals = rule.condition.signals
        predicates = rule.condition.predicates
        single = len(predicates) == 1 and predicates[0].operator != JUMP
        self.alone = predicates[0] if single else None
        self.held: dict[str, HeldCondition] = {}
        self.active: set[str] = set()  # drives

    def over(self, values: dict[str, float]) -> bool:
        """Say whether values of a drive show that the row no longer holds."""
        for predicate in self.rule.condition.predicates:
            value = values[predicate.signal]
            if predicate.operator == JUMP:
                return True  # of an instant
            if value == value and not predicate.holds(value, was_true=True):
                return True
        return False


class ExecutionConditions:
    """Judges drive feedback. The thread that ticks only.

    Invariant: between two findings of one row and drive that say that it holds there is one that
    says that it does not; inside a row's hysteresis, and by what is not measured, nothing is found
    that it no longer holds.
    """

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        """Judge rows of the execution layer (``tasks.rules.execution_rules``)."""
        self._rows = [_Row(rule) for rule in rules]
        self._values: dict[str, float] = {}  # of the drive that is being judged
        self._holding = False

    def reset(self) -> None:
        """Forget what was seen."""
        for row in self._rows:
            row.held.clear()
            row.active.clear()
        self._holding = False

    def quiet(self, sample: DriveSample) -> bool:
        """Say whether a sample can change nothing: no row holds, and none could begin to."""
        if self._holding:
            return False
        for row in self._rows:
            if row.alone is None:
                if all(len(_measured(sample, name)) for name in row.signals):
                    return False
            elif any(map(row.alone.holds, _magnitudes(sample, row.signals[0]))):
                return False
        return True

    def update(self, sample: DriveSample) -> list[Finding]:
        """Judge one sample; return what has changed, in the order of rows and drives."""
        found: list[Finding] = []
        holding = False
        values = self._values
        for row in self._rows:
            arrays = [_magnitudes(sample, name) for name in row.signals]
            for index, drive in enumerate(sample.names):
                for name, array in zip(row.signals, arrays, strict=True):
                    values[name] = array[index] if index < len(array) else _NAN
                held = row.held.get(drive)
                if held is None:
                    held = row.held[drive] = HeldCondition(row.rule.condition)
                satisfied = held.update(values, sample.receipt_ns)
                if drive in row.active:
                    if not satisfied and row.over(values):
                        row.active.remove(drive)
                        found.append(Finding(row.rule, drive, False, held.value))
                elif satisfied:
                    row.active.add(drive)
                    found.append(Finding(row.rule, drive, True, held.value))
                holding = holding or held.holding or drive in row.active
        self._holding = holding
        return found


def _measured(sample: DriveSample, signal: str) -> FloatArray:
    """Return what a sample says of a signal; empty = it is not measured."""
    if signal == "drive_temperature":
        return sample.temperature
    if signal == "wheel_speed":
        return sample.wheel_speed
    if signal == "drive_load" and len(sample.rated_current) != len(sample.current):
        return sample.rated_current[:0]
    return sample.current


def _magnitudes(sample: DriveSample, signal: str) -> list[float]:
    """Return a signal's value of each drive, as the monitor's detectors write it."""
    values: list[float] = _measured(sample, signal).tolist()
    if signal == "drive_current":
        return [abs(value) for value in values]
    if signal == "drive_load" and values:
        rated: list[float] = sample.rated_current.tolist()
        return [
            abs(value) / most if most > 0.0 else _NAN
            for value, most in zip(values, rated, strict=True)
        ]
    return values
