"""What goes into a tick and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from kv_action_router.contracts import (
    AuxiliaryOutput,
    DriveSample,
    ExecutionValue,
    ImuSample,
    JointReading,
    TrajectoryChunk,
)
from kv_action_router.injection.stop_latch import StopRequest


@dataclass(slots=True)
class Inputs:
    """What was received since the last tick; made once and cleared for each tick.

    Attributes:
        heartbeats: node -> receipt [ns].
        imu_receipt_ns: of the newest IMU sample [ns]; 0 = none.
        imu: a sample for the acceleration trims; not every one has to be handed over.
        starting: nodes whose heartbeat says that they are not active yet.
    """

    joints: JointReading | None = None
    chunk: TrajectoryChunk | None = None
    drives: DriveSample | None = None
    imu: ImuSample | None = None
    imu_receipt_ns: int = 0
    execution: ExecutionValue | None = None
    stops: list[StopRequest] = field(default_factory=list)
    heartbeats: dict[str, int] = field(default_factory=dict)
    starting: set[str] = field(default_factory=set)

    @property
    def concern_drives(self) -> bool:
        """Whether there is anything for the execution layer."""
        return not (self.drives is None and self.imu is None and self.execution is None)

    def clear(self) -> None:
        """Forget everything."""
        self.joints = self.chunk = self.drives = self.imu = self.execution = None
        self.imu_receipt_ns = 0
        if self.stops:
            self.stops.clear()
        if self.heartbeats:
            self.heartbeats.clear()
            self.starting.clear()


@dataclass(slots=True)
class Command:
    """What a tick decided; the same object is returned by every tick.

    Attributes:
        send: False = say nothing to the drives.
        values: in the interface's SI unit, in the model's joint order (n,).
        adopting: the chunk from which this command is the first one, or None.
        publish_before_ns: with ``adopting``: CLOCK_MONOTONIC after which this command must not go
            out any more [ns]; call ``InjectionController.withdraw`` then.
        auxiliary: outputs that are due now.
    """

    values: list[float]
    send: bool = False
    adopting: TrajectoryChunk | None = None
    publish_before_ns: int = 0
    auxiliary: list[AuxiliaryOutput] = field(default_factory=list)
