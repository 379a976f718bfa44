"""The drives: three command interfaces, a command time-out that stops, current and temperature.

The interface that commanded last is in force. In effort mode a drive gives exactly the torque that
was commanded, inside its limit. In velocity and position mode it closes its own loop on an
acceleration, which the plant turns into torque by its exact dynamics, as a maker's drive does.

Without a command the drives make a quick stop: down to standstill at a set deceleration on their
own encoders, then the brakes (stop category 1 of IEC 60204-1; quick stop of CiA 402). They carry it
out to its end, and take commands again after a pause only (:class:`CommandLink`).

In velocity and position mode they keep to a profile of their own (profile acceleration of CiA 402),
and refuse a position that is farther away than the following error allows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum

import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import InputError
from kv_action_router.simulation.command_link import CommandLink
from kv_action_router.simulation.profile import VelocityProfile
from kv_action_router.simulation.thermal import ThermalModel

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
    Torque never exceeds ``effort_limit``. Drives that make a quick stop are not braked yet; nothing
    ends it but standstill.
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
        *,
        delay_limit: float = 0.015,
        following_error: float = 0.3,
        acceleration: float = 30.0,
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
            delay_limit: commands that come later than the best one by more are refused [s].
            following_error: a commanded position that is farther away is refused [rad].
            acceleration: of the drives' own profile, velocity and position mode [rad/s^2].
        """
        self.names = tuple(names)
        self.effort_limit = np.array(effort_limit, float)
        self.velocity_limit = np.array(velocity_limit, float)
        self.torque_constant = np.array(torque_constant, float)
        self.thermal = thermal
        self._link = CommandLink(int(timeout * 1e9), int(delay_limit * 1e9))
        self._following_error = following_error
        self._profile = VelocityProfile(self.velocity_limit, acceleration)
        self._position: FloatArray | None = None  # as seen last [rad] (n,)
        size = len(self.names)
        self.interface: Interface | None = None
        self.braked = True
        self.refused = 0
        self.torque = [0.0] * size  # [N m] given now; replaced, never written to
        self._effort: Sequence[float] = [0.0] * size
        self._command = np.zeros(size)  # of the other two interfaces
        self._command_names: tuple[str, ...] = ()
        self._command_order: list[int] | None = None  # of the names above; None = the drives' own
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
    def stopped(self) -> bool:
        """Whether the brakes are engaged, or will be at the end of a quick stop."""
        return self.braked or self._stopping

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
        stamp_us: int = 0,
    ) -> None:
        """Take a command; one that comes once more is no news.

        Args:
            interface: what it is for.
            values: [N m], [rad/s] or [rad], one a joint.
            names: joint of each value; empty = in the drives' order.
            now_ns: CLOCK_MONOTONIC [ns].
            stamp_us: when it was sent, see :meth:`CommandLink.check`; 0 = it does not say.

        Raises:
            InputError: wrong size, a value that is not finite, unknown or repeated names; too far
                from the joint; late, out of order, or too early after a quick stop. Nothing has
                changed then, and the time-out goes on.
        """
        if self._link.repeated(stamp_us):
            return
        try:
            fault = self._link.check(stamp_us, now_ns, moving=self._stopping)
            ordered = self._ordered(interface, values, names)  # what can't be read is told first
            if fault:
                raise InputError(f"{interface.value} command", "in its time", fault)
            self._check_distance(interface, ordered)
        except InputError:
            self.refused += 1
            raise
        self._link.take(now_ns)
        if interface is Interface.EFFORT:
            self._effort = ordered
        else:
            self._command[:] = ordered
        if interface is not self.interface or self.braked:
            self._integral[:] = 0.0
            self._profile.reset()
        self.interface = interface
        self.braked = False

    def update(self, position: FloatArray, velocity: FloatArray, dt: float, now_ns: int) -> None:
        """Check the time-out and run the drives' own loops for one physics step of ``dt`` [s]."""
        self._position = position
        if self._stopping or (not self.braked and self._link.lost(now_ns)):
            self._come_down(velocity, dt, now_ns)
        if self.wanted_acceleration is None:
            return
        if self._stopping:
            wanted = self._ramp
            self._integral[self._ramp == 0.0] = 0.0  # friction holds what stands
        else:
            wanted = self._command
            if self.interface is Interface.POSITION:
                wanted = self._profile.to_position(self._command, position)
            wanted = self._profile.follow(wanted, velocity, dt)
        error = wanted - velocity
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

    def _check_distance(self, interface: Interface, ordered: Sequence[float]) -> None:
        if interface is not Interface.POSITION or self._position is None:
            return
        for name, value, at in zip(self.names, ordered, self._position.tolist(), strict=True):
            if abs(value - at) > self._following_error:
                field = f"position command of {name}"
                limit = f"within {self._following_error:g} rad of the joint (following error)"
                raise InputError(field, limit, round(value - at, 4))

    def _come_down(self, velocity: FloatArray, dt: float, now_ns: int) -> None:
        """Go on with the quick stop, or begin it; brake at standstill."""
        if not self._stopping:
            self._stopping = True
            self._link.stop_until_pause()
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
