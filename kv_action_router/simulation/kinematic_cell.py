"""A robot that goes where it is told: for long runs in which dynamics decide nothing.

The arm is where its commanded positions were a step ago, a work-piece gives way like a spring.
Nothing is rendered, no torque is computed, and a step is ten times longer than one of the physics,
as long as a chunk is in force: the controller ticks at 50 Hz. Joint noise and the wrench's noise
are those of the simulated robot; the wrench is read four times a step.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

import numpy as np

from kv_action_router.contracts import DriveSample, FloatArray, JointSample
from kv_action_router.errors import SimulationError
from kv_action_router.monitoring.samples import WrenchSample
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.cell import Samples
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.drives import Interface
from kv_action_router.simulation.pacing import Rate
from kv_action_router.simulation.sensors import JointSensors, Noise
from kv_action_router.simulation.truth import Contact

STEP = 0.020  # [s]
STIFFNESS = 4000.0  # [N/m] of a work-piece under the tip
_DRIVE_RATE = 10.0  # [Hz]
_WRENCHES = 4  # samples of the wrench in a step
_START_NS = 1_000_000_000
_NOTHING: FloatArray = np.zeros(0)


class KinematicPlant:
    """Arm and work-piece.

    Attributes:
        dt: time of a step [s].
        steps: that have passed.
        position, velocity: of the joints [rad], [rad/s] (n,).
        target: center of the work-piece's top face, base frame [m] (3,).
    """

    def __init__(self, robot: RobotModel, radius: float, target: FloatArray) -> None:
        """Begin at home.

        Args:
            robot: whose kinematics count; used by this object alone.
            radius: of the work-piece [m].
            target: center of its top face [m] (3,).
        """
        self.dt = STEP
        self.steps = 0
        self.position: FloatArray = np.array(robot.home)
        self.velocity: FloatArray = np.zeros(robot.n)
        self.target = target
        self._robot = robot
        self._radius = radius
        self._touched = False
        self.tip: FloatArray = robot.forward(self.position)[0]

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self.steps * self.dt

    def place_target(self, position: FloatArray) -> None:
        """Put the work-piece somewhere else, center of its top face [m] (3,)."""
        self.target = position
        self._touched = False

    def place_of(self, target: str) -> FloatArray:
        """Return the true place of a thing to act on [m] (3,)."""
        return self.target

    def step(self, position: FloatArray | None) -> Contact | None:
        """Let the arm go to commanded positions [rad] (n,), None = stay; return a new touch."""
        wanted = self.position if position is None else position
        self.velocity = (wanted - self.position) / self.dt
        self.position = wanted
        self.tip = self._robot.forward(wanted)[0]
        self.steps += 1
        force = self.force
        if force == 0.0 or self._touched:
            return None
        self._touched = True
        error = math.dist(self.tip[:2], self.target[:2])
        return Contact(self.tip, self.target, self.tip, error, force, "tip")

    @property
    def force(self) -> float:
        """With which the work-piece pushes the tip up [N]."""
        depth = float(self.target[2] - self.tip[2])
        if depth <= 0.0 or math.dist(self.tip[:2], self.target[:2]) > self._radius:
            return 0.0
        return STIFFNESS * depth


class KinematicCell:
    """A robot cell, in the place of ``RobotCell``.

    Attributes:
        plant: arm and work-piece.
        home: where the arm begins [rad] (n,).
        now_ns: simulated CLOCK_MONOTONIC [ns].
        contacts: touches of the work-piece, oldest first; the owner takes them out.
        force: measured at the tool in the newest step [N].
        temperature: of the drives [degC] (n,); the owner sets it.
    """

    def __init__(
        self,
        config: SimulationConfig,
        robot: RobotModel,
        command_delay: int,
        next_place: Callable[[], FloatArray],
    ) -> None:
        """Build it.

        Args:
            config: noise, camera's rate, size of the work-pieces.
            robot: model of the robot.
            command_delay: steps between a command and the position that it becomes.
            next_place: center of the next work-piece's top face, base frame [m] (3,).
        """
        generator = np.random.default_rng(config.seed)
        start = np.array([*config.target_start, config.target_height])
        self.plant = KinematicPlant(robot, config.target_radius, start)
        self.home = robot.home
        self.now_ns = _START_NS
        self.contacts: list[Contact] = []
        self.force = 0.0
        # it has no contact that a bit could find one by
        self.screw: None = None
        self.connector: None = None
        self.temperature: FloatArray = np.array(config.initial_temperature)
        self._names = robot.joint_names
        self._next_place = next_place
        self._joints = JointSensors(config, robot.n, generator)
        self._wrench = Noise([(config.force_noise, 3), (config.torque_noise, 3)], generator)
        self._no_torque = np.zeros(robot.n)
        self._camera_rate = Rate(config.camera_rate, STEP)
        self._drive_rate = Rate(_DRIVE_RATE, STEP)
        self._step_ns = round(STEP * 1e9)
        self._pending: deque[FloatArray | None] = deque([None] * command_delay)

    def place_target(self) -> FloatArray:
        """Bring the next work-piece; return the center of its top [m] (3,)."""
        self.plant.place_target(self._next_place())
        return self.plant.target

    def clock(self) -> int:
        """Return the present simulated time [ns]; it stands still while the stages compute."""
        return self.now_ns

    def sense(self) -> Samples:
        """Read the sensors that are due."""
        plant, now_ns, joints = self.plant, self.now_ns, self._joints
        joints.read(plant.position, plant.velocity, self._no_torque.tolist())
        wrenches = tuple(self._read_wrench(number) for number in range(1 - _WRENCHES, 1))
        self.force = math.hypot(*wrenches[-1].values[:3])
        return Samples(
            now_ns=now_ns,
            joints=JointSample(
                self._names,
                joints.position.copy(),
                joints.velocity.copy(),
                joints.effort.copy(),
                now_ns,
                now_ns,
            ),
            wrenches=wrenches,
            imu=None,
            drives=self._read_drives() if self._drive_rate.due(plant.steps) else None,
            image_due=self._camera_rate.due(plant.steps),
        )

    def act(self, interface: Interface, values: FloatArray | None) -> None:
        """Take commanded positions, None = silence, and let one step pass.

        Raises:
            SimulationError: another interface than positions.
        """
        if interface is not Interface.POSITION:
            raise SimulationError(
                f"command_interface must be {Interface.POSITION.value!r} without dynamics,"
                f" got {interface.value!r}"
            )
        self._pending.append(values)
        self.now_ns += self._step_ns
        contact = self.plant.step(self._pending.popleft())
        if contact is not None:
            self.contacts.append(contact)

    def _read_wrench(self, number: int) -> WrenchSample:
        """Return one of a step's samples; 0 = the newest."""
        values = self._wrench.row().tolist()
        values[2] += self.plant.force
        return WrenchSample(tuple(values), self.now_ns + number * self._step_ns // _WRENCHES)

    def _read_drives(self) -> DriveSample:
        return DriveSample(
            self._names,
            self.temperature,
            _NOTHING,
            _NOTHING,
            _NOTHING,
            _NOTHING,
            np.zeros(len(self._names), bool),
            self.now_ns,
        )
