"""The drives: three command interfaces, a command time-out that stops, current and temperature.

The interface that commanded last is in force. In effort mode a drive gives exactly the torque that
was commanded, inside its limit. In velocity and position mode it closes its own loop on an
acceleration, which the plant turns into torque by its exact dynamics, as a maker's drive does.

Without a command the drives make a quick stop: down to standstill at a set deceleration on their
own encoders, then the brakes (stop category 1 of IEC 60204-1; quick stop of CiA 402).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum

import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import InputError
from kv_action_router.simulation.thermal import ThermalModel

_POSITION_GAIN = 40.0  # [1/s] position error to velocity
_VELOCITY_GAIN = 160.0  # [1/s] velocity error to acceleration
_INTEGRAL_GAIN = 6400.0  # [1/s^2] takes up joint friction
_INTEGRAL_LIMIT = 40.0  # [rad/s^2]
_STANDSTILL = 0.01  # [rad/s] at which the brakes engage
_QUICK_STOP_OVERTIME_NS = 100_000_000  # behind the ramp's end; then the brakes engage anyway


class Interface(Enum):
    """What a command means; the value is the name in topics and columns."""

    EFFORT = "effort"
    VELOCITY = "velocity"
    POSITION = "position"


class DriveBank:
    """The drives of one robot.

    Invariants: a refused command changes nothing but :attr:`refused`. Braked drives give no torque.
    Torque never exceeds ``effort_limit``. Drives that make a quick stop are not braked yet; a
    command ends it.
    """

    def __init__(
        self,
        names: Sequence[str],
        effort_limit: FloatArray,
        velocity_limit: FloatArray,
        torque_constant: FloatArray,
        thermal: ThermalModel,
        timeout: float,
        quick_stop: float,
    ) -> None:
        """Start braked, without a command.

        Args:
            names: joint that each drive moves (n).
            effort_limit: [N m] (n,).
            velocity_limit: [rad/s] (n,), for the velocity and position interfaces.
            torque_constant: at the joint [N m/A] (n,).
            thermal: temperature of the windings.
            timeout: silence after which all drives stop [s].
            quick_stop: deceleration of that stop [rad/s^2]; 0 = the brakes engage at once.
        """
        self.names = tuple(names)
        self.effort_limit = np.array(effort_limit, float)
        self.velocity_limit = np.array(velocity_limit, float)
        self.torque_constant = np.array(torque_constant, float)
        self.thermal = thermal
        self.timeout_ns = int(timeout * 1e9)
        size = len(self.names)
        self.interface: Interface | None = None
        self.braked = True
        self.refused = 0
        self.torque = [0.0] * size  # [N m] given now; replaced, never written to
        self._effort: Sequence[float] = [0.0] * size
        self._command = np.zeros(size)  # of the other two interfaces
        self._command_names: tuple[str, ...] = ()
        self._command_order: list[int] | None = None  # of the names above; None = the drives' own
        self._command_ns = 0
        self._quick_stop = quick_stop
        self._stopping = False
        self._ramp = np.zeros(size)  # speed that a quick stop has come down to [rad/s]
        self._ramp_end_ns = 0
        self._acceleration = np.zeros(size)
        self._integral = np.zeros(size)
        self._torque_limits: list[float] = self.effort_limit.tolist()
        # Integral of the squared torque over the time since the last warming [(N m)^2 s].
        self._square_torque = [0.0] * size
        self._per_square_torque = self.torque_constant**-2.0  # [A^2 / (N m)^2]
        self._thermal_time = 0.0
        self.rated_current: FloatArray = self.effort_limit / self.torque_constant  # [A] (n,)

    @property
    def current(self) -> FloatArray:
        """Signed current [A] (n,)."""
        current: FloatArray = np.array(self.torque) / self.torque_constant
        return current

    @property
    def duty(self) -> FloatArray:
        """Current over rated current, -1 to 1 (n,)."""
        duty: FloatArray = np.array(self.torque) / self.effort_limit
        return duty

    def command(
        self,
        interface: Interface,
        values: FloatArray | Sequence[float],
        names: Sequence[str],
        now_ns: int,
    ) -> None:
        """Take a command.

        Args:
            interface: what it is for.
            values: [N m], [rad/s] or [rad], one a joint.
            names: joint of each value; empty = in the drives' order.
            now_ns: CLOCK_MONOTONIC [ns].

        Raises:
            InputError: wrong size, a value that is not finite, unknown or repeated names. Nothing
                has changed then, and the time-out goes on.
        """
        try:
            ordered = self._ordered(interface, values, names)
        except InputError:
            self.refused += 1
            raise
        if interface is Interface.EFFORT:
            self._effort = ordered
        else:
            self._command[:] = ordered
        self._command_ns = now_ns
        if interface is not self.interface or self.braked or self._stopping:
            self._integral[:] = 0.0
        self.interface = interface
        self.braked = self._stopping = False

    def update(self, position: FloatArray, velocity: FloatArray, dt: float, now_ns: int) -> None:
        """Check the time-out and run the drives' own loops for one physics step of ``dt`` [s]."""
        if not self.braked and now_ns - self._command_ns > self.timeout_ns:
            self._come_down(velocity, dt, now_ns)
        if self.wanted_acceleration is None:
            return
        if self._stopping:
            wanted = self._ramp
            self._integral[self._ramp == 0.0] = 0.0  # friction holds what stands
        elif self.interface is Interface.POSITION:
            wanted = _POSITION_GAIN * (self._command - position)
        else:
            wanted = self._command
        error = np.clip(wanted, -self.velocity_limit, self.velocity_limit) - velocity
        if not self._stopping:  # it would wind up on the ramp, and swing back at its end
            self._integral += _INTEGRAL_GAIN * dt * error
            np.clip(self._integral, -_INTEGRAL_LIMIT, _INTEGRAL_LIMIT, out=self._integral)
        np.multiply(error, _VELOCITY_GAIN, out=self._acceleration)
        self._acceleration += self._integral

    @property
    def wanted_acceleration(self) -> FloatArray | None:
        """What the plant must turn into torque [rad/s^2] (n,); None in effort mode and braked."""
        if self.braked or (self.interface is Interface.EFFORT and not self._stopping):
            return None
        return self._acceleration

    def apply(self, wanted: FloatArray | None, dt: float) -> list[float]:
        """Return the torque of this step [N m] (n,), inside the limits; count its losses.

        Args:
            wanted: torque for :attr:`wanted_acceleration` [N m] (n,); None in effort mode.
            dt: physics step [s].
        """
        if self.braked:
            self.torque = [0.0] * len(self.names)
        else:
            source = self._effort if wanted is None else wanted.tolist()
            self.torque = torque = [
                limit if value > limit else -limit if value < -limit else value
                for value, limit in zip(source, self._torque_limits, strict=True)
            ]
            self._square_torque = [
                total + value * value * dt
                for total, value in zip(self._square_torque, torque, strict=True)
            ]
        self._thermal_time += dt
        return self.torque

    def warm(self) -> None:
        """Bring the temperatures up to the present; called at the drive states' rate."""
        if self._thermal_time > 0.0:
            mean = np.array(self._square_torque) * (self._per_square_torque / self._thermal_time)
            self.thermal.step(mean, self._thermal_time)
        self._square_torque = [0.0] * len(self.names)
        self._thermal_time = 0.0

    def _come_down(self, velocity: FloatArray, dt: float, now_ns: int) -> None:
        """Go on with the quick stop, or begin it; brake at standstill."""
        if not self._stopping:
            self._stopping = True
            self._ramp[:] = velocity
            longest = float(np.abs(velocity).max()) / self._quick_stop if self._quick_stop else 0.0
            self._ramp_end_ns = now_ns + int(longest * 1e9)
        step = self._quick_stop * dt
        self._ramp -= np.clip(self._ramp, -step, step)
        if now_ns < self._ramp_end_ns:
            return
        still = float(np.abs(velocity).max()) <= _STANDSTILL
        if still or not self._quick_stop or now_ns - self._ramp_end_ns > _QUICK_STOP_OVERTIME_NS:
            self.brake()

    def brake(self) -> None:
        """Engage all brakes; the next good command releases them."""
        self.braked = True
        self._stopping = False
        self.torque = [0.0] * len(self.names)
        self._integral[:] = 0.0

    def _ordered(
        self, interface: Interface, values: FloatArray | Sequence[float], names: Sequence[str]
    ) -> Sequence[float]:
        size = len(self.names)
        shape = values.shape if isinstance(values, np.ndarray) else (len(values),)
        if shape != (size,):
            raise InputError(f"{interface.value} command", f"{size} values", shape)
        listed = values.tolist() if isinstance(values, np.ndarray) else values
        if not all(map(math.isfinite, listed)):
            raise InputError(f"{interface.value} command", "finite", listed)
        if not names:
            return listed
        if names is not self._command_names:  # readers give the same object while names stay
            self._learn_order(interface, tuple(names))
        order = self._command_order
        return listed if order is None else [listed[index] for index in order]

    def _learn_order(self, interface: Interface, names: tuple[str, ...]) -> None:
        if names == self._command_names:
            self._command_names = names
            return
        if sorted(names) != sorted(self.names):
            field = f"{interface.value} command names"
            raise InputError(field, f"each of {', '.join(self.names)} once", names)
        in_order = names == self.names
        self._command_order = None if in_order else [names.index(name) for name in self.names]
        self._command_names = names
