"""Messages of the fast streams straight from and to their bytes (CDR).

A message object costs 0.1 to 0.3 ms in Python, most of it for fields that say the same in every
message: names, domains, sizes. A stream's layout is learned from one message; while texts and sizes
stay the same, only the numbers are read or written. Whatever does not fit is learned anew, so the
result is always that of the real (de)serialization; tests compare them.
"""

from kv_action_router.ros.wire.chunks import ChunkReader, ChunkWriter
from kv_action_router.ros.wire.feedback import FeedbackGlance, FeedbackReader
from kv_action_router.ros.wire.fields import FieldReader, FieldWriter
from kv_action_router.ros.wire.keys import KeyReader, KeyWriter
from kv_action_router.ros.wire.matches import GlanceReader, MatchReader, MatchWriter
from kv_action_router.ros.wire.sensors import (
    DriveReader,
    HeartbeatReader,
    ImuReader,
    JointReader,
    WrenchReader,
)

__all__ = [
    "ChunkReader",
    "ChunkWriter",
    "DriveReader",
    "FeedbackGlance",
    "FeedbackReader",
    "FieldReader",
    "FieldWriter",
    "GlanceReader",
    "HeartbeatReader",
    "ImuReader",
    "JointReader",
    "KeyReader",
    "KeyWriter",
    "MatchReader",
    "MatchWriter",
    "WrenchReader",
]
