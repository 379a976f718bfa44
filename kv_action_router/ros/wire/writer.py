"""Writes serialized messages of one type from the values of some of its fields."""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from kv_action_router.errors import InputError
from kv_action_router.ros.wire.schema import ENCAPSULATION, Leaf, aligned, leaves
from kv_action_router.ros.wire.texts import encode_array, encode_sequence, encode_text

# Writes one part: (values, offset, pieces so far: bytes or arrays) -> offset behind it.
_Step = Callable[[Sequence[Any], int, list[Any]], int]
_HEAD = b"\x00\x01\x00\x00"  # plain CDR, little-endian
_PADDING = [bytes(size) for size in range(8)]
_KEPT_FORMS = 64  # sizes of an array that are remembered


@dataclass(frozen=True, slots=True)
class _Item:
    """A leaf and where its value stands among the values; constants stand behind those given."""

    leaf: Leaf
    index: int


class FieldWriter:
    """Writes messages of a type from the values of some of its fields.

    Invariant: the bytes are those of the real serialization; padding is zero.
    """

    def __init__(self, kind: type, names: Sequence[str], prototype: Any = None) -> None:
        """Prepare.

        Args:
            kind: message class.
            names: dotted names of the fields that are written; of the messages in a sequence that
                the prototype holds ``points[0].positions``.
            prototype: message that says what the other fields hold; None = all defaults.

        Raises:
            InputError: the message has no such field, or the prototype is another message.
        """
        message = kind() if prototype is None else prototype
        if type(message) is not kind:
            raise InputError("prototype", kind.__name__, type(message).__name__)
        constants: list[Any] = []
        items = []
        index = {name: at for at, name in enumerate(names)}
        for leaf, value in _expanded(kind, message):
            if leaf.name not in index:
                index[leaf.name] = len(names) + len(constants)
                constants.append(value)
            items.append(_Item(leaf, index[leaf.name]))
        known = {item.leaf.name for item in items}
        for name in names:
            if name not in known:
                raise InputError("names", f"fields of {kind.__name__}", name)
        self._size = len(names)
        self._constants = tuple(constants)
        self._steps = _steps(items, len(names))

    def write(self, values: Sequence[Any]) -> bytes:
        """Return the serialized message.

        Args:
            values: one for each name; numbers, texts, or sequences and arrays of them.

        Raises:
            InputError: not one value a name, or an array that is not as long as its field.
            struct.error: a number that its field cannot hold.
        """
        if len(values) != self._size:
            raise InputError("values", f"{self._size}, one for each name", len(values))
        everything = (*values, *self._constants)
        offset = ENCAPSULATION
        pieces: list[Any] = [_HEAD]
        for step in self._steps:
            offset = step(everything, offset, pieces)
        return b"".join(pieces)


def _expanded(kind: type, message: Any, prefix: str = "") -> list[tuple[Leaf, Any]]:
    """Return all leaves with the message's values; sequences of messages are written out."""
    found: list[tuple[Leaf, Any]] = []
    for leaf in leaves(kind):
        value = attrgetter(leaf.name)(message)
        name = prefix + leaf.name
        if leaf.element is None:
            text = not leaf.code and leaf.count is not None
            kept = tuple(value) if text else copy.copy(value)
            found.append((replace(leaf, name=name), kept))
            continue
        if leaf.count == -1:
            found.append((Leaf(f"{name}.length", "I", None), len(value)))
        for index, element in enumerate(value):
            found += _expanded(leaf.element, element, f"{name}[{index}].")
    return found


def _steps(items: Sequence[_Item], given: int) -> list[_Step]:
    """Return the steps; values from ``given`` on are constant."""
    steps: list[_Step] = []
    constant: list[_Step] = []  # those that stand side by side
    for run in _runs(items):
        number = run[0].leaf.code and run[0].leaf.count is None
        step = _numbers(run) if number else _step(run[0])
        if all(item.index >= given for item in run):
            constant.append(step)
            continue
        if constant:
            steps.append(_constant(tuple(constant)))
            constant.clear()
        steps.append(step)
    if constant:
        steps.append(_constant(tuple(constant)))
    return steps


def _runs(items: Sequence[_Item]) -> list[tuple[_Item, ...]]:
    """Return single numbers that stand side by side as one run, all else one by one."""
    runs: list[tuple[_Item, ...]] = []
    was_number = False
    for item in items:
        is_number = bool(item.leaf.code) and item.leaf.count is None
        if is_number and was_number:
            runs[-1] += (item,)
        else:
            runs.append((item,))
        was_number = is_number
    return runs


def _constant(steps: tuple[_Step, ...]) -> _Step:
    """Write what is the same in every message; made once for each alignment."""
    blocks: list[bytes | None] = [None] * 8

    def step(values: Sequence[Any], offset: int, pieces: list[Any]) -> int:
        block = blocks[offset & 7]
        if block is None:
            made: list[Any] = []
            end = offset
            for one in steps:
                end = one(values, end, made)
            block = blocks[offset & 7] = b"".join(made)
        pieces.append(block)
        return offset + len(block)

    return step


def _step(item: _Item) -> _Step:
    leaf = item.leaf
    if leaf.code:
        return _array(leaf, item.index)
    if leaf.count is None:
        return _block(item.index, encode_text)
    if leaf.count == -1:
        return _block(item.index, encode_sequence)
    return _block(item.index, encode_array)


def _numbers(run: tuple[_Item, ...]) -> _Step:
    """Write single numbers that stand side by side; padding depends on where they begin."""
    formats: list[tuple[Callable[..., bytes], int] | None] = [None] * 8
    indices = [item.index for item in run]
    pick: Any = itemgetter(*indices)
    single = len(indices) == 1

    def step(values: Sequence[Any], offset: int, pieces: list[Any]) -> int:
        form = formats[offset & 7]
        if form is None:
            form = formats[offset & 7] = _format(run, offset)
        picked = pick(values)
        pieces.append(form[0](picked) if single else form[0](*picked))
        return offset + form[1]

    return step


def _format(run: tuple[_Item, ...], offset: int) -> tuple[Callable[..., bytes], int]:
    text, at = "<", offset
    for item in run:
        padding = aligned(at, item.leaf.width) - at
        text += f"{padding}x{item.leaf.code}"
        at += padding + item.leaf.width
    return struct.Struct(text).pack, at - offset


def _array(leaf: Leaf, index: int) -> _Step:
    width, kind = leaf.width, np.dtype("<" + leaf.code)
    forms: dict[int, tuple[bytes, Callable[..., bytes]]] = {}  # by count and alignment

    def step(values: Sequence[Any], offset: int, pieces: list[Any]) -> int:
        value = values[index]
        is_array = isinstance(value, np.ndarray)
        count = value.size if is_array else len(value)
        form = forms.get(count << 3 | offset & 7)
        if form is None:
            if len(forms) >= _KEPT_FORMS:
                forms.clear()
            pack = struct.Struct(f"<{count}{leaf.code}").pack
            form = forms[count << 3 | offset & 7] = (_head(leaf, count, offset), pack)
        head, pack = form
        pieces.append(head)
        # An array is copied once, when the pieces are joined: images are large.
        pieces.append(np.ascontiguousarray(value, kind) if is_array else pack(*value))
        return offset + len(head) + count * width

    return step


def _head(leaf: Leaf, count: int, offset: int) -> bytes:
    """Return what stands before the numbers of an array: padding, and a sequence's length."""
    head = b""
    if leaf.count == -1:
        head = _PADDING[-offset & 3] + struct.pack("<I", count)
    elif count != leaf.count:
        raise InputError(leaf.name, f"of size {leaf.count}", count)
    at = offset + len(head)
    return head + _PADDING[aligned(at, leaf.width) - at] if count else head


def _block(index: int, encode: Callable[[Any], bytes]) -> _Step:
    """Write a text or texts; encoded when they change only."""
    written: Any = None
    block = b""

    def step(values: Sequence[Any], offset: int, pieces: list[Any]) -> int:
        nonlocal written, block
        value = values[index]
        if value != written or written is None:
            block = encode(value)
            written = value if isinstance(value, str) else tuple(value)
        padding = -offset & 3
        if padding:
            pieces.append(_PADDING[padding])
        pieces.append(block)
        return offset + padding + len(block)

    return step
