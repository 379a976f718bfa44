"""The few fields of a match that say whether the rest of it is needed, from its serialized bytes.

Making a ``CacheMatch`` object costs a good part of a millisecond, a hundred times a second; most of
them only say that the cache is alive. A test compares this reader with the real deserialization.
"""

from __future__ import annotations

import struct

from kv_action_router.contracts import Stage, Trigger
from kv_action_router.errors import InputError
from kv_action_router.ros.conversions.fields import enum_from_field
from kv_action_router.synthesis.glance import MatchGlance

_ENCAPSULATION = 4
_STAMP = 8
_STRINGS = 6  # domain, source domain, robot, encoder, scene, intent
_NUMBERS = (struct.Struct(">8Q2I"), struct.Struct("<8Q2I"))  # trace id to decision id
_LENGTH = (struct.Struct(">I"), struct.Struct("<I"))
_FLAGS = struct.Struct("3B")  # trigger, hit, is decision


def match_glance_from_bytes(data: bytes) -> MatchGlance:
    """Return the glance at a serialized ``CacheMatch``.

    Raises:
        InputError: it is too short, or its trigger is unknown.
    """
    try:
        little = data[1] & 1
        offset = _ENCAPSULATION + _STAMP
        offset = _skip_string(data, offset, little)  # frame
        offset = _aligned(offset, 8)
        numbers = _NUMBERS[little].unpack_from(data, offset)
        offset += _NUMBERS[little].size
        for _ in range(_STRINGS):
            offset = _skip_string(data, offset, little)
        trigger, hit, is_decision = _FLAGS.unpack_from(data, offset)
    except (struct.error, IndexError):
        raise InputError("match", "a complete CacheMatch", f"{len(data)} bytes") from None
    return MatchGlance(
        decision_id=numbers[9],
        trigger_monotonic_ns=numbers[1],
        published_ns=numbers[2 + Stage.MATCH],
        trigger=enum_from_field(Trigger, trigger, "trigger"),
        hit=bool(hit),
        is_decision=bool(is_decision),
    )


def _aligned(offset: int, size: int) -> int:
    """Return the next multiple of ``size`` behind the encapsulation."""
    return offset + (_ENCAPSULATION - offset) % size


def _skip_string(data: bytes, offset: int, little: int) -> int:
    offset = _aligned(offset, 4)
    (length,) = _LENGTH[little].unpack_from(data, offset)
    return offset + 4 + int(length)
