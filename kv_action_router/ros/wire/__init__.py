"""Messages of the fast streams straight from and to their bytes (CDR).

A message object costs 0.1 to 0.3 ms in Python, most of it for fields that say the same in every
message. Here numbers that stand side by side are read or written by one ``struct``, and texts are
decoded or encoded only when they change. The result is that of the real (de)serialization; tests
compare them.
"""

from kv_action_router.ros.wire.chunks import ChunkReader, ChunkWriter
from kv_action_router.ros.wire.feedback import FeedbackGlance, FeedbackReader
from kv_action_router.ros.wire.keys import KeyReader, KeyWriter
from kv_action_router.ros.wire.matches import (
    GlanceReader,
    MatchJointsReader,
    MatchReader,
    MatchWriter,
)
from kv_action_router.ros.wire.obstacles import ObstacleReader, ObstacleWriter
from kv_action_router.ros.wire.reader import FieldReader
from kv_action_router.ros.wire.sensors import (
    DriveReader,
    HeartbeatReader,
    ImuReader,
    JointReader,
    WrenchReader,
)
from kv_action_router.ros.wire.writer import FieldWriter

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
    "MatchJointsReader",
    "MatchReader",
    "MatchWriter",
    "ObstacleReader",
    "ObstacleWriter",
    "WrenchReader",
]
