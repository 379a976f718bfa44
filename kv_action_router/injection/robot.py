"""What the injector needs of a robot's model."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray


class JointModel(Protocol):
    """Limits and dynamics of n joints (``robots.model.RobotModel`` fits); arrays are (n,)."""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names, in the order of all arrays."""

    @property
    def lower(self) -> FloatArray:
        """Lower position limit [rad]; -inf for continuous joints."""

    @property
    def upper(self) -> FloatArray:
        """Upper position limit [rad]."""

    @property
    def velocity_limit(self) -> FloatArray:
        """[rad/s]."""

    @property
    def acceleration_limit(self) -> FloatArray:
        """[rad/s^2]."""

    @property
    def effort_limit(self) -> FloatArray:
        """[N m]."""

    @property
    def continuous(self) -> npt.NDArray[np.bool_]:
        """Joints that turn without end."""

    def gravity_torque(self, q: FloatArray) -> FloatArray:
        """Torque against gravity [N m]; overwritten by the next call."""

    def inverse_dynamics(self, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
        """Torque for a motion [N m]; overwritten by the next call."""
