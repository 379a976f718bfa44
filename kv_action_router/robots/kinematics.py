"""Kinematics and dynamics of an arm: a thin layer over pinocchio."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import RobotModelError


class Kinematics:
    """Forward kinematics, Jacobian and rigid-body dynamics, from an MJCF.

    All joints have one degree of freedom, so that positions and velocities have the same size n.
    Positions are [rad], frames are seen from the base frame. Not thread safe: pinocchio's
    results live in one workspace.

    Raises:
        RobotModelError: the MJCF cannot be read, a frame or a joint that is to stand still is
            missing, or a joint does not have one degree of freedom.
    """

    def __init__(self, mjcf: Path, base: str, tip: str, fixed: Sequence[str] = ()) -> None:
        """Read the model.

        Args:
            mjcf: file.
            base: name of the base frame.
            tip: name of the tip's frame.
            fixed: joints that stand at 0 and are no joints of the model.
        """
        try:
            self._whole = pin.buildModelFromMJCF(str(mjcf))
        except (RuntimeError, ValueError) as error:
            raise RobotModelError(f"{mjcf}: cannot be read: {error}") from error
        for joint in fixed:
            if not self._whole.existJointName(joint):
                raise RobotModelError(f"{mjcf}: fixed joint {joint!r} is missing")
        self._fixed = [self._whole.getJointId(joint) for joint in fixed]
        self._at_zero = np.zeros(self._whole.nq)
        self.model = self._whole
        if fixed:
            self.model = pin.buildReducedModel(self._whole, self._fixed, self._at_zero)
        if self.model.nq != self.model.nv or self.model.nv != self.model.njoints - 1:
            raise RobotModelError(f"{mjcf}: every joint must have one degree of freedom")
        self.mjcf = mjcf
        self.data = self.model.createData()
        self.joint_names: tuple[str, ...] = tuple(self.model.names)[1:]
        self.n: int = self.model.nv
        self._tip = self.frame_id(tip)
        self._gravity = np.zeros(self.n)
        self._torque = np.zeros(self.n)
        placement = self.model.frames[self.frame_id(base)]
        if placement.parentJoint != 0 or not placement.placement.isIdentity(1e-12):
            raise RobotModelError(f"{mjcf}: base frame {base} must be the world's origin")

    def geometry(self) -> Any:
        """Return new collision geometry of the model, without pairs.

        Raises:
            RobotModelError: the MJCF's shapes cannot be read.
        """
        try:
            whole = pin.buildGeomFromMJCF(self._whole, str(self.mjcf), pin.GeometryType.COLLISION)
        except (RuntimeError, ValueError) as error:
            raise RobotModelError(
                f"{self.mjcf}: collision shapes cannot be read: {error}"
            ) from error
        if not self._fixed:
            return whole
        return pin.buildReducedModel(self._whole, whole, self._fixed, self._at_zero)[1]

    def moves_tip(self) -> npt.NDArray[np.bool_]:
        """Return which joints the tip hangs on (n,)."""
        chain = self.model.supports[self.model.frames[self._tip].parentJoint]
        return np.array([index in chain for index in range(1, self.n + 1)])

    def frame_id(self, name: str) -> int:
        """Return pinocchio's number of a body or site."""
        if not self.model.existFrame(name):
            names = ", ".join(frame.name for frame in self.model.frames)
            raise RobotModelError(f"{self.mjcf}: no body or site {name!r}; there are {names}")
        return int(self.model.getFrameId(name))

    def forward(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return position [m] (3,) and rotation (3, 3) of the tool tip."""
        pin.forwardKinematics(self.model, self.data, q)
        tip = pin.updateFramePlacement(self.model, self.data, self._tip)
        return np.array(tip.translation), np.array(tip.rotation)

    def jacobian(self, q: FloatArray) -> FloatArray:
        """Return the tip's Jacobian (6, n): linear, then angular velocity, in the base frame."""
        return pin.computeFrameJacobian(
            self.model, self.data, q, self._tip, pin.LOCAL_WORLD_ALIGNED
        )

    def forward_and_jacobian(self, q: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return position (3,), rotation (3, 3) and Jacobian (6, n) of the tool tip."""
        jacobian = self.jacobian(q)  # leaves the joints' placements in the workspace
        tip = pin.updateFramePlacement(self.model, self.data, self._tip)
        return np.array(tip.translation), np.array(tip.rotation), jacobian

    def gravity_torque(self, q: FloatArray) -> FloatArray:
        """Return the torque that holds the arm against gravity [N m] (n,).

        The array is overwritten by the next call.
        """
        self._gravity[:] = pin.computeGeneralizedGravity(self.model, self.data, q)
        return self._gravity

    def inverse_dynamics(self, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
        """Return the torque for velocity [rad/s] and acceleration [rad/s^2] [N m] (n,).

        With the drives' armature, without friction. The array is overwritten by the next call.
        """
        self._torque[:] = pin.rnea(self.model, self.data, q, v, a)
        return self._torque
