"""Stand-ins for what is physical; the rules of authority are the real code's.

Time stands still at ``NOW``: what depends on it is an action of its own (a chunk grows too old, a
cause has been gone for long, chunks run out).
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from kv_action_router.contracts import ChunkKind, Decision, TrajectoryChunk
from kv_action_router.injection.chunk_gate import ChunkGate
from kv_action_router.injection.controller import InjectionController
from kv_action_router.injection.events import Counters
from kv_action_router.injection.set_point import Path
from kv_action_router.injection.signals import Command
from kv_action_router.synthesis.decider import Decided
from kv_action_router.synthesis.motion_in_force import MotionInForce

NOW = 1_000_000_000_000
OLD = 20_000_000  # [ns] a trigger that is older than 15 ms
NOTHING = np.zeros(0)


class Arm:
    """Set-point and joints: it moves or not, on a chunk, on a ramp, or held."""

    names: tuple[str, ...] = ()
    position: tuple[float, ...] = ()
    velocity: tuple[float, ...] = ()
    complete = True

    def __init__(self) -> None:
        self.moving = False
        self.path = Path.HOLD

    def brake(self, share: float, limits: Any) -> None:
        self.path = Path.RAMP if self.moving else Path.HOLD

    def start(self, *_: Any) -> None:
        self.path = Path.RAMP if self.moving else Path.HOLD

    def follow(self, table: Any, limits: Any) -> None:
        self.moving, self.path = True, Path.CHUNK

    def rest(self) -> None:
        self.moving, self.path = False, Path.HOLD


class SetPointDouble:
    """The same arm, as the state machine asks the set-point."""

    def __init__(self, arm: Arm) -> None:
        self._arm = arm

    def __getattr__(self, name: str) -> Any:
        return getattr(self._arm, name)

    @property
    def at_rest(self) -> bool:
        return not self._arm.moving


class JointsDouble:
    """The same arm, as it is measured."""

    names: tuple[str, ...] = ()
    position: tuple[float, ...] = ()
    velocity: tuple[float, ...] = ()
    complete = True

    def __init__(self, arm: Arm) -> None:
        self._arm = arm

    def at_rest(self, limit: float) -> bool:
        return not self._arm.moving


class FailSafeDouble:
    """Brakes; its value is reached at rest."""

    sends = True

    def __init__(self, arm: Arm) -> None:
        self._arm = arm

    def begin(self, *_: Any, **__: Any) -> None:
        self._arm.brake(1.0, None)

    @property
    def reached(self) -> bool:
        return not self._arm.moving


class SupervisorDouble:
    """Whether a source is lost is an action."""

    def __init__(self) -> None:
        self.lost = False

    def start(self, now_ns: int) -> None:
        pass

    def judge(self, *_: Any) -> tuple[str, str]:
        return ("a_node", "no sign of life") if self.lost else ("", "")


class Gate(ChunkGate):
    """The real gate, but for the samples: where a decision begins is physical."""

    def __init__(self, arm: Arm) -> None:
        self._checker = SimpleNamespace(check=lambda chunk, limits: chunk)
        self._joints = self._set_point = SetPointDouble(arm)
        self.last_sequence = 0
        self.needs_decision = False
        self.waiting = None

    def _check_start(self, table: Any, joints: Any) -> None:
        pass


class Controller(InjectionController):
    """The real way of a chunk through a tick."""

    def __init__(self, modes: Any, gate: ChunkGate) -> None:
        self.modes, self._gate = modes, gate
        self.drives = SimpleNamespace(limits=None)
        self.command, self.counters = Command([0.0]), Counters()
        self._law = SimpleNamespace(save=lambda: None)
        self._kept = [0.0]
        self._margin_ns = self._last_ns = 0

    def take(self, chunk: TrajectoryChunk) -> bool:
        """Consider a chunk and send its first command; return whether it is followed now."""
        self._consider(NOW, chunk)
        adopted = self.command.adopting is not None
        self._commit(NOW)
        return adopted


class Motion(MotionInForce):
    """The real tie to the injector's epoch; the path itself is left out."""

    def __init__(self, tracking: Any, arm: Arm) -> None:
        super().__init__(None, None, tracking)  # type: ignore[arg-type]
        self._arm = arm

    def followed(self, reference: Any) -> bool:
        return True

    def start_state(self, now_ns: int) -> Any:
        return STANDING

    def begin(self, motion: Any, now_ns: int, phase: float = 0.0) -> Any:
        self._epoch = self._tracking.epoch
        self.reference = REFERENCE
        return self.reference

    def brake(self, now_ns: int) -> None:
        pass

    def release(self, now_ns: int) -> None:
        pass

    def at_rest(self, now_ns: int) -> bool:
        return not self._arm.moving


STANDING = SimpleNamespace(position=NOTHING)


class _Reference:
    stops = False

    def phase(self, now_ns: int) -> float:
        return 0.0

    def state(self, now_ns: int) -> Any:
        return STANDING


REFERENCE: Any = _Reference()


class DeciderDouble:
    """Finds a motion always."""

    def decide(self, *_: Any, **__: Any) -> Decided:
        return Decided(None, None, False)  # type: ignore[arg-type]

    def check_rest(self, *_: Any) -> None:
        pass


class ChunksDouble:
    """Makes chunks without samples."""

    def make(
        self, reference: Any, anchor_ns: int, decision: Decision, kind: ChunkKind, **_: Any
    ) -> TrajectoryChunk:
        return TrajectoryChunk(
            decision, kind, anchor_ns, (), NOTHING, (), 0, 0, "", "", 0.0, ends_at_rest=False
        )
