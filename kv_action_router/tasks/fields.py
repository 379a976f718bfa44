"""Reading single fields of a task definition; every message names the place, field and value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kv_action_router.errors import TaskDefinitionError
from kv_action_router.tasks.conditions import near_names


def refuse_unknown(data: Mapping[Any, Any], fields: tuple[str, ...], place: str) -> None:
    """Refuse fields that are not known.

    Raises:
        TaskDefinitionError: it is not that.
    """
    for key in data:
        if key not in fields:
            hint = near_names(key, fields)
            raise TaskDefinitionError(f"{place}: field must be a known name, got {key!r}{hint}")


def text(data: Mapping[Any, Any], name: str, place: str, default: str | None = None) -> str:
    """Return a text; without a default it must not be empty.

    Raises:
        TaskDefinitionError: it is not that.
    """
    value = data.get(name, default)
    if not isinstance(value, str) or (not value and default is None):
        raise TaskDefinitionError(f"{place}: {name} must be a text, got {value!r}")
    return value


def flag(data: Mapping[Any, Any], name: str, place: str, default: bool) -> bool:
    """Return true or false.

    Raises:
        TaskDefinitionError: it is not that.
    """
    value = data.get(name, default)
    if not isinstance(value, bool):
        raise TaskDefinitionError(f"{place}: {name} must be true or false, got {value!r}")
    return value


def number(
    data: Mapping[Any, Any],
    name: str,
    place: str,
    low: float,
    high: float,
    default: float | None = None,
) -> float:
    """Return a finite number inside bounds.

    Raises:
        TaskDefinitionError: it is not that.
    """
    value = data.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise TaskDefinitionError(f"{place}: {name} must be a finite number, got {value!r}")
    if not low <= value <= high:
        raise TaskDefinitionError(
            f"{place}: {name} must be from {low:g} to {high:g}, got {value!r}"
        )
    return float(value)


def vector(value: Any, size: int | None, place: str, name: str) -> tuple[float, ...]:
    """Return finite numbers; ``size`` = how many, None = at least one.

    Raises:
        TaskDefinitionError: it is not that.
    """
    wanted = f"{size} finite numbers" if size else "a name or finite numbers"
    if not isinstance(value, list) or not value or (size is not None and len(value) != size):
        raise TaskDefinitionError(f"{place}: {name} must be {wanted}, got {value!r}")
    for item in value:
        if isinstance(item, bool) or not isinstance(item, (int, float)) or not math.isfinite(item):
            raise TaskDefinitionError(f"{place}: {name} must be {wanted}, got {value!r}")
    return tuple(float(item) for item in value)
