"""What the robot's sensors report: joint states, wrench and IMU, with noise by parameter.

Readings are written into arrays that the object keeps, so a loop at 500 Hz allocates nothing.
"""

from __future__ import annotations

import mujoco
import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.scene import WRENCH_SITE

_NOISE_ROWS = 4093  # prime, so that sensors read at different rates don't fall into step


class Noise:
    """White noise from a table: one row a reading, a few hundred nanoseconds each."""

    def __init__(self, deviation: FloatArray, generator: np.random.Generator) -> None:
        """Fill the table; ``deviation`` is the standard deviation of each column (n,)."""
        self._rows = generator.standard_normal((_NOISE_ROWS, len(deviation))) * deviation
        self._next = 0

    def add_to(self, reading: FloatArray) -> None:
        """Add one row to a reading (n,)."""
        reading += self._rows[self._next]
        self._next = (self._next + 1) % _NOISE_ROWS


class JointSensors:
    """Encoders and torque estimates: position [rad], velocity [rad/s], effort [N m], each (n,)."""

    def __init__(self, config: SimulationConfig, size: int, generator: np.random.Generator) -> None:
        self.position: FloatArray = np.zeros(size)
        self.velocity: FloatArray = np.zeros(size)
        self.effort: FloatArray = np.zeros(size)
        self._resolution = config.position_resolution
        self._position_noise = Noise(np.full(size, config.position_noise), generator)
        self._velocity_noise = Noise(np.full(size, config.velocity_noise), generator)
        self._effort_noise = Noise(np.full(size, config.effort_noise), generator)

    def read(self, position: FloatArray, velocity: FloatArray, torque: FloatArray) -> None:
        """Measure true positions [rad], velocities [rad/s] and motor torques [N m], each (n,)."""
        self.position[:] = position
        self._position_noise.add_to(self.position)
        if self._resolution > 0.0:
            np.divide(self.position, self._resolution, out=self.position)
            np.rint(self.position, out=self.position)
            self.position *= self._resolution
        self.velocity[:] = velocity
        self._velocity_noise.add_to(self.velocity)
        self.effort[:] = torque
        self._effort_noise.add_to(self.effort)


class WrenchSensor:
    """What the surroundings exert on the tool, at the flange, in the flange's frame.

    The tool's weight is taken off exactly, as a driver does that knows its payload; what the tool's
    mass resists to acceleration stays in, as on a real robot: 0.6 N for each m/s^2 here.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        config: SimulationConfig,
        generator: np.random.Generator,
    ) -> None:
        self.wrench: FloatArray = np.zeros(6)
        self.force: FloatArray = self.wrench[:3]  # [N]
        self.torque: FloatArray = self.wrench[3:]  # [N m]
        site = model.site(WRENCH_SITE).id
        body = int(model.site_bodyid[site])
        self._weight = model.body_subtreemass[body] * model.opt.gravity
        self._rotation: FloatArray = data.site_xmat[site].reshape(3, 3)
        self._position: FloatArray = data.site_xpos[site]
        self._center: FloatArray = data.subtree_com[body]
        self._raw_force = _reading(model, data, "force")
        self._raw_torque = _reading(model, data, "torque")
        self._force_noise = Noise(np.full(3, config.force_noise), generator)
        self._torque_noise = Noise(np.full(3, config.torque_noise), generator)

    def read(self) -> None:
        """Measure."""
        # MuJoCo gives what the arm exerts on the tool: -(weight + surroundings) at rest.
        weight = self._weight @ self._rotation
        np.add(self._raw_force, weight, out=self.force)
        np.negative(self.force, out=self.force)
        wx, wy, wz = weight.tolist()
        ax, ay, az = ((self._center - self._position) @ self._rotation).tolist()
        rx, ry, rz = self._raw_torque.tolist()
        self.torque[:] = (
            -rx - (ay * wz - az * wy),
            -ry - (az * wx - ax * wz),
            -rz - (ax * wy - ay * wx),
        )
        self._force_noise.add_to(self.force)
        self._torque_noise.add_to(self.torque)


class ImuSensor:
    """IMU at the flange: acceleration [m/s^2] (3,), rate [rad/s] (3,), orientation xyzw (4,)."""

    def __init__(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        config: SimulationConfig,
        generator: np.random.Generator,
    ) -> None:
        self.linear_acceleration: FloatArray = np.zeros(3)
        self.angular_velocity: FloatArray = np.zeros(3)
        self.orientation: FloatArray = np.array([0.0, 0.0, 0.0, 1.0])
        self._acceleration = _reading(model, data, "acceleration")
        self._rate = _reading(model, data, "angular_velocity")
        self._orientation = _reading(model, data, "orientation")
        self._acceleration_noise = Noise(np.full(3, config.acceleration_noise), generator)
        self._rate_noise = Noise(np.full(3, config.gyro_noise), generator)

    def read(self) -> None:
        """Measure."""
        self.linear_acceleration[:] = self._acceleration
        self._acceleration_noise.add_to(self.linear_acceleration)
        self.angular_velocity[:] = self._rate
        self._rate_noise.add_to(self.angular_velocity)
        w, x, y, z = self._orientation.tolist()
        self.orientation[:] = (x, y, z, w)


def _reading(model: mujoco.MjModel, data: mujoco.MjData, name: str) -> FloatArray:
    """Return the view of a sensor's reading (dim,)."""
    sensor = model.sensor(name)
    first, size = int(sensor.adr[0]), int(sensor.dim[0])
    view: FloatArray = data.sensordata[first : first + size]
    return view
