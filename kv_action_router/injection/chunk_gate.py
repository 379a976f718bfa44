"""Which chunks may be followed: own epoch, newer, in time, and a decision where one is due."""

from __future__ import annotations

from kv_action_router.contracts import (
    TRIGGER_DEADLINE_NS,
    ChunkKind,
    InjectorEvent,
    TrajectoryChunk,
)
from kv_action_router.errors import ChunkRefusedError
from kv_action_router.injection.chunk_table import END_NS, ChunkChecker, ChunkTable
from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.execution_table import Snapshot
from kv_action_router.injection.measurement import JointTracker
from kv_action_router.injection.robot import JointModel
from kv_action_router.injection.set_point import SetPoint

_CLOCK_SLACK_NS = 1_000_000  # two processes may read one clock in either order
_EARLIEST_NS = 20_000_000  # a chunk may start this far in the future


class RefusalError(ChunkRefusedError):
    """A chunk is not followed; ``kind`` is the event that says so."""

    def __init__(self, kind: InjectorEvent, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class ChunkGate:
    """Admits chunks.

    Invariant: what is admitted has the epoch in force, a sequence above the last one adopted in
    this epoch, and a trigger that is at most 15 ms old.
    """

    def __init__(
        self,
        model: JointModel,
        config: InjectionConfig,
        joints: JointTracker,
        set_point: SetPoint,
    ) -> None:
        self._checker = ChunkChecker(model)
        self._joints = joints
        self._set_point = set_point
        self._distance = config.decision_distance_limit
        self._velocity = config.decision_velocity_limit
        self.last_sequence = 0
        self.needs_decision = False
        self.waiting: TrajectoryChunk | None = None  # its anchor has not come yet

    def new_epoch(self, *, needs_decision: bool) -> None:
        """Forget the sequence: whoever sends in the new epoch may have begun anew."""
        self.last_sequence = 0
        self.needs_decision = needs_decision
        self.waiting = None

    def adopted(self, chunk: TrajectoryChunk) -> None:
        """Note that a command made from a chunk has gone out."""
        self.last_sequence = chunk.decision.sequence
        self.needs_decision = False

    def admit(self, chunk: TrajectoryChunk, now_ns: int, epoch: int, limits: Snapshot) -> bool:
        """Let the set-point follow a chunk; return False when it waits for its anchor.

        Raises:
            ChunkRefusedError: it must not be followed; nothing has changed.
        """
        self.waiting = None
        self.check(chunk, now_ns, epoch)
        if chunk.anchor_ns > now_ns:
            self.waiting = chunk
            return False
        table = self._checker.check(chunk, limits)
        if self.needs_decision:
            self._check_start(table, self._joints)
        self._set_point.follow(table, limits)
        return True

    def check(self, chunk: TrajectoryChunk, now_ns: int, epoch: int) -> None:
        """Check what can be told from the header.

        Raises:
            RefusalError: naming the limit and the value received.
        """
        decision = chunk.decision
        if decision.epoch != epoch:
            raise RefusalError(
                InjectorEvent.CHUNK_EPOCH, f"epoch must be {epoch}, got {decision.epoch}"
            )
        if decision.sequence <= self.last_sequence:
            raise RefusalError(
                InjectorEvent.CHUNK_ORDER,
                f"sequence must be above {self.last_sequence}, got {decision.sequence}",
            )
        age = now_ns - decision.trigger_monotonic_ns
        if age < -_CLOCK_SLACK_NS or chunk.anchor_ns - now_ns > _EARLIEST_NS:
            raise RefusalError(
                InjectorEvent.CHUNK_INVALID,
                f"trigger and anchor must not lie in the future, got {-age * 1e-6:.1f} ms and "
                f"{(chunk.anchor_ns - now_ns) * 1e-6:.1f} ms",
            )
        if age > TRIGGER_DEADLINE_NS:
            raise self.late(age)
        if now_ns - chunk.anchor_ns >= END_NS:
            raise RefusalError(
                InjectorEvent.CHUNK_LATE,
                "ended before it arrived: its anchor is "
                f"{(now_ns - chunk.anchor_ns) * 1e-6:.1f} ms old",
            )
        if self.needs_decision and chunk.kind is not ChunkKind.DECISION:
            raise RefusalError(
                InjectorEvent.CHUNK_INVALID, "must be a fresh decision after a stop or fail-safe"
            )

    def _check_start(self, table: ChunkTable, joints: JointTracker) -> None:
        """Check that a decision after a stop or fail-safe starts at the measured state, at rest.

        Raises:
            RefusalError: naming the joint.
        """
        first = table.rows[0].tolist()
        n = len(joints.names)
        for i, name in enumerate(joints.names):
            if abs(first[n + i]) > self._velocity:
                raise RefusalError(
                    InjectorEvent.CHUNK_INVALID,
                    f"{name} must start with at most {self._velocity} rad/s, got "
                    f"{first[n + i]:.4f}",
                )
            distance = first[i] - joints.position[i]
            if joints.continuous[i]:
                distance = joints.shortest_turn(distance)
            if not table.relative[i] and abs(distance) > self._distance:
                raise RefusalError(
                    InjectorEvent.CHUNK_INVALID,
                    f"{name} must start within {self._distance} rad of the measured state, got "
                    f"{abs(distance):.4f}",
                )

    @staticmethod
    def late(age_ns: int) -> RefusalError:
        """Return the refusal of a chunk whose trigger is too old."""
        return RefusalError(
            InjectorEvent.CHUNK_LATE,
            f"trigger must be at most {TRIGGER_DEADLINE_NS * 1e-6:.0f} ms old, got "
            f"{age_ns * 1e-6:.1f} ms",
        )
