"""Reading the response table, ``config/conditions.yaml``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import yaml

from kv_action_router.errors import ConditionError, TaskDefinitionError
from kv_action_router.tasks.conditions import Condition, near_names, parse_condition
from kv_action_router.tasks.definition import load_task
from kv_action_router.tasks.rules import Layer, Response, Rule, Severity
from kv_action_router.tasks.signals import DRIVE_STATE, SIGNALS

CODE_MINIMUM, CODE_MAXIMUM = 500, 599  # error codes of the monitoring stage
_CONDITION_FIELDS = ("name", "all", "signal", "op", "limit", "clear_limit", "held_ms", "max_gap_ms")
RULE_FIELDS = (
    *_CONDITION_FIELDS,
    "layer",
    "response",
    "speed_scale",
    "resumes",
    "inserts",
    "subtask",
    "severity",
    "error_code",
    "message",
)
SLOWEST, FASTEST = 0.05, 0.95  # bounds of ``speed_scale``
_LAYERS_OF = {
    Response.COMPLETE: (Layer.TASK,),
    Response.INVALIDATE: tuple(Layer),
    Response.DERATE: (Layer.EXECUTION,),
}  # responses that act on a layer, and on which


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
        if key not in RULE_FIELDS:
            hint = near_names(key, RULE_FIELDS)
            raise ConditionError(f"{place}: field must be a known name, got {key!r}{hint}")
    responses = _responses(row.get("response"), place)
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
        responses,
        Severity(names.index(severity)),
        code,
        _message(row.get("message"), place),
        _layer(row.get("layer"), responses, condition, place),
        _speed_scale(row.get("speed_scale"), responses, place),
        _resumes(row.get("resumes", False), responses, place),
        _subtask(row.get("subtask", "*"), responses, place),
        _inserts(row, responses, place),
    )


def _layer(
    value: Any, responses: tuple[Response, ...], condition: Condition, place: str
) -> Layer | None:
    allowed = set(Layer)
    acting = [item for item in responses if item in _LAYERS_OF]
    for item in acting:
        allowed &= set(_LAYERS_OF[item])
    names = [item.value for item in Layer if item in allowed]
    asked = ", ".join(item.value for item in acting)
    if not acting:
        if value is not None:
            raise ConditionError(
                f"{place}: layer must be left out where no response acts on one, got {value!r}"
            )
        return None
    if value not in names:
        raise ConditionError(
            f"{place}: layer must be {' or '.join(names) or 'split into two rows'} with response"
            f" {asked}, got {value!r}"
        )
    layer = Layer(value)
    if layer is Layer.EXECUTION:
        for signal in condition.signals:
            if signal in SIGNALS and SIGNALS[signal].source != DRIVE_STATE:
                known = ", ".join(n for n, s in SIGNALS.items() if s.source == DRIVE_STATE)
                raise ConditionError(
                    f"{place}: signal must be one that the injector measures ({known}) with layer"
                    f" execution, got {signal!r}"
                )
    return layer


def _inserts(row: Mapping[Any, Any], responses: tuple[Response, ...], place: str) -> str:
    value = row.get("inserts", "")
    if not isinstance(value, str) or ("inserts" in row and not value):
        raise ConditionError(f"{place}: inserts must be the name of a task, got {value!r}")
    if value and Response.INTERRUPT not in responses:
        raise ConditionError(
            f"{place}: inserts must be left out without response interrupt, got {value!r}"
        )
    if value and row.get("resumes", False):
        raise ConditionError(
            f"{place}: resumes must be left out with inserts: the sequence ends by its own"
            f" conditions, got {value!r}"
        )
    if value:
        try:
            load_task(value)
        except TaskDefinitionError as error:
            raise ConditionError(f"{place}: inserts: {error}") from error
    return value


def _speed_scale(value: Any, responses: tuple[Response, ...], place: str) -> float:
    slows = Response.SLOW in responses
    if not slows:
        if value is not None:
            raise ConditionError(
                f"{place}: speed_scale must be left out without response slow, got {value!r}"
            )
        return 1.0
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (is_number and SLOWEST <= value <= FASTEST):
        raise ConditionError(
            f"{place}: speed_scale must be from {SLOWEST:g} to {FASTEST:g} with response slow, got"
            f" {value!r}"
        )
    return float(value)


def _resumes(value: Any, responses: tuple[Response, ...], place: str) -> bool:
    if not isinstance(value, bool):
        raise ConditionError(f"{place}: resumes must be true or false, got {value!r}")
    if value and Response.INTERRUPT not in responses:
        raise ConditionError(
            f"{place}: resumes must be left out without response interrupt, got {value!r}"
        )
    return value


def _subtask(value: Any, responses: tuple[Response, ...], place: str) -> str:
    if not isinstance(value, str) or not value:
        raise ConditionError(f"{place}: subtask must be a pattern that is not empty, got {value!r}")
    if value != "*" and Response.COMPLETE not in responses:
        raise ConditionError(
            f"{place}: subtask must be left out without response complete, got {value!r}"
        )
    return value


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
