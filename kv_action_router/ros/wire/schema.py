"""What a message type consists of, flattened (CDR, XCDR1; OMG DDS-XTypes 1.3, 7.4)."""

from __future__ import annotations

import functools
import importlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rosidl_parser.definition import AbstractString, Array, BasicType, NamespacedType

ENCAPSULATION = 4  # bytes before the payload; alignment counts from behind them
_FORMATS = {
    "boolean": "?",
    "octet": "B",
    "char": "B",
    "uint8": "B",
    "int8": "b",
    "uint16": "H",
    "int16": "h",
    "uint32": "I",
    "int32": "i",
    "uint64": "Q",
    "int64": "q",
    "float": "f",
    "double": "d",
}


@dataclass(frozen=True, slots=True)
class Leaf:
    """One field that holds no message: numbers, texts, or a sequence of messages.

    Attributes:
        name: dotted.
        code: struct's format character of its numbers; empty for texts and messages.
        count: elements of a fixed array; -1 = a sequence, None = a single number or text.
        element: message class of a sequence of messages; else None.
    """

    name: str
    code: str
    count: int | None
    element: type | None = None

    @property
    def width(self) -> int:
        """Bytes of one number, to which it is aligned too."""
        return struct.calcsize("=" + self.code)


def leaves(kind: type, prefix: str = "") -> Iterator[Leaf]:
    """Yield all leaves of a message type in the order in which they are serialized."""
    for name, field in _fields(kind):
        if isinstance(field, NamespacedType):
            yield from leaves(_load(field), f"{prefix}{name}.")
        else:
            yield _leaf(prefix + name, field)


def _leaf(name: str, field: Any) -> Leaf:
    if isinstance(field, BasicType):
        return Leaf(name, _FORMATS[field.typename], None)
    if isinstance(field, AbstractString):
        return Leaf(name, "", None)
    count = int(field.size) if isinstance(field, Array) else -1
    element = field.value_type
    if isinstance(element, BasicType):
        return Leaf(name, _FORMATS[element.typename], count)
    if isinstance(element, AbstractString):
        return Leaf(name, "", count)
    return Leaf(name, "", count, _load(element))


@functools.cache
def _fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(zip(kind.get_fields_and_field_types(), kind.SLOT_TYPES, strict=True))


def _load(kind: NamespacedType) -> type:
    loaded: type = getattr(importlib.import_module(".".join(kind.namespaces)), kind.name)
    return loaded


def aligned(offset: int, size: int) -> int:
    """Return the next multiple of ``size`` behind the encapsulation."""
    return offset + (ENCAPSULATION - offset) % size
