"""A two-joint robot, chunks for it, and a bench that closes the loop over a double integrator."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

from kv_action_router.contracts import (
    CHUNK_PERIOD,
    CHUNK_SAMPLES,
    SLOT,
    SLOT_NAMES,
    AuxiliaryOutput,
    ChunkKind,
    Decision,
    ExecutionValue,
    InjectorEvent,
    JointReading,
    TrajectoryChunk,
)
from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.controller import InjectionController
from kv_action_router.injection.events import Event
from kv_action_router.injection.signals import Command, Inputs
from kv_action_router.tasks.rules import Rule

MS = 1_000_000
START_NS = 1_000_000_000_000
PERIOD_NS = 2 * MS
NODES = ("encoder", "manager")
GRAVITY = 5.0  # [N m] of joint a, when it points sideways


class TwoJoints:
    """Joint a lifts against gravity, joint b turns without end; both have 1 kg m^2."""

    def __init__(self) -> None:
        self.joint_names = ("a", "b")
        self.lower = np.array([-3.0, -math.inf])
        self.upper = np.array([3.0, math.inf])
        self.velocity_limit = np.array([2.0, 2.0])
        self.acceleration_limit = np.array([10.0, 10.0])
        self.effort_limit = np.array([50.0, 50.0])
        self.continuous = np.array([False, True])

    def gravity_torque(self, q: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):  # of an infinite angle: NaN, as pinocchio gives
            return np.array([GRAVITY * np.cos(q[0]), 0.0])

    def inverse_dynamics(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.gravity_torque(q) + a


DEFAULTS = {
    "proportional_gain": 900.0,
    "integral_gain": 900.0,
    "derivative_gain": 60.0,
    "integral_limit": 10.0,
    "gravity_scale": 1.0,
    "stage_effort_limit": 50.0,
    "stage_velocity_limit": 2.0,
    "stage_force_limit": 100.0,
    "protective_effort_limit": 50.0,
    "protective_velocity_limit": 2.0,
    "protective_force_limit": 100.0,
    "torque_constant": 10.0,
    "temperature_limit": 70.0,
    "derating": 1.0,
    "derated_share": 0.5,
    "friction_velocity": 0.02,
    "rated_current": 5.0,
    "stall_velocity": 0.01,
    "stall_effort": 45.0,
    "acceleration_limit": 10.0,
}


def execution_value(version: int = 1, base: int = 0, **slots: float) -> ExecutionValue:
    """Return values of both joints; slots that are not named get their defaults, else 0."""
    row = [{**DEFAULTS, **slots}.get(name, 0.0) for name in SLOT_NAMES]
    return ExecutionValue(
        ("a", "b"),
        np.array([row, row], dtype=np.float32),
        np.ones(2, dtype=np.bool_),
        version,
        base,
    )


def with_slot(value: ExecutionValue, drive: int, name: str, number: float) -> ExecutionValue:
    """Return the value with one slot changed."""
    slots = value.slots.copy()
    slots[drive, SLOT[name]] = number
    return dataclasses.replace(value, slots=slots)


Path = Callable[[float], tuple[Sequence[float], Sequence[float]]]  # t [s] -> position, velocity


def chunk(
    path: Path,
    anchor_ns: int,
    *,
    sequence: int = 1,
    epoch: int = 1,
    kind: ChunkKind = ChunkKind.DECISION,
    trigger_ns: int | None = None,
    columns: tuple[str, ...] = ("a/position", "b/position", "a/velocity", "b/velocity"),
    auxiliary: tuple[AuxiliaryOutput, ...] = (),
    ends_at_rest: bool = False,
) -> TrajectoryChunk:
    """Return 100 samples of a path that is given over the time since the anchor."""
    rows = []
    for index in range(CHUNK_SAMPLES):
        position, velocity = path(index * CHUNK_PERIOD)
        rows.append([*position, *velocity])
    return TrajectoryChunk(
        decision=Decision(
            trigger_monotonic_ns=anchor_ns if trigger_ns is None else trigger_ns,
            sequence=sequence,
            epoch=epoch,
        ),
        kind=kind,
        anchor_ns=anchor_ns,
        columns=columns,
        samples=np.array(rows, dtype=float),
        auxiliary=auxiliary,
        entry_id=0,
        entry_version=0,
        task="task",
        stage="stage",
        phase=0.5,
        ends_at_rest=ends_at_rest,
    )


def holding(position: Sequence[float]) -> Path:
    """Return the path that stands still."""
    return lambda t: (position, [0.0, 0.0])


def moving(position: Sequence[float], velocity: Sequence[float]) -> Path:
    """Return a straight path."""
    return lambda t: ([p + v * t for p, v in zip(position, velocity, strict=True)], velocity)


def shifted(path: Path, seconds: float) -> Path:
    """Return a path from a later point on."""
    return lambda t: path(t + seconds)


def speeding_up(start: Sequence[float], speed: float, acceleration: float = 4.0) -> Path:
    """Return a path of both joints from rest to a constant speed."""
    until = speed / acceleration

    def path(t: float) -> tuple[list[float], list[float]]:
        s = min(max(t, 0.0), until)
        moved = 0.5 * acceleration * s * s + speed * max(0.0, t - until)
        return [p + moved for p in start], [acceleration * s] * 2

    return path


class Bench:
    """Controller and plant, a tick at a time; the plant takes effort, velocity or position."""

    def __init__(
        self,
        start: Sequence[float] = (0.0, 0.0),
        *,
        brake_ns: int = 40 * MS,
        rules: Sequence[Rule] = (),
        **parameters: object,
    ) -> None:
        self.model = TwoJoints()
        self.config = InjectionConfig(**{"watched_nodes": NODES, **parameters})
        self.controller = InjectionController(
            self.model, self.config, execution_value(), rules=rules
        )
        self.now = START_NS
        self.q, self.v = list(start), [0.0, 0.0]
        self.inputs = Inputs()
        self.events: list[Event] = []
        self.silent_from: int | None = None  # joint states stop
        self.lost: set[str] = set()  # nodes whose heartbeat stops
        self.log: list[tuple[list[float], list[float], list[float]]] = []  # set-points and command
        self.command: Command = self.controller.command
        self._sent_ns = 0
        self._brake_ns = brake_ns
        self.controller.activate(self.now)

    @property
    def modes(self):
        return self.controller.modes

    def tick(self, chunk: TrajectoryChunk | None = None, **inputs: object) -> Command:
        """Go on by one period."""
        self.now += PERIOD_NS
        if self.silent_from is None or self.now < self.silent_from:
            self.inputs.joints = JointReading(
                ("a", "b"), list(self.q), list(self.v), [], self.now, self.now - MS
            )
        for node in NODES:
            if node not in self.lost:
                self.inputs.heartbeats[node] = self.now - MS
        self.inputs.chunk = chunk
        for name, value in inputs.items():
            setattr(self.inputs, name, value)
        self.command = self.controller.tick(self.now, self.inputs)
        self.inputs.clear()
        if self.command.send:
            self.controller.sent(self.now)
            self._sent_ns = self.now
        self._integrate()
        point = self.controller.set_point
        self.log.append((list(point.position), list(point.velocity), list(self.command.values)))
        while self.modes.events:
            self.events.append(self.modes.events.popleft())
        return self.command

    def run(self, milliseconds: float) -> None:
        """Go on without chunks."""
        for _ in range(round(milliseconds * MS / PERIOD_NS)):
            self.tick()

    def follow(
        self, path: Path, milliseconds: float, *, kind: ChunkKind = ChunkKind.DECISION
    ) -> int:
        """Follow a path from now on by a chunk every 20 ms; return the last sequence."""
        begin = self.now + PERIOD_NS
        sequence = self.last_sequence
        for index in range(round(milliseconds * MS / PERIOD_NS)):
            new = None
            if index % 10 == 0:
                sequence += 1
                since = index * PERIOD_NS * 1e-9
                new = chunk(
                    shifted(path, since),
                    begin + index * PERIOD_NS,
                    sequence=sequence,
                    epoch=self.controller.epoch,
                    kind=kind if index == 0 else ChunkKind.CONTINUATION,
                )
            self.tick(new)
        return sequence

    @property
    def last_sequence(self) -> int:
        """Largest sequence that was adopted."""
        adopted = [e.chunk.decision.sequence for e in self.events if e.chunk is not None]
        return max(adopted, default=0)

    def kinds(self) -> list[InjectorEvent]:
        """Return what happened, without adoptions."""
        return [e.kind for e in self.events if e.kind is not InjectorEvent.CHUNK_ADOPTED]

    def steps(self) -> tuple[float, float]:
        """Return the largest position and velocity step of the set-point in one tick."""
        positions = np.array([entry[0] for entry in self.log])
        velocities = np.array([entry[1] for entry in self.log])
        return (
            float(np.abs(np.diff(positions, axis=0)).max()),
            float(np.abs(np.diff(velocities, axis=0)).max()),
        )

    def _integrate(self) -> None:
        dt = PERIOD_NS * 1e-9
        if self.now - self._sent_ns > self._brake_ns:
            self.v = [0.0, 0.0]
            return
        values = self.command.values
        if not self.command.send:
            return
        interface = self.config.command_interface
        gravity = self.model.gravity_torque(np.array(self.q))
        for i in range(2):
            if interface == "effort":
                self.v[i] += (values[i] - float(gravity[i])) * dt
            elif interface == "velocity":
                self.v[i] = values[i]
            elif interface == "position":
                self.v[i] = (values[i] - self.q[i]) / dt
            self.q[i] += self.v[i] * dt
