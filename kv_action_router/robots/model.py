"""One robot: joints and their limits, kinematics, gravity, covering spheres, inverse kinematics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import InputError, MissingJointsError, RobotModelError
from kv_action_router.robots.collision import CollisionModel
from kv_action_router.robots.description import RobotDescription, load_description
from kv_action_router.robots.ik import solve_ik
from kv_action_router.robots.kinematics import Kinematics
from kv_action_router.robots.limits import JointLimits, parse_limits
from kv_action_router.robots.shapes import load_capsules
from kv_action_router.robots.spheres import LinkSpheres


class RobotModel:
    """What the stages know of a robot.

    Arrays are in the order of ``joint_names``. Not thread safe: one instance a thread.

    Attributes:
        name: of the description.
        joint_names: with the prefix (n).
        n: number of joints.
        limits: all joint limits; the arrays below are its own.
        lower, upper: position [rad] (n,); infinite for continuous joints.
        velocity_limit: [rad/s] (n,).
        acceleration_limit: [rad/s^2] (n,).
        jerk_limit: [rad/s^3] (n,).
        effort_limit: [N m] (n,).
        continuous: joints that turn without end (n,).
        spindles: continuous joints that do not move the tip (n,): they turn a tool about the axis
            that it lies on, and work against what it turns.
        home: position at rest [rad] (n,).
    """

    def __init__(self, name: str, description: RobotDescription, prefix: str = "") -> None:
        frames = description.frames
        self.name = name
        self.description = description
        self.kinematics = Kinematics(
            description.mjcf, frames["base"], frames["tip"], description.fixed
        )
        for frame in frames.values():
            self.kinematics.frame_id(frame)
        plain = self.kinematics.joint_names
        source = str(description.source)
        self.limits: JointLimits = parse_limits(plain, description.joints, source)
        _check_against(self.kinematics.model, self.limits, source)
        self.joint_names: tuple[str, ...] = tuple(prefix + joint for joint in plain)
        self.n: int = self.kinematics.n
        self.lower, self.upper = self.limits.lower, self.limits.upper
        self.velocity_limit = self.limits.velocity
        self.acceleration_limit = self.limits.acceleration
        self.jerk_limit = self.limits.jerk
        self.effort_limit = self.limits.effort
        self.continuous: npt.NDArray[np.bool_] = self.limits.continuous
        self.spindles = self.continuous & ~self.kinematics.moves_tip()
        self.spindles.flags.writeable = False
        self.home = _home(description, self.limits, source)
        model = self.kinematics.model
        self._spheres = LinkSpheres(
            self.kinematics.data,
            load_capsules(model, self.kinematics.geometry(), description.mjcf),
            description.outline_margin,
        )
        self._orders: dict[tuple[str, ...], npt.NDArray[np.intp]] = {}

    @classmethod
    def load(cls, name: str = "ur5e", prefix: str = "") -> RobotModel:
        """Return the model of a robot.

        Args:
            name: of a robot that comes with the package, or the path of a description (YAML).
            prefix: put before every joint's name, e.g. ``left_``.

        Raises:
            RobotModelError: no such robot, or its description is incomplete or contradictory; a
                bad limit names its joint.
        """
        return cls(name, load_description(name), prefix)

    def collision_model(self, table_height: float | None = None) -> CollisionModel:
        """Return a new collision model of this robot, for the same thread."""
        return CollisionModel(self.kinematics, table_height)

    def order(self, names: Sequence[str]) -> npt.NDArray[np.intp]:
        """Return the index (n,) that brings a message's values into the model's order.

        ``np.asarray(message.position)[model.order(message.name)]``. Other joints are left out.
        The answer is kept for each list of names seen.

        Raises:
            MissingJointsError: joints of the robot are not in ``names``; all of them are named.
            InputError: a joint of the robot is in ``names`` twice.
        """
        key = tuple(names)
        known = self._orders.get(key)
        if known is not None:
            return known
        missing = [joint for joint in self.joint_names if joint not in key]
        if missing:
            raise MissingJointsError(
                f"no value for {', '.join(missing)}; there are {', '.join(key) or 'none'}"
            )
        for joint in self.joint_names:
            if key.count(joint) > 1:
                raise InputError("names", f"without repetition of {joint}", key)
        index = np.array([key.index(joint) for joint in self.joint_names], dtype=np.intp)
        index.flags.writeable = False
        if len(self._orders) < 64:  # a publisher that invents names must not grow this for ever
            self._orders[key] = index
        return index

    def forward(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return position [m] (3,) and rotation (3, 3) of the tool tip in the base frame."""
        return self.kinematics.forward(q)

    def jacobian(self, q: FloatArray) -> FloatArray:
        """Return the tip's Jacobian (6, n): linear, then angular velocity, in the base frame."""
        return self.kinematics.jacobian(q)

    def gravity_torque(self, q: FloatArray) -> FloatArray:
        """Return the torque that holds the arm against gravity [N m] (n,).

        The array is overwritten by the next call.
        """
        return self.kinematics.gravity_torque(q)

    def inverse_dynamics(self, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
        """Return the torque for a motion, without friction [N m] (n,).

        The array is overwritten by the next call.
        """
        return self.kinematics.inverse_dynamics(q, v, a)

    def link_spheres(self, q: FloatArray) -> FloatArray:
        """Return spheres x, y, z, r that cover the arm and tool, base frame [m] (m, 4).

        The array is overwritten by the next call.
        """
        pin.forwardKinematics(self.kinematics.model, self.kinematics.data, q)
        return self._spheres.update()

    @property
    def sphere_links(self) -> tuple[str, ...]:
        """Link that each sphere of :meth:`link_spheres` belongs to (m)."""
        return self._spheres.links

    def solve_ik(
        self,
        target_position: FloatArray,
        rotation: FloatArray | None = None,
        seed: FloatArray | None = None,
        lower: FloatArray | None = None,
        upper: FloatArray | None = None,
    ) -> FloatArray:
        """Return joint positions [rad] (n,) near ``seed`` that put the tool tip at a pose.

        Args:
            target_position: [m] (3,), base frame.
            rotation: of the tip (3, 3); None = tool down, turn about its axis free.
            seed: [rad] (n,); None = home.
            lower: tighter position limits [rad] (n,); None = the robot's.
            upper: as ``lower``.

        Raises:
            UnreachableError: not reachable inside the limits.
        """
        return solve_ik(
            self.kinematics,
            target_position,
            rotation,
            self.home if seed is None else np.asarray(seed, dtype=float),
            self.home,
            self.lower if lower is None else np.maximum(lower, self.lower),
            self.upper if upper is None else np.minimum(upper, self.upper),
        )


def _check_against(model: Any, limits: JointLimits, source: str) -> None:
    """Refuse limits wider than the MJCF's: a slip of the pen would not show before it breaks."""
    for index, name in enumerate(limits.names):
        if limits.continuous[index] != bool(np.isinf(model.upperPositionLimit[index])):
            raise RobotModelError(f"{source}: {name} is continuous in one of MJCF and YAML only")
        checks = [("effort", limits.effort[index] - model.effortLimit[index])]
        if not limits.continuous[index]:
            checks += [
                ("lower", model.lowerPositionLimit[index] - limits.lower[index]),
                ("upper", limits.upper[index] - model.upperPositionLimit[index]),
            ]
        for key, excess in checks:
            if excess > 1e-9:
                raise RobotModelError(
                    f"{source}: {name} {key} is wider than in the MJCF by {excess:g}"
                )


def _home(description: RobotDescription, limits: JointLimits, source: str) -> FloatArray:
    unknown = sorted(set(description.home) - set(limits.names))
    if unknown:
        raise RobotModelError(f"{source}: home names unknown joint {', '.join(unknown)}")
    for name, lower, upper in zip(limits.names, limits.lower, limits.upper, strict=True):
        if name not in description.home:
            raise RobotModelError(f"{source}: home of {name} is missing")
        value = description.home[name]
        if not lower <= value <= upper:
            raise RobotModelError(
                f"{source}: home of {name} must be {lower:g} to {upper:g} rad, got {value:g}"
            )
    home = np.array([description.home[name] for name in limits.names])
    home.flags.writeable = False
    return home
