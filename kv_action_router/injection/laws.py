"""Control laws: from set-point and measured state to a command, one class an interface.

A law writes its command in place and keeps it inside limits whatever it is given. ``reference`` is
the set-point that the law follows; ``measured`` is None while there are no joint states.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.effort_law import EffortLaw, State
from kv_action_router.injection.execution_table import Snapshot
from kv_action_router.injection.robot import JointModel


class Law(Protocol):
    """Writes one tick's command into ``output`` (n,)."""

    def reset(self) -> None:
        """Forget what was integrated."""

    def release(self, joint: int) -> None:
        """Forget what was integrated for one joint."""

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


class DutyLaw:
    """Effort law, sent as PWM duty: torque over the torque at rated current, -1 to 1."""

    def __init__(self, model: JointModel, gravity_free: Sequence[str]) -> None:
        self._effort = EffortLaw(model)
        self._torque = [0.0] * len(model.joint_names)
        self._free = [name in gravity_free for name in model.joint_names]

    def reset(self) -> None:
        """Clear the integrals."""
        self._effort.reset()

    def release(self, joint: int) -> None:
        """Clear one integral."""
        self._effort.release(joint)

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

    def release(self, joint: int) -> None:
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

    def release(self, joint: int) -> None:
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
