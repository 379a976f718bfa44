"""Messages of fixed size that are serialized once and then only patched.

Converting and serializing a Python message costs several times what sending it does; for a driver's
streams at 500 Hz that is up to a tenth of a core. Where names, frames and sizes never change, the
bytes are made once; stamp and numbers are written straight into them.
"""

from __future__ import annotations

import struct
import sys
from typing import Any

import numpy as np
from rclpy.serialization import serialize_message

from kv_action_router.contracts import FloatArray

_STAMP = struct.Struct("<iI")
_STAMP_OFFSET = 4  # behind the encapsulation header; a std_msgs/Header comes first in a message
_LITTLE_ENDIAN = 1
_FIRST_MARK = 1.5e300  # no measured value


class Marks:
    """Numbers that stand for values to be patched, each of them unique."""

    def __init__(self) -> None:
        self.count = 0

    def take(self, size: int) -> list[float]:
        """Return the next ``size`` marks."""
        marks = [_mark(self.count + i) for i in range(size)]
        self.count += size
        return marks


class PatchedMessage:
    """The bytes of one message; stamp and marked float64 values change.

    Invariant: everything else is as in the template. Values are in the order of their marks.
    """

    def __init__(self, template: Any, marks: Marks) -> None:
        """Serialize a template that begins with a header.

        Args:
            template: message in which each value to patch holds a mark.
            marks: where the marks came from.

        Raises:
            ValueError: a mark is not in the template, or not once.
        """
        self._raw = bytearray(serialize_message(template))
        if self._raw[1] != _LITTLE_ENDIAN or sys.byteorder != "little":
            raise ValueError("messages are patched in little-endian CDR only")
        offsets = []
        for index in range(marks.count):
            pattern = struct.pack("<d", _mark(index))
            if self._raw.count(pattern) != 1:
                raise ValueError(f"mark {index} must be in the message once")
            offsets.append(self._raw.find(pattern))
        starts = [i for i in range(len(offsets)) if i == 0 or offsets[i] != offsets[i - 1] + 8]
        ends = [*starts[1:], len(offsets)]
        self._views: list[FloatArray] = [
            np.frombuffer(self._raw, np.float64, end - start, offsets[start])
            for start, end in zip(starts, ends, strict=True)
        ]

    def fill(self, stamp_ns: int, *values: FloatArray) -> bytes:
        """Return the message with a stamp [ns] and values, one array for each run of marks."""
        _STAMP.pack_into(self._raw, _STAMP_OFFSET, *divmod(stamp_ns, 1_000_000_000))
        for view, value in zip(self._views, values, strict=True):
            view[:] = value
        return bytes(self._raw)


def _mark(index: int) -> float:
    return _FIRST_MARK * (1.0 + index * 2.0**-20)
