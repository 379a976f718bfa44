"""What the control loop hands to the slower threads: events and counters."""

from __future__ import annotations

from dataclasses import dataclass

from kv_action_router.contracts import ExecutionValue, InjectorEvent, TrajectoryChunk


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in the control loop.

    Attributes:
        kind: as in the feedback.
        reason: for people.
        now_ns: CLOCK_MONOTONIC of the tick [ns].
        epoch: in force after it.
        chunk: in question, or None.
        command_ns: with CHUNK_ADOPTED: when the first command made from it was published [ns].
        source: at fault: a node, a device, a joint; empty = the injector itself.
        execution: with DRIVE: the new execution value.
        value: of the signal that was judged, SI unit; NaN = none. ``limit`` likewise.
    """

    kind: InjectorEvent
    reason: str
    now_ns: int
    epoch: int
    chunk: TrajectoryChunk | None = None
    command_ns: int = 0
    source: str = ""
    execution: ExecutionValue | None = None
    value: float = float("nan")
    limit: float = float("nan")


@dataclass(slots=True)
class Counters:
    """Counted since activation."""

    ticks: int = 0
    confident_ticks: int = 0
    chunks_adopted: int = 0
    chunks_late: int = 0
    chunks_refused: int = 0
    commands_sent: int = 0
    late_commands_sent: int = 0
    refused_ticks: int = 0  # dt <= 0
    set_points_refused: int = 0  # ticks in which a path broke the limits and was left
