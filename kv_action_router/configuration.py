"""Parameters declared once: a frozen dataclass whose fields carry unit, bounds and description.

A stage's ``config.py`` declares them, ``Configuration.__post_init__`` refuses bad values, and
``ros/parameters.py`` declares the same fields as ROS parameters. Nothing here imports ROS.

    @dataclass(frozen=True)
    class MatchConfig(Configuration):
        threshold: float = parameter(0.85, "similarity a hit must exceed", minimum=-1.0,
        maximum=1.0)
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kv_action_router.errors import ConfigError

Scalar = bool | int | float | str


@dataclass(frozen=True)
class ParameterInfo:
    """What a parameter means and which values it takes."""

    description: str
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    read_only: bool = True


def parameter(
    default: Scalar | Sequence[Scalar],
    description: str,
    *,
    unit: str = "",
    minimum: float | None = None,
    maximum: float | None = None,
    choices: Sequence[str] = (),
    read_only: bool = True,
) -> Any:
    """Return a dataclass field that carries its parameter's description.

    Args:
        default: also fixes the type: bool, int, float, str, or a sequence of one of them.
        description: a clause in lower case, without the unit.
        unit: SI unit, or empty.
        minimum: smallest allowed value (of each element), inclusive.
        maximum: largest allowed value (of each element), inclusive.
        choices: allowed strings; empty = any.
        read_only: True = takes effect at configure only.
    """
    value = tuple(default) if isinstance(default, (list, tuple)) else default
    info = ParameterInfo(description, unit, minimum, maximum, tuple(choices), read_only)
    return dataclasses.field(default=value, metadata={"parameter": info})


@dataclass(frozen=True)
class Configuration:
    """Base of all configuration dataclasses.

    Invariant: every field that was made by :func:`parameter` has its default's type and lies
    inside its bounds. Integers and NumPy scalars are accepted where a float is wanted.

    Raises:
        ConfigError: naming the field, its limit and the value received.
    """

    def __post_init__(self) -> None:
        for entry in dataclasses.fields(self):
            info = entry.metadata.get("parameter")
            if info is None:
                continue
            value = getattr(self, entry.name)
            if isinstance(entry.default, tuple):
                kind = type(entry.default[0]) if entry.default else None
                if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
                    raise ConfigError(entry.name, "a list", value)
                checked: Any = tuple(_checked(entry.name, item, kind, info) for item in value)
            else:
                checked = _checked(entry.name, value, type(entry.default), info)
            object.__setattr__(self, entry.name, checked)

    @classmethod
    def parameters(cls) -> dict[str, tuple[Any, ParameterInfo]]:
        """Return name -> (default, info) of every parameter, in order of declaration."""
        return {
            entry.name: (entry.default, entry.metadata["parameter"])
            for entry in dataclasses.fields(cls)
            if "parameter" in entry.metadata
        }


def _checked(name: str, value: Any, kind: type | None, info: ParameterInfo) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if kind is not None and (
        not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)
    ):
        raise ConfigError(name, f"of type {kind.__name__}", value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(name, "finite", value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if info.minimum is not None and value < info.minimum:
            raise ConfigError(name, f"at least {info.minimum} {info.unit}".rstrip(), value)
        if info.maximum is not None and value > info.maximum:
            raise ConfigError(name, f"at most {info.maximum} {info.unit}".rstrip(), value)
    if info.choices and value not in info.choices:
        raise ConfigError(name, f"one of {', '.join(info.choices)}", value)
    return value
