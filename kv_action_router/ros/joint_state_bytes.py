"""Joint states and drive feedback from their bytes, for a third of what the message costs.

A driver sends the same names in the same order for ever. Where they stand is learned from the first
message; as long as the next ones have the same names and sizes, only numbers are read.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from kv_action_router.contracts import DriveSample
from kv_action_router.errors import InputError
from kv_action_router.injection.signals import JointReading

_ENCAPSULATION = 4
_STAMP_OFFSET = 4
_NAMES_OFFSET = 12  # behind the stamp: frame, names, number of positions
_MOST_JOINTS = 1000
_EMPTY: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where things are in a message of one size."""

    size: int
    prefix: bytes
    counts: tuple[tuple[int, bytes], ...]  # offset and bytes of the sizes of the later arrays
    names: tuple[str, ...]
    stamp: struct.Struct
    fields: tuple[tuple[int, struct.Struct] | None, ...]  # the arrays; None = empty
    end: int  # behind the last array


class NamedArraysBytes:
    """Reads messages that are a header, names, and some arrays of float64.

    Invariant: the numbers are those that the real deserialization finds (a test compares them).
    """

    def __init__(self, what: str, arrays: int) -> None:
        """Learn nothing yet.

        Args:
            what: name of the topic, for messages.
            arrays: how many arrays of float64 follow the names.
        """
        self._what = what
        self._arrays = arrays
        self._layout: _Layout | None = None

    def read(self, data: bytes) -> tuple[tuple[str, ...], int, list[tuple[float, ...]], int]:
        """Return names, header stamp [ns], the arrays, and where the rest begins.

        Raises:
            InputError: the message is not complete.
        """
        layout = self._layout
        if layout is None or not _fits(layout, data):
            layout = self._layout = _learn(data, self._what, self._arrays)
        sec, nanosec = layout.stamp.unpack_from(data, _STAMP_OFFSET)
        arrays = [
            _EMPTY if field is None else field[1].unpack_from(data, field[0])
            for field in layout.fields
        ]
        return layout.names, sec * 1_000_000_000 + nanosec, arrays, layout.end


class JointStateBytes:
    """Reads serialized ``sensor_msgs/JointState``."""

    def __init__(self) -> None:
        self._bytes = NamedArraysBytes("joint_states", 3)

    def read(self, data: bytes, receipt_ns: int) -> JointReading:
        """Return what a message says that was received at ``receipt_ns`` [ns].

        Raises:
            InputError: it is not complete.
        """
        names, stamp_ns, (position, velocity, effort), _ = self._bytes.read(data)
        return JointReading(names, position, velocity, effort, stamp_ns, receipt_ns)


class DriveStateBytes:
    """Reads serialized ``DriveState``."""

    def __init__(self) -> None:
        self._bytes = NamedArraysBytes("drive_state", 5)

    def read(self, data: bytes, receipt_ns: int) -> DriveSample:
        """Return what a message says that was received at ``receipt_ns`` [ns].

        Raises:
            InputError: it is not complete, or an array is neither (n,) nor empty.
        """
        names, _, arrays, end = self._bytes.read(data)
        for array in arrays:
            if array and len(array) != len(names):
                raise InputError("drive_state", f"of {len(names)} numbers an array", len(array))
        try:
            offset = _aligned(end, 4)
            (count,) = struct.unpack_from("<I" if data[1] & 1 else ">I", data, offset)
            braked = np.frombuffer(data, np.bool_, count, offset + 4)
        except (struct.error, ValueError):
            raise InputError("drive_state", "complete", f"{len(data)} bytes") from None
        if count not in (0, len(names)):
            raise InputError("drive_state", f"of {len(names)} brakes or none", count)
        temperature, current, rated, duty, speed = (np.array(array) for array in arrays)
        return DriveSample(names, temperature, current, rated, duty, speed, braked, receipt_ns)


def _fits(layout: _Layout, data: bytes) -> bool:
    return (
        len(data) == layout.size
        and data[:_STAMP_OFFSET] == layout.prefix[:_STAMP_OFFSET]
        and data.startswith(layout.prefix[_STAMP_OFFSET:], _NAMES_OFFSET)
        and all(data.startswith(count, offset) for offset, count in layout.counts)
    )


def _learn(data: bytes, what: str, arrays: int) -> _Layout:
    try:
        order = "<" if data[1] & 1 else ">"
        length = struct.Struct(order + "I")
        _, offset = _string(data, _NAMES_OFFSET, length)  # frame
        offset = _aligned(offset, 4)
        (count,) = length.unpack_from(data, offset)
        offset += 4
        if count > _MOST_JOINTS:
            raise InputError(what, f"of at most {_MOST_JOINTS} joints", count)
        names = []
        for _ in range(count):
            name, offset = _string(data, offset, length)
            names.append(name)
        fields: list[tuple[int, struct.Struct] | None] = []
        counts = []
        for _ in range(arrays):
            offset = _aligned(offset, 4)
            counts.append((offset, data[offset : offset + 4]))
            (count,) = length.unpack_from(data, offset)
            offset += 4
            if count == 0:
                fields.append(None)
                continue
            numbers = struct.Struct(f"{order}{min(count, _MOST_JOINTS)}d")
            offset = _aligned(offset, 8)
            numbers.unpack_from(data, offset)
            fields.append((offset, numbers))
            offset += 8 * count
    except (struct.error, IndexError, UnicodeDecodeError):
        raise InputError(what, "a complete message", f"{len(data)} bytes") from None
    prefix_end = counts[0][0] + 4
    return _Layout(
        size=len(data),
        prefix=data[:_STAMP_OFFSET] + data[_NAMES_OFFSET:prefix_end],
        counts=tuple(counts[1:]),
        names=tuple(names),
        stamp=struct.Struct(order + "iI"),
        fields=tuple(fields),
        end=offset,
    )


def _string(data: bytes, offset: int, length: struct.Struct) -> tuple[str, int]:
    offset = _aligned(offset, 4)
    (size,) = length.unpack_from(data, offset)
    end = offset + 4 + size
    if end > len(data):
        raise IndexError
    return data[offset + 4 : end].rstrip(b"\0").decode(), end


def _aligned(offset: int, size: int) -> int:
    """Return the next multiple of ``size`` behind the encapsulation."""
    return offset + (_ENCAPSULATION - offset) % size
