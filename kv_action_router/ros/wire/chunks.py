"""TrajectoryChunk: stage 3 to stage 4."""

from __future__ import annotations

from rclpy.serialization import serialize_message

from kv_action_router import contracts
from kv_action_router.contracts import CHUNK_PERIOD, CHUNK_SAMPLES, ChunkKind, Stage
from kv_action_router.errors import InputError
from kv_action_router.msg import TrajectoryChunk
from kv_action_router.ros.conversions import chunk_from_msg, chunk_to_msg
from kv_action_router.ros.conversions.fields import enum_from_field
from kv_action_router.ros.wire import decisions
from kv_action_router.ros.wire.reader import FieldReader, message_from_bytes
from kv_action_router.ros.wire.writer import FieldWriter

_NAMES = (
    *decisions.NAMES,
    "kind",
    "anchor_monotonic_ns",
    "sample_period",
    "column",
    "samples",
    "entry_id",
    "entry_version",
    "task",
    "stage",
    "phase",
    "ends_at_rest",
)
_KINDS = {int(kind): kind for kind in ChunkKind}


class ChunkWriter:
    """Serializes chunks. One thread may use it."""

    def __init__(self) -> None:
        self._writer = FieldWriter(TrajectoryChunk, _NAMES)

    def write(self, chunk: contracts.TrajectoryChunk, published_ns: int) -> bytes:
        """Return the message of a chunk that is published now [ns].

        Raises:
            InputError: the samples are not (100, n_columns).
        """
        if chunk.auxiliary:  # seldom, and of any number: the slow way
            message = chunk_to_msg(chunk)
            message.decision.stage_monotonic_ns[Stage.CHUNK] = published_ns
            return bytes(serialize_message(message))
        shape = (CHUNK_SAMPLES, len(chunk.columns))
        if chunk.samples.shape != shape:
            raise InputError("samples", f"of shape {shape}", chunk.samples.shape)
        return self._writer.write(
            (
                *decisions.values(chunk.decision, Stage.CHUNK, published_ns),
                chunk.kind,
                chunk.anchor_ns,
                CHUNK_PERIOD,
                chunk.columns,
                chunk.samples,
                chunk.entry_id,
                chunk.entry_version,
                chunk.task,
                chunk.stage,
                chunk.phase,
                chunk.ends_at_rest,
            )
        )


class ChunkReader:
    """Reads chunks. One thread may use it."""

    def __init__(self) -> None:
        self._reader = FieldReader(TrajectoryChunk, _NAMES, ("samples",))

    def read(self, data: bytes) -> contracts.TrajectoryChunk:
        """Return the chunk of a serialized message; see ``conversions.chunk_from_msg``.

        Raises:
            InputError: not complete, unknown kind, not (100, n_columns) samples, or not 0.5 ms
                between them.
        """
        v = self._reader.read(data)
        if v is None:
            return chunk_from_msg(message_from_bytes(TrajectoryChunk, data))
        kind_id, anchor_ns, period, columns, samples, *rest = v[decisions.SIZE :]
        if abs(period - CHUNK_PERIOD) > 1e-9:
            raise InputError("sample_period", f"{CHUNK_PERIOD} s", period)
        if samples.size != CHUNK_SAMPLES * len(columns):
            raise InputError("samples", f"of size {CHUNK_SAMPLES * len(columns)}", samples.size)
        return contracts.TrajectoryChunk(
            decisions.decision(v),
            _KINDS.get(kind_id) or enum_from_field(ChunkKind, kind_id, "kind"),
            anchor_ns,
            columns,
            samples.reshape(CHUNK_SAMPLES, len(columns)),
            (),
            *rest,
        )
