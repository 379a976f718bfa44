"""Robot, drives and scene as one thing that steps: no ROS, no clock of its own.

plant = Plant(config, home, velocity_limit)
plant.drives.command(Interface.EFFORT, torque, (), now_ns)
contact = plant.step(now_ns)
"""

from __future__ import annotations

import mujoco
import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import ConfigError, InputError, SimulationError
from kv_action_router.simulation.bit import Bit
from kv_action_router.simulation.box import Box
from kv_action_router.simulation.clutter import Clutter
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.connector import Connector, ConnectorConfig
from kv_action_router.simulation.drives import DriveBank
from kv_action_router.simulation.latch import SocketConfig
from kv_action_router.simulation.scene import TARGET_BODY, build_scene
from kv_action_router.simulation.screw import Screw, ScrewConfig
from kv_action_router.simulation.thermal import ThermalModel
from kv_action_router.simulation.thread import ThreadConfig
from kv_action_router.simulation.truth import Contact, ContactTruth
from kv_action_router.simulation.wear import Wear

# A brake is dry friction far above the drive's torque. The solver's friction creeps under load; the
# stiffest impedance it takes leaves some 1e-5 rad/s.
_BRAKE_SOLREF = (0.002, 1.0)
_BRAKE_SOLIMP = (0.9999, 0.9999, 0.001, 0.5, 2.0)
_SCENE_STREAM = 7  # a random stream of its own: targets stay where they are
CONNECTOR = "socket"  # what task files call the disc that the connector is on
_BESIDE = 0.15  # [m] of the target, where the connector begins
_AGEING_STEPS = 500  # of the physics, between two of the drives' ageing


class Plant:
    """The simulated robot in its scene. One thread may use it.

    Invariant: time passes only in :meth:`step`, one ``config.step`` a call.
    """

    def __init__(
        self, config: SimulationConfig, home: FloatArray, velocity_limit: FloatArray
    ) -> None:
        """Build the scene with the arm at ``home`` [rad] (n,), held by its brakes.

        Args:
            config: of the simulation.
            home: joint positions at start [rad] (n,).
            velocity_limit: for the drives' own velocity and position loops [rad/s] (n,).

        Raises:
            ConfigError: a list of one value a drive has another length.
            RobotModelError: see :func:`build_scene`.
        """
        self.model = build_scene(config)
        self.data = mujoco.MjData(self.model)
        self.dt = config.step
        self.steps = 0
        size = self.model.nv
        for name in ("torque_constant", "initial_temperature"):
            if len(getattr(config, name)) != size:
                raise ConfigError(name, f"{size} values, one a drive", getattr(config, name))
        data = self.data
        # Views of MuJoCo's memory, made once: making one costs as much as a tenth of a step.
        self.position: FloatArray = data.qpos  # true joint positions [rad] (n,)
        self.velocity: FloatArray = data.qvel  # true joint velocities [rad/s] (n,)
        self._applied, self._bias = data.qfrc_applied, data.qfrc_bias
        self.position[:] = home
        mujoco.mj_forward(self.model, data)
        generator = np.random.default_rng((config.seed, _SCENE_STREAM))
        self.bit = Bit(self.model, data)
        self.screw: Screw | None = None
        if config.has_screw:
            self.screw = Screw(self.model, data, ScrewConfig(), ThreadConfig(), self.bit, generator)
        self.connector: Connector | None = None
        if config.has_connector:
            self.connector = Connector(
                self.model, data, ConnectorConfig(), SocketConfig(), self.bit
            )
            x, y = config.target_start
            self.connector.renew(np.array([x, y + _BESIDE, config.target_height]))
        self._clutter = Clutter(self.model, data, config, generator)

        effort_limit = np.array(self.model.jnt_actfrcrange[:, 1])
        torque_constant = np.array(config.torque_constant)
        thermal = ThermalModel(
            effort_limit / torque_constant,
            np.array(config.initial_temperature),
            ambient=config.ambient_temperature,
            rated_rise=config.rated_temperature_rise,
            time_constant=config.thermal_time_constant,
            temperature_coefficient=config.temperature_coefficient,
        )
        names = [config.joint_prefix + self.model.joint(i).name for i in range(self.model.njnt)]
        self.drives = DriveBank(
            names,
            effort_limit,
            velocity_limit,
            torque_constant,
            thermal,
            config.command_timeout,
            config.quick_stop,
            delay_limit=config.command_delay_limit,
            following_error=config.following_error,
        )
        self.wear = Wear(
            torque_constant,
            np.full(size, config.winding_resistance),
            config.temperature_coefficient,
            torque_loss=config.torque_constant_loss,
            friction_rise=config.friction_rise,
            resistance_rise=config.resistance_rise,
        )
        self.truth = ContactTruth(self.model)
        self.box = Box(self.model, data, config.target_radius)
        self._new_friction = np.array(self.model.dof_frictionloss)
        self._new_damping = np.array(self.model.dof_damping)
        self._friction = self._new_friction
        self._friction_solref = np.array(self.model.dof_solref)
        self._friction_solimp = np.array(self.model.dof_solimp)
        self._brake_friction = config.brake_ratio * effort_limit
        self._blocked = [False] * len(names)
        self._held = False
        self._wanted = np.zeros(size)
        self._target_height = config.target_height
        self._mocap = int(self.model.body_mocapid[self.model.body(TARGET_BODY).id])
        self._set_brakes(True)
        self._age, self._ageing_speed = config.age, config.ageing_speed
        if config.age:
            self.grow_old(config.age)

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self.steps * self.dt

    @property
    def target(self) -> FloatArray:
        """True center of the target's top face, base frame [m] (3,)."""
        return np.array(self.data.mocap_pos[self._mocap])

    @property
    def tip(self) -> FloatArray:
        """True foremost point of the tool, base frame [m] (3,)."""
        return self.truth.tip(self.data)

    def place_of(self, target: str) -> FloatArray:
        """Return the true place of one of the things to act on, base frame [m] (3,).

        Args:
            target: name of it, as in task files; empty = the target.
        """
        if target == CONNECTOR and self.connector is not None:
            return self.connector.place
        return self.target

    def place_connector(self, x: float, y: float) -> None:
        """Put a fresh connector on the table with its disc's center at x, y [m].

        Raises:
            SimulationError: this cell has none.
        """
        if self.connector is None:
            raise SimulationError("this cell has no connector")
        self.connector.renew(np.array([x, y, self._target_height]))

    def place_target(self, x: float, y: float, yaw: float = 0.0) -> None:
        """Put the target on the table with its center at x, y [m], turned by ``yaw`` [rad].

        Of several works it is placed last: what else lies on the table is arranged around all.
        """
        self.data.mocap_pos[self._mocap] = (x, y, self._target_height)
        self.data.mocap_quat[self._mocap] = (np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2))
        self.truth.rearm()
        self._arrange()

    def place_box(self, x: float, y: float, size: FloatArray, yaw: float = 0.0) -> None:
        """Put the box on the table; arguments and errors as :meth:`Box.place`."""
        self.box.place(x, y, size, self.target, yaw)

    def step(self, now_ns: int) -> Contact | None:
        """Advance one physics step; return the touch of the target that began in it, if any.

        Args:
            now_ns: CLOCK_MONOTONIC, against which the drives' time-out runs [ns].
        """
        drives = self.drives
        drives.update(self.position, self.velocity, self.dt, now_ns)
        if drives.braked is not self._held:
            self._set_brakes(drives.braked)
        acceleration = drives.wanted_acceleration
        wanted = None
        if acceleration is not None:
            mujoco.mj_mulM(self.model, self.data, self._wanted, acceleration)
            self._wanted += self._bias
            wanted = self._wanted
        self._applied[:] = self.wear.torque(drives.apply(wanted, self.dt))
        if self.screw is not None:
            self.bit.before_step()
            self.screw.before_step(braked=drives.braked)
        if self.connector is not None:
            self.connector.before_step()
        mujoco.mj_step(self.model, self.data)
        if self.screw is not None:
            self.screw.after_step()
        if self.connector is not None:
            self.connector.after_step()
        if self.screw is not None:
            self.bit.after_step()
        self.steps += 1
        if self._ageing_speed and self.steps % _AGEING_STEPS == 0:
            self.grow_old(self._age + self._ageing_speed * self.time / 3600.0)
        self.box.check()
        return self.truth.check(self.data)

    def grow_old(self, hours: float) -> None:
        """Let the drives be ``hours`` old: their torque, friction and resistance follow."""
        self.wear.grow(hours)
        self._friction = self._new_friction * self.wear.friction
        self.model.dof_damping[:] = self._new_damping * self.wear.friction
        self._set_brakes(self._held)

    def voltage(self) -> FloatArray:
        """Return the voltage at each drive's winding [V] (n,)."""
        drives = self.drives
        return self.wear.voltage(drives.current, drives.thermal.temperature, self.velocity)

    def _arrange(self) -> None:
        """Let a fresh screw stand in the target, and change what lies around it."""
        if self.screw is not None:
            self.screw.renew(self.target)
        work = [self.target]
        if self.connector is not None:
            work.append(self.connector.place)
        self._clutter.shuffle(*work)

    def block(self, joint: str) -> None:
        """Let one joint be stuck, as by a jammed gear; empty = none is any more.

        Raises:
            InputError: there is no such joint.
        """
        names = self.drives.names
        if joint and joint not in names:
            raise InputError("blocked joint", f"one of {', '.join(names)}", joint)
        self._blocked = [name == joint for name in names]
        self._set_brakes(self._held)

    def _set_brakes(self, engaged: bool) -> None:
        self._held = engaged
        for dof, blocked in enumerate(self._blocked):
            held = engaged or blocked
            friction = self._brake_friction if held else self._friction
            self.model.dof_frictionloss[dof] = friction[dof]
            self.model.dof_solref[dof] = _BRAKE_SOLREF if held else self._friction_solref[dof]
            self.model.dof_solimp[dof] = _BRAKE_SOLIMP if held else self._friction_solimp[dof]
