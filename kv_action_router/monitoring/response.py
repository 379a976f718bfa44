"""The response table: which condition over which signals asks for what.

It is read from ``config/conditions.yaml``; that file's head explains its fields.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any

import yaml

from kv_action_router.errors import ConditionError
from kv_action_router.tasks.conditions import Condition, near_names, parse_condition
from kv_action_router.tasks.signals import SIGNALS

CODE_MINIMUM, CODE_MAXIMUM = 500, 599  # error codes of the monitoring stage
_CONDITION_FIELDS = ("name", "all", "signal", "op", "limit", "clear_limit", "held_ms", "max_gap_ms")
_RULE_FIELDS = (*_CONDITION_FIELDS, "response", "severity", "error_code", "message")


class Response(Enum):
    """What a condition asks for."""

    NONE = "none"  # report only
    COMPLETE = "complete"  # the stage under way has reached its goal
    INVALIDATE = "invalidate"  # the behavior in force is thrown out of the cache
    DERATE = "derate"  # the injector goes over to the drive's derated limits
    INTERRUPT = "interrupt"  # stop on the path, to be resumed
    BRAKE = "brake"  # latched stop
    FAIL_SAFE = "fail_safe"  # latched stop; the injector goes to its fail-safe value


STOPPING = frozenset({Response.BRAKE, Response.FAIL_SAFE})


class Severity(IntEnum):
    """How bad it is (``FailureEvent.SEVERITY_*``)."""

    INFO = 0
    WARNING = 1
    ERROR = 2
    FATAL = 3


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table.

    Attributes:
        condition: over named signals; its name is the rule's.
        responses: all of them are carried out, in this order.
        severity: of its events.
        error_code: of its events, from 500 to 599.
        message: for people; ``{source}``, ``{value}``, ``{limit}`` and ``{unit}`` are filled in.
    """

    condition: Condition
    responses: tuple[Response, ...]
    severity: Severity
    error_code: int
    message: str

    @property
    def name(self) -> str:
        """Name of the condition."""
        return self.condition.name

    @property
    def stops(self) -> bool:
        """Whether the robot is brought to rest and stays there."""
        return not STOPPING.isdisjoint(self.responses)

    def describe(self, source: str, value: float) -> str:
        """Return the message with the numbers filled in."""
        signal = self.condition.signal
        return self.message.format(
            source=source or "the robot",
            value=f"{value:.4g}",
            limit=f"{self.condition.limit:.4g}",
            unit=SIGNALS[signal].unit if signal in SIGNALS else "",
        )


def load_rules(path: str | Path) -> tuple[Rule, ...]:
    """Read a response table.

    Raises:
        ConditionError: the file can't be read, or a row is not valid; names file, row, field,
            limit and value.
    """
    try:
        data = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConditionError(f"{path}: must be a readable YAML file: {error}") from error
    return parse_rules(data, where=Path(path).name)


def parse_rules(
    data: Any, *, known_signals: Collection[str] = tuple(SIGNALS), where: str = "conditions"
) -> tuple[Rule, ...]:
    """Read ``{conditions: [row, ...]}`` as it comes from YAML.

    Raises:
        ConditionError: as :func:`load_rules`.
    """
    if not isinstance(data, Mapping) or not isinstance(data.get("conditions"), list):
        raise ConditionError(f"{where}: conditions must be a list of rows, got {data!r}")
    rules = tuple(_parse_rule(row, known_signals, where) for row in data["conditions"])
    names: set[str] = set()
    for rule in rules:
        if rule.name in names:
            raise ConditionError(f"{where}: name must be unique, got {rule.name!r} twice")
        names.add(rule.name)
    return rules


def _parse_rule(row: Any, known_signals: Collection[str], where: str) -> Rule:
    if not isinstance(row, Mapping):
        raise ConditionError(f"{where}: row must be a mapping, got {row!r}")
    part = {key: row[key] for key in _CONDITION_FIELDS if key in row}
    condition = parse_condition(part, known_signals=known_signals, where=where)
    place = f"{where}: condition {condition.name!r}"
    for key in row:
        if key not in _RULE_FIELDS:
            hint = near_names(key, _RULE_FIELDS)
            raise ConditionError(f"{place}: field must be a known name, got {key!r}{hint}")
    severity = row.get("severity")
    names = [item.name.lower() for item in Severity]
    if severity not in names:
        raise ConditionError(
            f"{place}: severity must be one of {', '.join(names)}, got {severity!r}"
        )
    code = row.get("error_code")
    if type(code) is not int or not CODE_MINIMUM <= code <= CODE_MAXIMUM:
        raise ConditionError(
            f"{place}: error_code must be from {CODE_MINIMUM} to {CODE_MAXIMUM}, got {code!r}"
        )
    return Rule(
        condition,
        _responses(row.get("response"), place),
        Severity(names.index(severity)),
        code,
        _message(row.get("message"), place),
    )


def _responses(value: Any, place: str) -> tuple[Response, ...]:
    names = [item.value for item in Response]
    asked = value if isinstance(value, list) else [value]
    for item in asked:
        if item not in names:
            raise ConditionError(
                f"{place}: response must be of {', '.join(names)}, got {item!r}"
                f"{near_names(item, names)}"
            )
    if not asked or len(set(asked)) != len(asked) or ("none" in asked and len(asked) > 1):
        raise ConditionError(
            f"{place}: response must be distinct names, none only alone, got {value!r}"
        )
    return tuple(Response(item) for item in asked)


def _message(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value:
        raise ConditionError(f"{place}: message must be a text that is not empty, got {value!r}")
    try:
        value.format(source="", value="", limit="", unit="")
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise ConditionError(
            f"{place}: message must use only {{source}}, {{value}}, {{limit}} and {{unit}},"
            f" got {value!r}"
        ) from error
    return value


def default_table() -> Path:
    """Return the response table that comes with the package.

    Raises:
        ConditionError: it is neither in the source tree nor in an installation.
    """
    here = Path(__file__).resolve()
    candidates = [here.parents[2] / "config" / "conditions.yaml"]
    candidates += [
        folder / "share/kv_action_router/config/conditions.yaml" for folder in here.parents
    ]
    for path in candidates:
        if path.is_file():
            return path
    raise ConditionError(f"conditions_file must be given: there is no {candidates[0]}")
