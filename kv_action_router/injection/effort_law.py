"""The effort law: from set-point and measured state to what the drives are sent."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kv_action_router.injection.execution_table import Snapshot
from kv_action_router.injection.pid import PidBank
from kv_action_router.injection.robot import JointModel

# What the command is made from beside measurement, reference and gains.
_FED_FORWARD = ("effort_scale", "gravity_scale", "coulomb_friction", "viscous_friction")
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


class EffortLaw:
    """PID on the measured state with gravity, inertia and friction fed forward [N m].

    Gravity and inertia are predicted anew when measured position or reference have gone on by more
    than ``SAME_POSITION``, ``SAME_VELOCITY`` or ``SAME_ACCELERATION``; until then the last
    prediction serves. For a UR5e with its tool, at up to 1 rad/s and 3 rad/s^2, it is then wrong by
    less than 0.08 N m in any joint (a test says so); its friction is 0.3 to 1 N m. Friction itself
    follows every tick.

    The drives turn what they are sent into a current with the torque constant of their data sheet.
    Where the calibrated one differs, they are sent more or less than they should give. A change of
    that scale or of the feed-forward by another execution value is taken up by the integrals, so
    that the command does not jump; what the integrals had made up for until then is theirs again.

    Attributes:
        feed_forward: torque that the model predicts for the reference [N m] (n,).
        efforts: that the drives should give, as computed last [N m] (n,).
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
        self.efforts = [0.0] * n
        self._scaled = [0.0] * n  # the same, where they are not what is sent
        self._in_force: Snapshot | None = None  # limits of the last computation; None = none yet
        self._saved = [0.0] * n
        self._saved_for: Snapshot | None = None

    def reset(self) -> None:
        """Clear the integrals; the next execution value has nothing to take up."""
        self.pid.reset()
        self._in_force = None

    def release(self, joint: int) -> None:
        """Clear one integral."""
        self.pid.integral[joint] = 0.0

    def save(self) -> None:
        """Remember the integrals, and what they are for."""
        self._saved[:] = self.pid.integral
        self._saved_for = self._in_force

    def restore(self) -> None:
        """Go back to the remembered integrals."""
        self.pid.integral[:] = self._saved
        self._in_force = self._saved_for

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
        before = self._in_force
        if before is limits:  # the usual case
            self._predict(state.position, reference, limits)
        else:
            last = self.feed_forward.copy()
            self._predict(state.position, reference, limits)
            if before is not None:
                self._take_up(last, before, limits)
            self._in_force = limits
        self.efforts = efforts = output if limits.true_to_name else self._scaled
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
            efforts,
        )
        if self.pid.clamped:
            self._keep_up(limits.effort_limit, efforts)
        if efforts is not output:
            for i, scale in enumerate(limits.effort_scale):
                most = self._most[i]
                output[i] = max(-most, min(most, scale * efforts[i]))

    def _take_up(self, last: Sequence[float], before: Snapshot, limits: Snapshot) -> None:
        """Change the integrals so that another execution value sends what the last one did."""
        if all(getattr(before, name) == getattr(limits, name) for name in _FED_FORWARD):
            return
        for i, most in enumerate(limits.integral_limit):
            given = last[i] + self.pid.integral[i]
            sent = given * before.effort_scale[i]
            wanted = sent / limits.effort_scale[i] - self.feed_forward[i]
            if -math.inf < wanted < math.inf:
                self.pid.integral[i] = max(-most, min(most, wanted))

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
