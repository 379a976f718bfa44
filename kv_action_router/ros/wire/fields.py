"""Reads and writes chosen fields of serialized messages of one type."""

from __future__ import annotations

import copy
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message

from kv_action_router.errors import InputError
from kv_action_router.ros.wire.layout import Layout, Place, labels, learn, leaves

_KEPT_LAYOUTS = 16  # sizes of messages that are remembered


def message_from_bytes(kind: type, data: bytes) -> Any:
    """Return the message object: for what no layout can be learned of.

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

    Numbers come as int, float or bool; texts as str or a tuple of str, always the same objects
    while the layout stays; arrays as a tuple of numbers, or, where named, as a NumPy array. A text
    field of the messages in a sequence comes as one tuple: ``layout.dim.label``.

    Invariant: the values are those of the real deserialization.
    """

    def __init__(self, kind: type, names: Sequence[str], arrays: Sequence[str] = ()) -> None:
        """Learn nothing yet.

        Args:
            kind: message class.
            names: dotted names of the fields to read, in the order in which they are returned.
            arrays: those that are returned as NumPy arrays.

        Raises:
            InputError: the message has no such field, or it is a sequence of messages.
        """
        elements = {f"{sequence}.{text}": (sequence, text) for sequence, text in labels(kind)}
        known = {*leaves(kind), *elements}
        for name in names:
            if name not in known:
                raise InputError("names", f"fields of {kind.__name__}", name)
        self._kind = kind
        self._names = tuple(names)
        self._labels = {name: elements[name] for name in names if name in elements}
        self._through = frozenset(sequence for sequence, _ in self._labels.values())
        self._arrays = frozenset(arrays)
        self._plans: dict[int, _ReadPlan] = {}

    def read(self, data: bytes) -> tuple[Any, ...] | None:
        """Return the values; None when the message holds messages in a row that are not asked for.

        Raises:
            InputError: the message is not complete.
        """
        plan = self._plans.get(len(data))
        if plan is None or not plan.layout.fits(data):
            layout = learn(self._kind, data, self._through)
            if layout is None:
                return None
            for name, (sequence, text) in self._labels.items():
                layout.places[name] = _joined_texts(layout, sequence, text)
            if len(self._plans) >= _KEPT_LAYOUTS:
                self._plans.clear()
            plan = self._plans[len(data)] = _read_plan(layout, self._names, self._arrays)
        numbers = plan.numbers(data)
        vectors = [vector(data) for vector in plan.vectors]
        return plan.pick((*numbers, *plan.constants, *vectors))


@dataclass(frozen=True, slots=True)
class _ReadPlan:
    layout: Layout
    numbers: Callable[[bytes], tuple[Any, ...]]
    constants: tuple[Any, ...]
    vectors: tuple[Callable[[bytes], Any], ...]
    pick: Callable[[tuple[Any, ...]], tuple[Any, ...]]


def _read_plan(layout: Layout, names: tuple[str, ...], arrays: frozenset[str]) -> _ReadPlan:
    """Return the plan: one struct for all single numbers, one reader an array."""
    order = layout.order
    single = [name for name in names if _is_number(layout.places[name])]
    single.sort(key=lambda name: layout.places[name].offset)
    form, at = order, 0
    for name in single:
        place = layout.places[name]
        form += f"{place.offset - at}x{place.code}"
        at = place.offset + struct.calcsize("=" + place.code)
    numbers = struct.Struct(form)
    constants, vectors = [], []
    constant_names, vector_names = [], []
    for name in names:
        place = layout.places[name]
        if place.texts is not None:
            constants.append(place.texts)
            constant_names.append(name)
        elif place.count is not None:
            vectors.append(_vector(place, order, as_array=name in arrays))
            vector_names.append(name)
    position = {name: i for i, name in enumerate(single + constant_names + vector_names)}
    indices = [position[name] for name in names]
    pick: Any = itemgetter(*indices) if len(indices) > 1 else _only(indices[0])
    return _ReadPlan(layout, numbers.unpack_from, tuple(constants), tuple(vectors), pick)


def _joined_texts(layout: Layout, sequence: str, text: str) -> Place:
    """Return the texts of all elements of a sequence of messages as one place."""
    places = [layout.places[f"{sequence}[{i}].{text}"] for i in range(layout.counts[sequence])]
    return Place(0, "", len(places), texts=tuple(str(place.texts) for place in places))


def _only(index: int) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    return lambda values: (values[index],)


def _is_number(place: Place) -> bool:
    return place.texts is None and place.count is None


def _vector(place: Place, order: str, *, as_array: bool) -> Callable[[bytes], Any]:
    offset, count = place.offset, place.count or 0
    if as_array:
        kind = np.dtype(order + place.code)
        if not count:
            return lambda _: np.empty(0, kind.newbyteorder("="))
        native = kind.newbyteorder("=")
        # a copy: aligned, and in the machine's byte order
        return lambda data: np.frombuffer(data, kind, count, offset).astype(native)
    unpack = struct.Struct(f"{order}{count}{place.code}").unpack_from
    return lambda data: unpack(data, offset)


class FieldWriter:
    """Writes messages of a type from the values of some of its fields.

    Invariant: the bytes are those of the real serialization; padding is zero.
    """

    def __init__(self, kind: type, names: Sequence[str], prototype: Any = None) -> None:
        """Prepare; messages whose texts and sizes are the prototype's need no more learning.

        Args:
            kind: message class.
            names: dotted names of the fields that are written; in a sequence of messages of the
                prototype ``points[0].positions``.
            prototype: message that says what the other fields hold; it is copied. None = all
                defaults.

        Raises:
            InputError: the message has no such field, or the prototype is another message.
        """
        message = kind() if prototype is None else copy.deepcopy(prototype)
        if type(message) is not kind:
            raise InputError("prototype", kind.__name__, type(message).__name__)
        self._message = message
        self._kind = kind
        self._names = tuple(names)
        self._plan = self._learn()

    def write(self, values: Sequence[Any]) -> bytes:
        """Return the serialized message.

        Args:
            values: one for each name; numbers, texts, or sequences and arrays of them.
        """
        plan = self._plan
        if not plan.fits(values):
            for name, value in zip(self._names, values, strict=True):
                _set(self._message, name, value)
            plan = self._plan = self._learn()
        buffer = plan.buffer
        for pack, offset, pick in plan.runs:
            pack(buffer, offset, *pick(values))
        for index, pack, offset, view in plan.vectors:
            value = values[index]
            if isinstance(value, np.ndarray):
                view[:] = value.ravel()
            else:
                pack(buffer, offset, *value)
        return bytes(buffer)

    def _learn(self) -> _WritePlan:
        """Return the plan for messages that have the texts and sizes of the one that is kept."""
        data = bytes(serialize_message(self._message))
        layout = learn(self._kind, data, through=None)
        assert layout is not None  # it went through everything
        for name in self._names:
            if name not in layout.places:
                raise InputError("names", f"fields of {self._kind.__name__}", name)
        return _write_plan(layout, self._names, data)


@dataclass(frozen=True, slots=True)
class _WritePlan:
    buffer: bytearray
    texts: tuple[tuple[int, Any], ...]  # index of a value, and what it must be
    sizes: tuple[tuple[int, int], ...]  # index of a value, and how long it must be
    runs: tuple[tuple[Any, int, Any], ...]  # pack_into, offset, itemgetter
    vectors: tuple[tuple[int, Any, int, Any], ...]  # index, pack_into, offset, view

    def fits(self, values: Sequence[Any]) -> bool:
        for index, text in self.texts:
            if values[index] != text:
                return False
        for index, size in self.sizes:
            value = values[index]
            if (value.size if isinstance(value, np.ndarray) else len(value)) != size:
                return False
        return True


def _write_plan(layout: Layout, names: tuple[str, ...], data: bytes) -> _WritePlan:
    """Return the plan: neighbors among the single numbers are packed together."""
    buffer = _without_padding(layout, data)
    texts, sizes, vectors = [], [], []
    numbers: list[tuple[int, str, int]] = []
    for index, name in enumerate(names):
        place = layout.places[name]
        if place.texts is not None:
            texts.append((index, place.texts))
        elif place.count is None:
            numbers.append((place.offset, place.code, index))
        else:
            sizes.append((index, place.count))
            if place.count:
                pack = struct.Struct(f"{layout.order}{place.count}{place.code}").pack_into
                kind = np.dtype(layout.order + place.code)
                view = np.frombuffer(buffer, kind, place.count, place.offset)
                vectors.append((index, pack, place.offset, view))
    return _WritePlan(buffer, tuple(texts), tuple(sizes), _runs(numbers, layout), tuple(vectors))


def _without_padding(layout: Layout, data: bytes) -> bytearray:
    """Return a copy whose padding is zero; serializers leave in it what the memory held before."""
    clean = bytearray(len(data))
    for begin, end in layout.spans():
        clean[begin:end] = data[begin:end]
    return clean


def _runs(numbers: list[tuple[int, str, int]], layout: Layout) -> tuple[tuple[Any, int, Any], ...]:
    """Return packers of numbers between which nothing but padding stands."""
    runs: list[tuple[str, int, int, list[int]]] = []  # format, begin, end, indices
    for offset, code, index in sorted(numbers):
        width = struct.calcsize("=" + code)
        if runs and offset - runs[-1][2] < 8 and _is_padding(layout, runs[-1][2], offset):
            form, begin, end, indices = runs[-1]
            runs[-1] = (f"{form}{offset - end}x{code}", begin, offset + width, [*indices, index])
        else:
            runs.append((layout.order + code, offset, offset + width, [index]))
    return tuple(
        (struct.Struct(form).pack_into, begin, itemgetter(*i) if len(i) > 1 else _only(i[0]))
        for form, begin, _, i in runs
    )


def _is_padding(layout: Layout, begin: int, end: int) -> bool:
    """Return whether no text, count, number or array touches these bytes."""
    return not any(begin < last and first < end for first, last in layout.spans())


def _set(message: Any, name: str, value: Any) -> None:
    *path, last = re.findall(r"\w+", name)
    owner = message
    for step in path:
        owner = owner[int(step)] if step.isdigit() else getattr(owner, step)
    present = getattr(owner, last)
    if isinstance(present, np.ndarray):
        present[:] = np.asarray(value, dtype=present.dtype).ravel()
    elif isinstance(present, (bool, int, float, str)):
        setattr(owner, last, type(present)(value))
    elif hasattr(present, "typecode"):
        setattr(owner, last, type(present)(present.typecode, np.asarray(value).ravel().tolist()))
    elif isinstance(value, np.ndarray):
        setattr(owner, last, value.ravel().tolist())
    else:
        setattr(owner, last, list(value))
