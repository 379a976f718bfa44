"""The simulated robot as one process sees it: sensors that are due come out, commands go in."""

from __future__ import annotations

import math
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kv_action_router.contracts import DriveSample, FloatArray, ImuSample, JointSample
from kv_action_router.errors import InputError
from kv_action_router.monitoring.samples import WrenchSample
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.connector import Connector
from kv_action_router.simulation.drives import Interface
from kv_action_router.simulation.pacing import Rate
from kv_action_router.simulation.placement import Reach, TargetPlacement
from kv_action_router.simulation.plant import Plant
from kv_action_router.simulation.screw import Screw
from kv_action_router.simulation.sensors import (
    DriveSensors,
    ImuSensor,
    JointSensors,
    WrenchSensor,
)
from kv_action_router.simulation.truth import Contact

_NO_VALUES: FloatArray = np.zeros(0)


@dataclass(frozen=True, slots=True)
class Samples:
    """What the sensors say in one step; None = not due.

    Attributes:
        now_ns: simulated CLOCK_MONOTONIC [ns].
        wrenches: what the wrench sensor said since the last step, oldest first.
        image_due: the camera takes an image now.
    """

    now_ns: int
    joints: JointSample
    wrenches: tuple[WrenchSample, ...]
    imu: ImuSample | None
    drives: DriveSample | None
    image_due: bool


class CellPlant(Protocol):
    """What the stages' surroundings ask of a plant."""

    dt: float
    position: FloatArray
    velocity: FloatArray

    @property
    def target(self) -> FloatArray:
        """True center of the target's top face, base frame [m] (3,)."""

    def place_of(self, target: str) -> FloatArray:
        """Return the true place of a thing to act on [m] (3,), by its name; empty = the target."""


class Cell(Protocol):
    """A robot with its work-place, seen by one process; attributes as in :class:`RobotCell`."""

    now_ns: int
    home: FloatArray
    contacts: list[Contact]
    force: float

    @property
    def plant(self) -> CellPlant:
        """What moves."""

    @property
    def screw(self) -> Screw | None:
        """The screw that stands in the target; None = this cell has none."""

    @property
    def connector(self) -> Connector | None:
        """The plug and its socket on a disc of their own; None = this cell has none."""

    def place_target(self) -> FloatArray:
        """Put the target somewhere else; return the center of its top [m] (3,)."""

    def clock(self) -> int:
        """Return the present simulated time [ns]."""

    def sense(self) -> Samples:
        """Read the sensors that are due."""

    def act(self, interface: Interface, values: FloatArray | None) -> None:
        """Take a command, None = silence, and let one step pass."""


class RobotCell:
    """Plant, sensors and drives on a clock that moves in :meth:`act` only, one physics step a call.

    Attributes:
        home: where the arm begins [rad] (n,).
        now_ns: simulated CLOCK_MONOTONIC [ns].
        contacts: touches of the target, oldest first; the owner takes them out.
        force: magnitude at the tool, measured in the newest step [N].
    """

    def __init__(self, config: SimulationConfig, robot: RobotModel, command_delay: int) -> None:
        """Build it, braked at home.

        Args:
            config: of the simulation.
            robot: model of the same robot.
            command_delay: steps between a command and the torque that it becomes.
        """
        generator = np.random.default_rng(config.seed)
        self.plant = plant = Plant(config, robot.home, robot.velocity_limit)
        self.home = robot.home
        self.now_ns = 1_000_000_000
        self.contacts: list[Contact] = []
        self.force = 0.0
        self._step_ns = round(plant.dt * 1e9)
        self._placement = TargetPlacement(config, Reach(robot), generator, plant.box.covers)
        self._joints = JointSensors(config, robot.n, generator)
        self._wrench = WrenchSensor(plant.model, plant.data, config, generator)
        self._drive_sensors = DriveSensors(config, robot.n)
        self._imu = ImuSensor(plant.model, plant.data, config, generator)
        self._imu_rate = Rate(config.imu_rate, plant.dt)
        self._drive_rate = Rate(config.drive_state_rate, plant.dt)
        self._camera_rate = Rate(config.camera_rate, plant.dt)
        # commands on their way, and when each was sent [us]
        self._pending: deque[tuple[Interface, FloatArray, int] | None] = deque(
            [None] * command_delay
        )

    @property
    def screw(self) -> Screw | None:
        """The screw that stands in the target; None = this cell has none."""
        return self.plant.screw

    @property
    def connector(self) -> Connector | None:
        """The plug and its socket on a disc of their own; None = this cell has none."""
        return self.plant.connector

    def place_target(self) -> FloatArray:
        """Put the target somewhere else at random; return the center of its top [m] (3,)."""
        plant = self.plant
        place = self._placement.random(plant.target, plant.tip)
        if plant.connector is not None:
            plant.place_connector(*self._placement.random(plant.target, plant.tip, place).tolist())
        plant.place_target(*place.tolist())
        return plant.target

    def clock(self) -> int:
        """Return the present simulated time [ns]; it stands still while the stages compute."""
        return self.now_ns

    def sense(self) -> Samples:
        """Read the sensors that are due."""
        plant, now_ns, steps = self.plant, self.now_ns, self.plant.steps
        joints, wrench = self._joints, self._wrench
        joints.read(plant.position, plant.velocity, plant.drives.torque)
        wrench.read()
        self.force = math.hypot(*wrench.wrench[:3])
        return Samples(
            now_ns=now_ns,
            joints=JointSample(
                plant.drives.names,
                joints.position.copy(),
                joints.velocity.copy(),
                joints.effort.copy(),
                now_ns,
                now_ns,
            ),
            wrenches=(WrenchSample(wrench.wrench, now_ns),),
            imu=self._read_imu() if self._imu_rate.due(steps) else None,
            drives=self._read_drives() if self._drive_rate.due(steps) else None,
            image_due=self._camera_rate.due(steps),
        )

    def act(self, interface: Interface, values: FloatArray | None) -> None:
        """Take a command, None = silence, and let one physics step pass."""
        self._pending.append(None if values is None else (interface, values, self.now_ns // 1000))
        command = self._pending.popleft()
        if command is not None:
            kind, wanted, sent_us = command
            with suppress(InputError):  # counted by the drives; a driver lives on
                self.plant.drives.command(kind, wanted, (), self.now_ns, sent_us)
        self.now_ns += self._step_ns
        contact = self.plant.step(self.now_ns)
        if contact is not None:
            self.contacts.append(contact)

    def _read_imu(self) -> ImuSample:
        imu = self._imu
        imu.read()
        reading = np.array(imu.reading)
        return ImuSample(reading[:4], reading[4:7], reading[7:], self.now_ns)

    def _read_drives(self) -> DriveSample:
        drives, measured = self.plant.drives, self._drive_sensors
        drives.warm()
        measured.read(drives.current, self.plant.voltage())
        return DriveSample(
            drives.names,
            drives.thermal.temperature.copy(),
            measured.current.copy(),
            drives.rated_current,
            drives.duty,
            _NO_VALUES,
            np.full(len(drives.names), drives.stopped),
            self.now_ns,
            measured.voltage.copy(),
        )
