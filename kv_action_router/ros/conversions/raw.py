"""The few fields that a fast reader needs, straight from the serialized message (CDR).

Making a message object costs more than all else that is done with a 500 Hz stream. The fields
that are read here stand at the end of their messages, whatever strings come before; a
test compares each reader with the real deserialization.
"""

from __future__ import annotations

import struct

from kv_action_router.errors import InputError

_WRENCH = (struct.Struct(">6d"), struct.Struct("<6d"))  # by the encapsulation's endianness bit
_ENCAPSULATION = 4  # bytes before the payload


def wrench_from_bytes(data: bytes) -> tuple[float, ...]:
    """Return force [N] and torque [N m], six numbers, of a serialized ``WrenchStamped``.

    Raises:
        InputError: it is too short to be one.
    """
    layout = _WRENCH[_little_endian(data)]
    if len(data) < _ENCAPSULATION + layout.size:
        raise InputError("wrench", f"at least {_ENCAPSULATION + layout.size} bytes", len(data))
    return layout.unpack_from(data, len(data) - layout.size)


def lifecycle_state_from_bytes(data: bytes) -> int:
    """Return ``lifecycle_state`` of a serialized ``Heartbeat``.

    Raises:
        InputError: it is too short to be one.
    """
    if len(data) < _ENCAPSULATION + 8:
        raise InputError("heartbeat", f"at least {_ENCAPSULATION + 8} bytes", len(data))
    return data[len(data) - 8]  # one byte, padded to the 4-byte epoch that ends the message


def _little_endian(data: bytes) -> int:
    return data[1] & 1 if len(data) > 1 else 1
