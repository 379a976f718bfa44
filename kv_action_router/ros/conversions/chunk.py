"""TrajectoryChunk <-> its message."""

from __future__ import annotations

from kv_action_router import contracts
from kv_action_router.contracts import CHUNK_PERIOD, CHUNK_SAMPLES, ChunkKind
from kv_action_router.errors import InputError
from kv_action_router.msg import AuxiliaryOutput, TrajectoryChunk
from kv_action_router.ros.conversions.decision import decision_from_msg, decision_to_msg
from kv_action_router.ros.conversions.fields import (
    doubles_from_field,
    enum_from_field,
    fill_doubles,
    sized,
)


def auxiliary_to_msg(
    output: contracts.AuxiliaryOutput, msg: AuxiliaryOutput | None = None
) -> AuxiliaryOutput:
    """Write a timed output into ``msg`` (a new one when None) and return it."""
    msg = AuxiliaryOutput() if msg is None else msg
    msg.name = str(output.name)
    msg.time = float(output.time)
    msg.value = float(output.value)
    return msg


def auxiliary_from_msg(msg: AuxiliaryOutput) -> contracts.AuxiliaryOutput:
    """Return the timed output that a message carries."""
    return contracts.AuxiliaryOutput(msg.name, msg.time, msg.value)


def chunk_to_msg(
    chunk: contracts.TrajectoryChunk, msg: TrajectoryChunk | None = None
) -> TrajectoryChunk:
    """Write a chunk into ``msg`` (a new one when None) and return it.

    Raises:
        InputError: the samples are not (100, n_columns).
    """
    msg = TrajectoryChunk() if msg is None else msg
    if chunk.samples.shape != (CHUNK_SAMPLES, len(chunk.columns)):
        raise InputError(
            "samples", f"of shape {(CHUNK_SAMPLES, len(chunk.columns))}", chunk.samples.shape
        )
    decision_to_msg(chunk.decision, msg.decision)
    msg.kind = int(chunk.kind)
    msg.anchor_monotonic_ns = int(chunk.anchor_ns)
    msg.sample_period = CHUNK_PERIOD
    msg.column = list(chunk.columns)
    fill_doubles(msg, "samples", chunk.samples)
    msg.auxiliary = [auxiliary_to_msg(output) for output in chunk.auxiliary]
    msg.entry_id = int(chunk.entry_id)
    msg.entry_version = int(chunk.entry_version)
    msg.task = str(chunk.task)
    msg.stage = str(chunk.stage)
    msg.phase = float(chunk.phase)
    msg.ends_at_rest = bool(chunk.ends_at_rest)
    return msg


def chunk_from_msg(msg: TrajectoryChunk) -> contracts.TrajectoryChunk:
    """Return the chunk that a message carries; whether it is finite is the injector's to say.

    Raises:
        InputError: unknown kind, not (100, n_columns) samples, or not 0.5 ms between them.
    """
    if abs(msg.sample_period - CHUNK_PERIOD) > 1e-9:
        raise InputError("sample_period", f"{CHUNK_PERIOD} s", msg.sample_period)
    columns = tuple(msg.column)
    samples = sized(doubles_from_field(msg.samples), CHUNK_SAMPLES * len(columns), "samples")
    return contracts.TrajectoryChunk(
        decision=decision_from_msg(msg.decision),
        kind=enum_from_field(ChunkKind, msg.kind, "kind"),
        anchor_ns=msg.anchor_monotonic_ns,
        columns=columns,
        samples=samples.reshape(CHUNK_SAMPLES, len(columns)),
        auxiliary=tuple(auxiliary_from_msg(output) for output in msg.auxiliary),
        entry_id=msg.entry_id,
        entry_version=msg.entry_version,
        task=msg.task,
        stage=msg.stage,
        phase=msg.phase,
        ends_at_rest=msg.ends_at_rest,
    )
