"""Where the fields of a serialized message stand (CDR, XCDR1; OMG DDS-XTypes 1.3, 7.4)."""

from __future__ import annotations

import functools
import importlib
import struct
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any

from rosidl_parser.definition import (
    AbstractString,
    Array,
    BasicType,
    NamespacedType,
)

from kv_action_router.errors import InputError

ENCAPSULATION = 4  # bytes before the payload; alignment counts from behind them
_MOST_ELEMENTS = 1_000_000
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
class Place:
    """One field: a number, or an array of ``count`` numbers, from ``offset`` on; or texts.

    Attributes:
        offset: of the first number; of texts, 0.
        code: struct's format character; empty for texts.
        count: numbers of an array; None = a single number, or a text.
        size_offset: of the count of a sequence; 0 = there is none.
        texts: a text, or the texts of an array; None for numbers.
    """

    offset: int
    code: str
    count: int | None
    size_offset: int = 0
    texts: str | tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """A message's places, by dotted name, and what another message must share to have the same.

    Attributes:
        size: of the message [bytes].
        order: struct's character of its byte order.
        places: dotted field name -> place; in sequences of messages: ``dim[0].label``.
        counts: dotted name of a sequence of messages -> number of its elements.
        checks: (offset, bytes) of the encapsulation, all texts, and the counts of all sequences.
    """

    size: int
    order: str
    places: dict[str, Place]
    counts: dict[str, int]
    checks: tuple[tuple[int, bytes], ...]

    def fits(self, data: bytes) -> bool:
        """Return whether a message has this layout."""
        if len(data) != self.size:
            return False
        starts = data.startswith
        for offset, piece in self.checks:  # noqa: SIM110  # a generator costs twice as much
            if not starts(piece, offset):
                return False
        return True

    def spans(self) -> Iterator[tuple[int, int]]:
        """Yield begin and end of all that is no padding, in no order."""
        for begin, piece in self.checks:
            yield begin, begin + len(piece)
        for place in self.places.values():
            if place.texts is None:
                count = 1 if place.count is None else place.count
                yield place.offset, place.offset + count * struct.calcsize("=" + place.code)


def learn(kind: type, data: bytes, through: Container[str] | None = ()) -> Layout | None:
    """Return the layout of a message; None when it holds messages in a row that are not wanted.

    Args:
        kind: message class.
        data: serialized message.
        through: dotted names of the sequences of messages that may hold some; None = all.

    Raises:
        InputError: it is not complete.
    """
    walk = _Walk(data, through)
    try:
        for name, field in _fields(kind):
            walk.field(name, field)
    except (struct.error, IndexError, UnicodeDecodeError):
        text = f"a complete {kind.__name__}"
        raise InputError("message", text, f"{len(data)} bytes") from None
    except _SequenceOfMessages:
        return None
    return Layout(len(data), walk.order, walk.places, walk.counts, _joined(data, walk.pieces))


class _SequenceOfMessages(Exception):  # noqa: N818  # a way out of the walk
    pass


class _Walk:
    def __init__(self, data: bytes, through: Container[str] | None) -> None:
        self.data = data
        self.through = through
        self.order = "<" if len(data) > 1 and data[1] & 1 else ">"
        self.offset = ENCAPSULATION
        self.places: dict[str, Place] = {}
        self.counts: dict[str, int] = {}
        self.pieces: list[tuple[int, int]] = [(0, ENCAPSULATION)]
        self._count = struct.Struct(self.order + "I")

    def field(self, name: str, kind: Any) -> None:
        if isinstance(kind, BasicType):
            self.places[name] = self._numbers(kind, None)
        elif isinstance(kind, AbstractString):
            self.places[name] = Place(0, "", None, texts=self._text())
        elif isinstance(kind, NamespacedType):
            for inner, field in _fields(_load(kind)):
                self.field(f"{name}.{inner}", field)
        else:
            self._array(name, kind)

    def _array(self, name: str, kind: Any) -> None:
        size_offset = 0
        if isinstance(kind, Array):
            count = int(kind.size)
        else:
            size_offset = self._align(4)
            count = self._size()
        if isinstance(kind.value_type, BasicType):
            self.places[name] = self._numbers(kind.value_type, count, size_offset)
        elif isinstance(kind.value_type, AbstractString):
            texts = tuple(self._text() for _ in range(count))
            self.places[name] = Place(0, "", count, size_offset, texts)
        else:
            if count and self.through is not None and name not in self.through:
                raise _SequenceOfMessages
            self.counts[name] = count
            for index in range(count):
                self.field(f"{name}[{index}]", kind.value_type)

    def _numbers(self, kind: BasicType, count: int | None, size_offset: int = 0) -> Place:
        code = _FORMATS[kind.typename]
        width = struct.calcsize("=" + code)
        if count == 0:
            return Place(self.offset, code, 0, size_offset)
        offset = self._align(width)
        self.offset = offset + width * (1 if count is None else count)
        if self.offset > len(self.data):
            raise IndexError
        return Place(offset, code, count, size_offset)

    def _text(self) -> str:
        start = self._align(4)
        size = self._size()
        end = start + 4 + size
        if end > len(self.data):
            raise IndexError
        self.offset = end
        self.pieces.append((start, end))
        return self.data[start + 4 : end].rstrip(b"\0").decode()

    def _size(self) -> int:
        start = self._align(4)
        (size,) = self._count.unpack_from(self.data, start)
        if size > _MOST_ELEMENTS:
            raise IndexError
        self.offset = start + 4
        self.pieces.append((start, start + 4))
        return int(size)

    def _align(self, size: int) -> int:
        self.offset += (ENCAPSULATION - self.offset) % size
        return self.offset


def _joined(data: bytes, pieces: list[tuple[int, int]]) -> tuple[tuple[int, bytes], ...]:
    """Return the pieces' bytes, those that touch or overlap as one."""
    joined: list[tuple[int, int]] = []
    for start, end in pieces:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return tuple((start, data[start:end]) for start, end in joined)


def leaves(kind: type) -> Iterator[str]:
    """Yield the dotted names of a message's fields; those of sequences of messages are left out."""
    for name, field in _leaves(kind):
        if not isinstance(_element(field), NamespacedType):
            yield name


def labels(kind: type) -> Iterator[tuple[str, str]]:
    """Yield the sequences of messages, and the texts of their elements, both by dotted name."""
    for name, field in _leaves(kind):
        element = _element(field)
        if isinstance(element, NamespacedType):
            for inner, text in _leaves(_load(element)):
                if isinstance(text, AbstractString):
                    yield name, inner


def _leaves(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield dotted name and type of a message's fields, sequences of messages too."""
    for name, field in _fields(kind):
        if isinstance(field, NamespacedType):
            for inner, leaf in _leaves(_load(field)):
                yield f"{name}.{inner}", leaf
        else:
            yield name, field


def _element(field: Any) -> Any:
    return getattr(field, "value_type", None)


@functools.cache
def _fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(zip(kind.get_fields_and_field_types(), kind.SLOT_TYPES, strict=True))


def _load(kind: NamespacedType) -> type:
    loaded: type = getattr(importlib.import_module(".".join(kind.namespaces)), kind.name)
    return loaded
