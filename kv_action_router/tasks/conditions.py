"""Physical conditions: predicates over named signals that must hold for a time.

A condition says when a stage has reached its goal, or when something is wrong. It is measured,
never timed: holding runs on the receipt time of samples, so silence doesn't hold anything.

    condition = parse_condition(
        {"name": "contact", "signal": "wrench_force", "op": ">", "limit": 5.0, "held_ms": 20}
    )
    held = HeldCondition(condition)
    held.update({"wrench_force": 6.1}, receipt_ns)  # -> True once it has held for 20 ms
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from kv_action_router.errors import ConditionError
from kv_action_router.tasks.predicates import JUMP, OPERATORS, Condition, Predicate
from kv_action_router.tasks.signals import SIGNALS

__all__ = [
    "OPERATORS",
    "Condition",
    "HeldCondition",
    "Predicate",
    "SignalReader",
    "condition_to_data",
    "near_names",
    "parse_condition",
    "parse_conditions",
]

_NAN = math.nan


class SignalReader(Protocol):
    """Present values by name; NaN or None = not measured. Any mapping of floats is one."""

    def get(self, name: str, /) -> float | None:
        """Return the signal's value."""


class HeldCondition:
    """Follows one condition from sample to sample.

    Invariant: ``held_ns`` is the time from the first to the newest sample of an unbroken run, in
    which every predicate held on every sample, no sample was missing, none was further than the
    condition's gap from the one before, and receipt times never went back.
    """

    __slots__ = (
        "_before",
        "_begin_ns",
        "_gap_ns",
        "_last_ns",
        "_needed_ns",
        "_true",
        "condition",
        "held_ns",
        "satisfied",
        "value",
    )

    def __init__(self, condition: Condition) -> None:
        self.condition = condition
        self._needed_ns = int(condition.held_ms * 1e6)
        self._gap_ns = condition.gap_ns
        self._true = [False] * len(condition.predicates)
        self._before = [_NAN] * len(condition.predicates)  # for jumps
        self.reset()

    @property
    def holding(self) -> bool:
        """Whether every predicate held on the newest sample."""
        return self._begin_ns >= 0

    def reset(self) -> None:
        """Forget everything that was seen."""
        self.held_ns = 0
        self.satisfied = False
        self.value = _NAN
        self._begin_ns = -1
        self._last_ns = -1
        for index in range(len(self._true)):
            self._true[index] = False
            self._before[index] = _NAN

    def update(self, signals: SignalReader, receipt_ns: int) -> bool:
        """Take the newest samples; say whether the condition is satisfied now.

        Call it as often as is convenient: with an unchanged ``receipt_ns`` nothing holds longer.

        Args:
            signals: values by name; a missing one and NaN don't hold.
            receipt_ns: monotonic receipt time of the samples [ns] (of the oldest, where the
                predicates' signals come from several streams).
        """
        if self._last_ns >= 0 and not 0 <= receipt_ns - self._last_ns <= self._gap_ns:
            self.reset()  # time went back, or samples are missing
        fresh = receipt_ns != self._last_ns
        self._last_ns = receipt_ns
        every = True
        for index, predicate in enumerate(self.condition.predicates):
            sample = signals.get(predicate.signal)
            value = _NAN if sample is None else float(sample)
            if index == 0:
                self.value = value
            if not math.isfinite(value):
                holds = False
                self._before[index] = _NAN
            elif predicate.operator == JUMP:
                holds = fresh and abs(value - self._before[index]) > predicate.limit
                if fresh:
                    self._before[index] = value
            else:
                holds = predicate.holds(value, was_true=self._true[index])
            self._true[index] = holds
            every = every and holds
        if not every:
            self._begin_ns = -1
            self.held_ns = 0
            self.satisfied = False
            return False
        if self._begin_ns < 0:
            self._begin_ns = receipt_ns
        self.held_ns = receipt_ns - self._begin_ns
        self.satisfied = self.held_ns >= self._needed_ns
        return self.satisfied


# --- reading ---------------------------------------------------------------------------------

_PREDICATE_FIELDS = ("signal", "op", "limit", "clear_limit")
_CONDITION_FIELDS = ("name", "all", "held_ms", "max_gap_ms")


def parse_condition(
    data: Any, *, known_signals: Collection[str] = tuple(SIGNALS), where: str = ""
) -> Condition:
    """Read ``{name, all: [{signal, op, limit, clear_limit?}], held_ms?, max_gap_ms?}``.

    A condition of one predicate may leave ``all`` out: ``{name, signal, op, limit, held_ms?}``.

    Args:
        data: as it comes from YAML.
        known_signals: names that ``signal`` may take.
        where: prefix of error messages, e.g. ``touch_target: stage 'touch': end``.

    Raises:
        ConditionError: naming the condition, the field, its limit and the value received.
    """
    place = f"{where}: condition" if where else "condition"
    if not isinstance(data, Mapping):
        raise ConditionError(f"{place}: must be a mapping, got {data!r}")
    name = data.get("name")
    if not isinstance(name, str) or not name:
        raise ConditionError(f"{place}: name must be a text that is not empty, got {name!r}")
    place = f"{place} {name!r}"
    if "all" in data:
        _refuse_unknown(data, _CONDITION_FIELDS, place)
        parts = data["all"]
        if not isinstance(parts, list) or not parts:
            raise ConditionError(f"{place}: all must be a list of predicates, got {parts!r}")
    else:
        _refuse_unknown(data, (*_CONDITION_FIELDS, *_PREDICATE_FIELDS), place)
        parts = [{key: data[key] for key in _PREDICATE_FIELDS if key in data}]
    predicates = tuple(_parse_predicate(part, known_signals, place) for part in parts)
    held_ms = _number(data.get("held_ms", 0.0), "held_ms", place)
    max_gap_ms = _number(data.get("max_gap_ms", 0.0), "max_gap_ms", place)
    try:
        return Condition(name, predicates, held_ms, max_gap_ms)
    except ConditionError as error:
        raise ConditionError(f"{where}: {error}" if where else str(error)) from None


def parse_conditions(
    data: Any, *, known_signals: Collection[str] = tuple(SIGNALS), where: str = ""
) -> tuple[Condition, ...]:
    """Read a list of conditions with distinct names; None is an empty list.

    Raises:
        ConditionError: as :func:`parse_condition`, and when a name is used twice.
    """
    if data is None:
        return ()
    if not isinstance(data, list):
        raise ConditionError(f"{where}: must be a list of conditions, got {data!r}".lstrip(": "))
    conditions = tuple(
        parse_condition(item, known_signals=known_signals, where=where) for item in data
    )
    seen: set[str] = set()
    for condition in conditions:
        if condition.name in seen:
            raise ConditionError(
                f"{where}: name must be unique, got {condition.name!r} twice".lstrip(": ")
            )
        seen.add(condition.name)
    return conditions


def condition_to_data(condition: Condition) -> dict[str, Any]:
    """Inverse of :func:`parse_condition`."""
    parts = []
    for predicate in condition.predicates:
        part: dict[str, Any] = {
            "signal": predicate.signal,
            "op": predicate.operator,
            "limit": predicate.limit,
        }
        if predicate.clear_limit is not None:
            part["clear_limit"] = predicate.clear_limit
        parts.append(part)
    return {
        "name": condition.name,
        "all": parts,
        "held_ms": condition.held_ms,
        "max_gap_ms": condition.max_gap_ms,
    }


def near_names(name: object, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for near names, else the list of valid ones."""
    names = sorted(known)
    near = difflib.get_close_matches(str(name), names, n=3, cutoff=0.6)
    if near:
        return "; did you mean " + " or ".join(repr(item) for item in near) + "?"
    return "; known are " + ", ".join(names)


def _parse_predicate(data: Any, known_signals: Collection[str], place: str) -> Predicate:
    if not isinstance(data, Mapping):
        raise ConditionError(f"{place}: predicate must be a mapping, got {data!r}")
    _refuse_unknown(data, _PREDICATE_FIELDS, place)
    for field in ("signal", "op", "limit"):
        if field not in data:
            raise ConditionError(f"{place}: {field} must be given, got {dict(data)!r}")
    signal, operator = data["signal"], data["op"]
    if signal not in known_signals:
        hint = near_names(signal, known_signals)
        raise ConditionError(f"{place}: signal must be a known name, got {signal!r}{hint}")
    clear = data.get("clear_limit")
    try:
        return Predicate(
            signal,
            str(operator),
            _number(data["limit"], "limit", place),
            None if clear is None else _number(clear, "clear_limit", place),
        )
    except ConditionError as error:
        message = str(error)
        raise ConditionError(
            message if message.startswith(place) else f"{place}: {message}"
        ) from None


def _refuse_unknown(data: Mapping[Any, Any], fields: tuple[str, ...], place: str) -> None:
    for key in data:
        if key not in fields:
            hint = near_names(key, fields)
            raise ConditionError(f"{place}: field must be a known name, got {key!r}{hint}")


def _number(value: Any, field: str, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConditionError(f"{place}: {field} must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:  # an integer beyond the largest float
        number = math.inf
    if not math.isfinite(number):
        raise ConditionError(f"{place}: {field} must be finite, got {value!r}")
    return number
