"""What the robot's sensors report: joint states, wrench and IMU, with noise by parameter.

Wrench and IMU are of a few numbers that cost less one by one than as small arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.scene import WRENCH_SITE

_NOISE_ROWS = 4093  # prime, so that sensors read at different rates don't fall into step


class Noise:
    """White noise from a table: one row a reading, a few hundred nanoseconds each."""

    def __init__(
        self,
        deviations: Sequence[tuple[float, int]],
        generator: np.random.Generator,
        bias: Sequence[float] = (0.0,),
    ) -> None:
        """Fill the table.

        Args:
            deviations: side by side, columns of each (standard deviation, number of columns).
            generator: source of the noise.
            bias: added to every row (n,), or one number.
        """
        self._rows = np.hstack(
            [
                generator.standard_normal((_NOISE_ROWS, size)) * deviation
                for deviation, size in deviations
            ]
        ) + np.asarray(bias, float)
        self._next = 0

    def row(self) -> FloatArray:
        """Return the next row (n,); it is not to be written to."""
        row: FloatArray = self._rows[self._next]
        self._next = (self._next + 1) % _NOISE_ROWS
        return row


class JointSensors:
    """Encoders and torque estimates: position [rad], velocity [rad/s], effort [N m], each (n,).

    Readings are written into arrays that the object keeps.
    """

    def __init__(self, config: SimulationConfig, size: int, generator: np.random.Generator) -> None:
        self._all: FloatArray = np.zeros(3 * size)
        self.position: FloatArray = self._all[:size]
        self.velocity: FloatArray = self._all[size : 2 * size]
        self.effort: FloatArray = self._all[2 * size :]
        self._resolution = config.position_resolution
        deviations = (config.position_noise, config.velocity_noise, config.effort_noise)
        self._noise = Noise([(deviation, size) for deviation in deviations], generator)

    def read(self, position: FloatArray, velocity: FloatArray, torque: Sequence[float]) -> None:
        """Measure true positions [rad], velocities [rad/s] and motor torques [N m], each (n,)."""
        self.position[:] = position
        self.velocity[:] = velocity
        self.effort[:] = torque
        self._all += self._noise.row()
        if self._resolution > 0.0:
            np.divide(self.position, self._resolution, out=self.position)
            np.rint(self.position, out=self.position)
            self.position *= self._resolution


class DriveSensors:
    """Current [A] and voltage [V] of the drives as they measure them, each (n,).

    Readings are written into arrays that the object keeps.
    """

    def __init__(self, config: SimulationConfig, size: int) -> None:
        # A generator of its own: whoever measures more must not change what others measure.
        generator = np.random.default_rng((config.seed, size))
        self._noise = Noise([(config.current_noise, size), (config.voltage_noise, size)], generator)
        self._all: FloatArray = np.zeros(2 * size)
        self.current: FloatArray = self._all[:size]
        self.voltage: FloatArray = self._all[size:]

    def read(self, current: FloatArray, voltage: FloatArray) -> None:
        """Measure true currents [A] and voltages [V], each (n,)."""
        self.current[:] = current
        self.voltage[:] = voltage
        self._all += self._noise.row()


class WrenchSensor:
    """What the surroundings exert on the tool, at the flange, in the flange's frame.

    The tool's weight is taken off exactly, as a driver does that knows its payload; what the tool's
    mass resists to acceleration stays in, as on a real robot: 0.6 N for each m/s^2 here.

    Attributes:
        wrench: force x, y, z [N] and torque x, y, z [N m], as read last.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        config: SimulationConfig,
        generator: np.random.Generator,
    ) -> None:
        self.wrench: tuple[float, ...] = (0.0,) * 6
        site = model.site(WRENCH_SITE).id
        body = int(model.site_bodyid[site])
        weight = model.body_subtreemass[body] * model.opt.gravity
        self._weight: tuple[float, ...] = tuple(weight.tolist())  # base frame [N]
        self._rotation: FloatArray = data.site_xmat[site]  # (9,)
        self._position: FloatArray = data.site_xpos[site]
        self._center: FloatArray = data.subtree_com[body]
        self._force = _reading(model, data, "force")
        self._torque = _reading(model, data, "torque")
        self._noise = Noise(
            ((config.force_noise, 3), (config.torque_noise, 3)),
            generator,
            (*config.force_bias, *config.torque_bias),
        )

    def read(self) -> None:
        """Measure."""
        xx, xy, xz, yx, yy, yz, zx, zy, zz = self._rotation.tolist()
        gx, gy, gz = self._weight
        wx = gx * xx + gy * yx + gz * zx
        wy = gx * xy + gy * yy + gz * zy
        wz = gx * xz + gy * yz + gz * zz
        px, py, pz = self._position.tolist()
        cx, cy, cz = self._center.tolist()
        dx, dy, dz = cx - px, cy - py, cz - pz
        ax = dx * xx + dy * yx + dz * zx
        ay = dx * xy + dy * yy + dz * zy
        az = dx * xz + dy * yz + dz * zz
        fx, fy, fz = self._force.tolist()
        tx, ty, tz = self._torque.tolist()
        nx, ny, nz, mx, my, mz = self._noise.row().tolist()
        # MuJoCo gives what the arm exerts on the tool: -(weight + surroundings) at rest.
        self.wrench = (
            -(fx + wx) + nx,
            -(fy + wy) + ny,
            -(fz + wz) + nz,
            -tx - (ay * wz - az * wy) + mx,
            -ty - (az * wx - ax * wz) + my,
            -tz - (ax * wy - ay * wx) + mz,
        )


class ImuSensor:
    """IMU at the flange.

    Attributes:
        reading: orientation x, y, z, w, rate x, y, z [rad/s] and acceleration x, y, z [m/s^2], as
            read last.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        config: SimulationConfig,
        generator: np.random.Generator,
    ) -> None:
        self.reading: tuple[float, ...] = (0.0, 0.0, 0.0, 1.0, *(0.0,) * 6)
        self._acceleration = _reading(model, data, "acceleration")
        self._rate = _reading(model, data, "angular_velocity")
        self._orientation = _reading(model, data, "orientation")
        self._noise = Noise(((config.acceleration_noise, 3), (config.gyro_noise, 3)), generator)

    def read(self) -> None:
        """Measure."""
        w, x, y, z = self._orientation.tolist()
        rx, ry, rz = self._rate.tolist()
        ax, ay, az = self._acceleration.tolist()
        nx, ny, nz, mx, my, mz = self._noise.row().tolist()
        self.reading = (x, y, z, w, rx + mx, ry + my, rz + mz, ax + nx, ay + ny, az + nz)


def _reading(model: mujoco.MjModel, data: mujoco.MjData, name: str) -> FloatArray:
    """Return the view of a sensor's reading (dim,)."""
    sensor = model.sensor(name)
    first, size = int(sensor.adr[0]), int(sensor.dim[0])
    view: FloatArray = data.sensordata[first : first + size]
    return view
