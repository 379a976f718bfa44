"""Control laws: from set-point and measured state to a command, one class an interface.

A law writes its command in place and keeps it inside limits whatever it is given. ``reference`` is
the set-point that the law follows; ``measured`` is None while there are no joint states.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.execution_table import Snapshot
from kv_action_router.injection.pid import PidBank
from kv_action_router.injection.robot import JointModel

_HOLDING_RESERVE = 1.1  # an effort limit never goes below this many times the gravity torque
# How far the arm's state may go on, norms of all joints, before its torque is predicted anew.
SAME_POSITION = 5e-4  # [rad]
SAME_VELOCITY = 3e-3  # [rad/s]
SAME_ACCELERATION = 5e-3  # [rad/s^2]


@dataclass(slots=True)
class State:
    """Position [rad], velocity [rad/s] and acceleration [rad/s^2] of n joints."""

    position: Sequence[float]
    velocity: Sequence[float]
    acceleration: Sequence[float]


class Law(Protocol):
    """Writes one tick's command into ``output`` (n,)."""

    def reset(self) -> None:
        """Forget what was integrated."""

    def save(self) -> None:
        """Remember the state, for :meth:`restore`."""

    def restore(self) -> None:
        """Go back to the remembered state."""

    def compute(
        self,
        dt: float,
        reference: State,
        measured: State | None,
        limits: Snapshot,
        stiffness: float,
        output: list[float],
    ) -> None:
        """Write the command; ``output`` holds the last one."""


class EffortLaw:
    """PID on the measured state with gravity, inertia and friction fed forward [N m].

    Gravity and inertia are predicted anew when measured position or reference have gone on by more
    than ``SAME_POSITION``, ``SAME_VELOCITY`` or ``SAME_ACCELERATION``; until then the last
    prediction serves. For a UR5e with its tool, at up to 1 rad/s and 3 rad/s^2, it is then wrong by
    less than 0.08 N m in any joint (a test says so); its friction is 0.3 to 1 N m. Friction itself
    follows every tick.

    Attributes:
        feed_forward: torque that the model predicts for the reference [N m] (n,).
        pid: the controllers.
    """

    def __init__(self, model: JointModel) -> None:
        n = len(model.joint_names)
        self._n = n
        self._model = model
        self._most: list[float] = model.effort_limit.tolist()
        numbers = np.zeros(3 * n)
        self._numbers = numbers.data
        self._pack = struct.Struct(f"{3 * n}d").pack_into
        self._q, self._v, self._a = numbers[:n], numbers[n : 2 * n], numbers[2 * n :]
        self._rigid = [0.0] * n  # [N m] gravity and inertia, predicted for
        self._rigid_at = ([0.0] * n, [0.0] * n, [0.0] * n)  # position, velocity, acceleration
        self._rigid_by: Snapshot | None = None  # and by these limits; None = not yet
        self.pid = PidBank(n)
        self.feed_forward = [0.0] * n
        self._saved = [0.0] * n

    def reset(self) -> None:
        """Clear the integrals."""
        self.pid.reset()

    def save(self) -> None:
        """Remember the integrals."""
        self._saved[:] = self.pid.integral

    def restore(self) -> None:
        """Go back to the remembered integrals."""
        self.pid.integral[:] = self._saved

    def compute(
        self,
        dt: float,
        reference: State,
        measured: State | None,
        limits: Snapshot,
        stiffness: float,
        output: list[float],
    ) -> None:
        """Write the efforts [N m]; without a measured state only what the model predicts."""
        state = reference if measured is None else measured
        self._predict(state.position, reference, limits)
        self.pid.update(
            dt,
            reference.position,
            reference.velocity,
            state.position,
            state.velocity,
            self.feed_forward,
            limits.proportional,
            limits.integral,
            limits.derivative,
            limits.integral_limit,
            limits.effort_limit,
            stiffness if measured is not None else 0.0,
            output,
        )
        if self.pid.clamped:
            self._keep_up(limits.effort_limit, output)

    def _predict(self, position: Sequence[float], reference: State, limits: Snapshot) -> None:
        velocity, acceleration = reference.velocity, reference.acceleration
        at, moving, speeding = self._rigid_at
        # NaN is never near.
        if not (
            math.dist(position, at) <= SAME_POSITION
            and math.dist(velocity, moving) <= SAME_VELOCITY
            and math.dist(acceleration, speeding) <= SAME_ACCELERATION
            and limits is self._rigid_by
        ):
            at[:], moving[:], speeding[:] = position, velocity, acceleration
            self._rigid_by = limits
            self._pack(self._numbers, 0, *position, *velocity, *acceleration)
            self._predict_rigid(limits)
        torque = self.feed_forward
        torque[:] = self._rigid
        if any(velocity):
            viscous, coulomb = limits.viscous_friction, limits.coulomb_friction
            for i, v in enumerate(velocity):
                if v != 0.0:
                    turned = math.tanh(v / limits.friction_velocity[i])
                    torque[i] += viscous[i] * v + coulomb[i] * turned

    def _predict_rigid(self, limits: Snapshot) -> None:
        torque = self._model.inverse_dynamics(self._q, self._v, self._a).tolist()
        if not limits.plain_gravity:
            gravity = self._model.gravity_torque(self._q).tolist()
            for i, scale in enumerate(limits.gravity_scale):
                torque[i] += (scale - 1.0) * gravity[i]
        self._rigid[:] = torque

    def _keep_up(self, bound: Sequence[float], output: list[float]) -> None:
        """Raise a clamp that would let the arm fall, inside the model's own limit."""
        unclamped = self.pid.unclamped
        if all(-most <= raw <= most for raw, most in zip(unclamped, bound, strict=True)):
            return
        gravity = self._model.gravity_torque(self._q)
        for i in range(self._n):
            floor = min(self._most[i], _HOLDING_RESERVE * abs(float(gravity[i])))
            if floor > bound[i]:
                output[i] = max(-floor, min(floor, unclamped[i]))


class DutyLaw:
    """Effort law, sent as PWM duty: torque over the torque at rated current, -1 to 1."""

    def __init__(self, model: JointModel, gravity_free: Sequence[str]) -> None:
        self._effort = EffortLaw(model)
        self._torque = [0.0] * len(model.joint_names)
        self._free = [name in gravity_free for name in model.joint_names]

    def reset(self) -> None:
        """Clear the integrals."""
        self._effort.reset()

    def save(self) -> None:
        """Remember the integrals."""
        self._effort.save()

    def restore(self) -> None:
        """Go back to the remembered integrals."""
        self._effort.restore()

    def compute(
        self,
        dt: float,
        reference: State,
        measured: State | None,
        limits: Snapshot,
        stiffness: float,
        output: list[float],
    ) -> None:
        """Write the duties; a gravity-free drive without full stiffness (fail-safe) gets 0."""
        self._effort.compute(dt, reference, measured, limits, stiffness, self._torque)
        for i, free in enumerate(self._free):
            if free and stiffness < 1.0:
                self._effort.pid.integral[i] = 0.0
                self._torque[i] = 0.0
            output[i] = max(-1.0, min(1.0, self._torque[i] / limits.rated_torque[i]))


class VelocityLaw:
    """Set-point velocity plus a correction of the position error [rad/s]."""

    def __init__(self, model: JointModel, gain: float) -> None:
        self._n = len(model.joint_names)
        self._gain = gain

    def reset(self) -> None:
        """Nothing is integrated."""

    def save(self) -> None:
        """Nothing is integrated."""

    def restore(self) -> None:
        """Nothing is integrated."""

    def compute(
        self,
        dt: float,
        reference: State,
        measured: State | None,
        limits: Snapshot,
        stiffness: float,
        output: list[float],
    ) -> None:
        """Write the velocities, inside v_max, and within a_max dt of the last ones."""
        if not 0.0 < dt < math.inf:
            return
        for i in range(self._n):
            value = reference.velocity[i]
            if measured is not None:
                value += stiffness * self._gain * (reference.position[i] - measured.position[i])
            if not -math.inf < value < math.inf:
                continue
            most = limits.velocity_limit[i]
            value = max(-most, min(most, value))
            step = limits.acceleration_limit[i] * dt
            output[i] = max(output[i] - step, min(output[i] + step, value))


class PositionLaw:
    """The set-point itself [rad]."""

    def __init__(self, model: JointModel) -> None:
        self._n = len(model.joint_names)

    def reset(self) -> None:
        """Nothing is integrated."""

    def save(self) -> None:
        """Nothing is integrated."""

    def restore(self) -> None:
        """Nothing is integrated."""

    def compute(
        self,
        dt: float,
        reference: State,
        measured: State | None,
        limits: Snapshot,
        stiffness: float,
        output: list[float],
    ) -> None:
        """Write the set-point's positions."""
        output[:] = reference.position


def make_law(model: JointModel, config: InjectionConfig) -> Law:
    """Return the law of the configured command interface."""
    interface = config.command_interface
    if interface == "effort":
        return EffortLaw(model)
    if interface == "duty":
        return DutyLaw(model, config.gravity_free_drives)
    if interface == "velocity":
        return VelocityLaw(model, config.position_gain)
    return PositionLaw(model)
