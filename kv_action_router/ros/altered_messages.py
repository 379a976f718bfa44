"""Serialized messages that say something wrong: NaN, nothing to be seen, too hot, another time."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
from rclpy.serialization import serialize_message

from kv_action_router.ros.wire.reader import message_from_bytes
from kv_action_router.simulation.faulty_link import Fault

HOT = 90.0  # [degC]
HOUR = 3600  # [s]


def altered(fault: Fault, kind: type, data: bytes) -> bytes:
    """Return a serialized message with a fault of its contents.

    A fault that does not concern messages of a kind leaves them as they are.
    """
    message = message_from_bytes(kind, data)
    _ALTERATIONS[fault](message)
    result: bytes = serialize_message(message)
    return result


def _blacken(message: Any) -> None:
    if hasattr(message, "encoding"):
        message.data = array("B", bytes(len(message.data)))


def _heat(message: Any) -> None:
    if hasattr(message, "temperature"):
        message.temperature = array("d", [HOT] * len(message.temperature))


def _set_back(message: Any) -> None:
    if hasattr(message, "header"):
        message.header.stamp.sec = max(0, message.header.stamp.sec - HOUR)


def _spoil(message: Any) -> None:
    if getattr(message, "encoding", "") == "32FC1":  # a depth image holds its numbers as bytes
        message.data = array("B", np.full(len(message.data) // 4, np.nan, np.float32).tobytes())
    for name in message.get_fields_and_field_types():
        value = getattr(message, name)
        if isinstance(value, float):
            setattr(message, name, math.nan)
        elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
            value[:] = np.nan
        elif isinstance(value, array) and value.typecode in "fd":
            setattr(message, name, array(value.typecode, [math.nan] * len(value)))
        elif hasattr(value, "get_fields_and_field_types"):
            _spoil(value)
        elif isinstance(value, list):
            for item in value:
                if hasattr(item, "get_fields_and_field_types"):
                    _spoil(item)


_ALTERATIONS: dict[Fault, Callable[[Any], None]] = {
    Fault.NAN: _spoil,
    Fault.BLACK: _blacken,
    Fault.HOT: _heat,
    Fault.SET_BACK: _set_back,
}
