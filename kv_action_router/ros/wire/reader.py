"""Reads chosen fields of serialized messages of one type."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message

from kv_action_router.errors import InputError
from kv_action_router.ros.wire.schema import ENCAPSULATION, Leaf, aligned, leaves
from kv_action_router.ros.wire.texts import Decoder, text_decoder, texts_decoder

# Reads one part of a message: (data, offset, values so far) -> offset behind it.
_Step = Callable[[bytes, int, list[Any]], int]
_KEPT_SIZES = 64  # sizes of a sequence whose format is remembered


def message_from_bytes(kind: type, data: bytes) -> Any:
    """Return the message object: for what a reader does not read.

    Raises:
        InputError: it is not complete.
    """
    try:
        return deserialize_message(data, kind)
    except RuntimeError:  # of rmw
        text = f"a complete {kind.__name__}"
        raise InputError("message", text, f"{len(data)} bytes") from None


class FieldReader:
    """Reads the same fields of every message of a type.

    Numbers come as int, float or bool; texts as str or a tuple of str; arrays as a tuple of
    numbers, or, where named, as a NumPy array. A text field of the messages in a sequence comes as
    one tuple: ``layout.dim.label``. Texts are decoded when they change only: a stream says the same
    names for ever. What stands behind the last field that is asked for is not looked at.

    Invariant: the values are those of the real deserialization.
    """

    def __init__(self, kind: type, names: Sequence[str], arrays: Collection[str] = ()) -> None:
        """Prepare.

        Args:
            kind: message class.
            names: dotted names of the fields to read, in the order in which they are returned.
            arrays: those that are returned as NumPy arrays.

        Raises:
            InputError: the message has no such field, or it is a sequence of messages.
        """
        fields = tuple(leaves(kind))
        produced: list[str] = []
        self._steps = {order: _steps(fields, names, arrays, order, produced) for order in "<>"}
        for name in names:
            if name not in produced:
                raise InputError("names", f"fields of {kind.__name__}", name)
        indices = [produced.index(name) for name in names]
        self._pick: Any = itemgetter(*indices) if len(indices) > 1 else tuple
        self._kind = kind

    def read(self, data: bytes) -> tuple[Any, ...] | None:
        """Return the values; None when the message holds messages in a row that are not asked for.

        Raises:
            InputError: the message is not complete.
        """
        values: list[Any] = []
        try:
            offset = ENCAPSULATION
            for step in self._steps["<" if data[1] & 1 else ">"]:
                offset = step(data, offset, values)
        except _NotAskedFor:
            return None
        except (struct.error, IndexError, UnicodeDecodeError):
            text = f"a complete {self._kind.__name__}"
            raise InputError("message", text, f"{len(data)} bytes") from None
        picked: tuple[Any, ...] = self._pick(values)
        return picked


class _NotAskedFor(Exception):  # noqa: N818  # a way out, no error
    pass


def _steps(
    fields: Sequence[Leaf],
    names: Collection[str],
    arrays: Collection[str],
    order: str,
    produced: list[str],
) -> list[_Step]:
    """Return the steps up to the last field that is asked for; tell which values they produce."""
    steps: list[_Step] = []
    produced.clear()
    run: list[tuple[Leaf, bool]] = []  # neighbors of fixed size, and whether they are asked for
    last = 0

    def end_run() -> None:
        if run:
            steps.append(_numbers(tuple(run), order))
            run.clear()

    for leaf in fields:
        asked = leaf.name in names
        texts = _asked_texts(leaf, names)
        fixed = bool(leaf.code) and leaf.count != -1
        if fixed and not (asked and leaf.count is not None):
            run.append((leaf, asked))
        else:
            end_run()
            steps.append(_step(leaf, order, asked=asked, array=leaf.name in arrays, texts=texts))
        produced += [leaf.name] if asked and leaf.element is None else texts
        if asked or texts:
            last = len(steps) + bool(run)
    end_run()
    return steps[:last]


def _asked_texts(leaf: Leaf, names: Collection[str]) -> list[str]:
    if leaf.element is None:
        return []
    texts = (field for field in leaves(leaf.element) if not field.code and field.count is None)
    return [name for field in texts if (name := f"{leaf.name}.{field.name}") in names]


def _step(leaf: Leaf, order: str, *, asked: bool, array: bool, texts: list[str]) -> _Step:
    if leaf.element is not None:
        return _messages(leaf, order, texts)
    if not leaf.code:
        decode = text_decoder(order) if leaf.count is None else texts_decoder(order, leaf.count)
        return _block(decode, asked=asked)
    if leaf.count == -1:
        return _sequence(leaf, order, asked=asked, array=array)
    return _array(leaf, order, array=array)


def _numbers(run: tuple[tuple[Leaf, bool], ...], order: str) -> _Step:
    """Read single numbers that stand side by side; padding depends on where they begin."""
    formats: list[tuple[Callable[..., tuple[Any, ...]], int] | None] = [None] * 8

    def step(data: bytes, offset: int, values: list[Any]) -> int:
        form = formats[offset & 7]
        if form is None:
            form = formats[offset & 7] = _format(run, order, offset)
        values += form[0](data, offset)
        return offset + form[1]

    return step


def _format(
    run: tuple[tuple[Leaf, bool], ...], order: str, offset: int
) -> tuple[Callable[..., tuple[Any, ...]], int]:
    text, at = order, offset
    for leaf, asked in run:
        padding = aligned(at, leaf.width) - at
        count = 1 if leaf.count is None else leaf.count
        size = count * leaf.width
        text += f"{padding}x" + (leaf.code if asked else f"{size}x")
        at += padding + size
    return struct.Struct(text).unpack_from, at - offset


def _array(leaf: Leaf, order: str, *, array: bool) -> _Step:
    read = _reader_of(leaf, order, leaf.count or 0, array=array)
    width, size = leaf.width, (leaf.count or 0) * leaf.width

    def step(data: bytes, offset: int, values: list[Any]) -> int:
        offset = aligned(offset, width)
        if offset + size > len(data):
            raise IndexError
        values.append(read(data, offset))
        return offset + size

    return step


def _sequence(leaf: Leaf, order: str, *, asked: bool, array: bool) -> _Step:
    width = leaf.width
    size_of = struct.Struct(order + "I").unpack_from
    readers: dict[int, Callable[[bytes, int], Any]] = {}

    def step(data: bytes, offset: int, values: list[Any]) -> int:
        offset += -offset & 3
        (count,) = size_of(data, offset)
        offset += 4
        if count:
            offset = aligned(offset, width)
        end = offset + count * width
        if end > len(data):
            raise IndexError
        if asked:
            read = readers.get(count)
            if read is None:
                if len(readers) >= _KEPT_SIZES:
                    readers.clear()
                read = readers[count] = _reader_of(leaf, order, count, array=array)
            values.append(read(data, offset))
        return end

    return step


def _reader_of(leaf: Leaf, order: str, count: int, *, array: bool) -> Callable[[bytes, int], Any]:
    if not array:
        return struct.Struct(f"{order}{count}{leaf.code}").unpack_from
    kind = np.dtype(order + leaf.code)
    native = kind.newbyteorder("=")
    if not count:
        return lambda *_: np.empty(0, native)
    # a copy: aligned, and in the machine's byte order
    return lambda data, offset: np.frombuffer(data, kind, count, offset).astype(native)


def _block(decode: Decoder, *, asked: bool) -> _Step:
    """Read a text or texts; they are decoded when their bytes change only."""
    block, value = b"\xff" * 8, None  # as it came last

    def step(data: bytes, offset: int, values: list[Any]) -> int:
        nonlocal block, value
        offset += -offset & 3
        if not data.startswith(block, offset):
            value, end = decode(data, offset)
            block = data[offset:end]
        if asked:
            values.append(value)
        return offset + len(block)

    return step


def _messages(leaf: Leaf, order: str, texts: list[str]) -> _Step:
    """Read the texts of the messages in a sequence; refuse to step over messages otherwise.

    Where the sequence is what it was in the message before, so are the texts.
    """
    assert leaf.element is not None
    size_of = struct.Struct(order + "I").unpack_from
    inner = tuple(leaves(leaf.element))
    everything = [field.name for field in inner]
    produced: list[str] = []
    steps = _steps(inner, everything, (), order, produced)
    indices = [produced.index(name[len(leaf.name) + 1 :]) for name in texts]
    blocks: list[bytes | None] = [None, None]  # as they came last, one for each alignment
    kept: list[list[Any]] = [[], []]

    def step(data: bytes, offset: int, values: list[Any]) -> int:
        begin = offset + (-offset & 3)
        which = begin >> 2 & 1
        block = blocks[which]
        if block is not None and data.startswith(block, begin):
            values += kept[which]
            return begin + len(block)
        (count,) = size_of(data, begin)
        offset = begin + 4
        if count and not texts:
            raise _NotAskedFor
        elements = []
        for _ in range(count):
            found: list[Any] = []
            for one in steps:
                offset = one(data, offset, found)
            elements.append(found)
        kept[which] = [tuple(found[index] for found in elements) for index in indices]
        blocks[which] = data[begin:offset]
        values += kept[which]
        return offset

    return step
