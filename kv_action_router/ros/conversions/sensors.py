"""Samples of a driver: JointSample, ImuSample, DriveSample, a wrench; and ObstacleSpheres."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import Wrench
from sensor_msgs.msg import Imu, JointState

from kv_action_router import contracts
from kv_action_router.contracts import DriveSample, FloatArray, ImuSample, JointSample
from kv_action_router.errors import InputError
from kv_action_router.msg import DriveState, ObstacleSpheres
from kv_action_router.ros.conversions.decision import decision_from_msg, decision_to_msg
from kv_action_router.ros.conversions.fields import (
    bools_from_field,
    bools_to_field,
    doubles_from_field,
    fill_doubles,
    fill_floats,
    floats_from_field,
    sized,
    sized_or_nan,
    stamp_from_msg,
    stamp_to_msg,
)

_DRIVE_FIELDS = ("temperature", "current", "rated_current", "duty", "wheel_speed", "voltage")


def joints_to_msg(joints: JointSample, msg: JointState | None = None) -> JointState:
    """Write a joint sample into ``msg`` (a new one when None) and return it."""
    msg = JointState() if msg is None else msg
    stamp_to_msg(joints.stamp_ns, msg.header.stamp)
    msg.name = [str(name) for name in joints.names]
    fill_doubles(msg, "position", joints.position)
    fill_doubles(msg, "velocity", joints.velocity)
    fill_doubles(msg, "effort", joints.effort)
    return msg


def joints_from_msg(msg: JointState, receipt_ns: int) -> JointSample:
    """Return the joint sample that a message carries, in the message's order of joints.

    An empty array is "not measured" and becomes NaN (n,); so does what the driver sends as NaN.

    Raises:
        InputError: no names, or an array that is neither (n,) nor empty.
    """
    names = tuple(msg.name)
    size = len(names)
    if size == 0:
        raise InputError("name", "at least one joint", names)
    return JointSample(
        names=names,
        position=sized_or_nan(doubles_from_field(msg.position), size, "position"),
        velocity=sized_or_nan(doubles_from_field(msg.velocity), size, "velocity"),
        effort=sized_or_nan(doubles_from_field(msg.effort), size, "effort"),
        receipt_ns=receipt_ns,
        stamp_ns=stamp_from_msg(msg.header.stamp),
    )


def imu_to_msg(imu: ImuSample, msg: Imu | None = None) -> Imu:
    """Write an IMU sample into ``msg`` (a new one when None) and return it.

    A part that is not measured (NaN) becomes zeros with covariance[0] = -1 (REP 145); the
    covariances of the others are set to 0, unknown, only where they said "not measured" before.
    """
    msg = Imu() if msg is None else msg
    for part, vector, covariance in (
        (imu.orientation, msg.orientation, msg.orientation_covariance),
        (imu.angular_velocity, msg.angular_velocity, msg.angular_velocity_covariance),
        (imu.linear_acceleration, msg.linear_acceleration, msg.linear_acceleration_covariance),
    ):
        measured = not bool(np.isnan(part).any())
        if not measured:
            covariance[0] = -1.0
        elif covariance[0] == -1.0:
            covariance[0] = 0.0
        for axis, value in zip("xyzw", part, strict=False):
            setattr(vector, axis, float(value) if measured else 0.0)
    return msg


def imu_from_msg(msg: Imu, receipt_ns: int) -> ImuSample:
    """Return the IMU sample that a message carries; parts that are not measured are NaN.

    Not measured: covariance[0] = -1 (REP 145), and an orientation whose quaternion is zero.
    """
    turn, rate, acceleration = msg.orientation, msg.angular_velocity, msg.linear_acceleration
    orientation = np.array([turn.x, turn.y, turn.z, turn.w])
    if msg.orientation_covariance[0] == -1.0 or not orientation.any():
        orientation[:] = np.nan
    angular = np.array([rate.x, rate.y, rate.z])
    if msg.angular_velocity_covariance[0] == -1.0:
        angular[:] = np.nan
    linear = np.array([acceleration.x, acceleration.y, acceleration.z])
    if msg.linear_acceleration_covariance[0] == -1.0:
        linear[:] = np.nan
    return ImuSample(orientation, angular, linear, receipt_ns)


def wrench_to_msg(wrench: FloatArray, msg: Wrench | None = None) -> Wrench:
    """Write force [N] and torque [N m] (6,) into ``msg`` (a new one when None) and return it."""
    msg = Wrench() if msg is None else msg
    fx, fy, fz, tx, ty, tz = wrench
    force, torque = msg.force, msg.torque
    force.x, force.y, force.z = float(fx), float(fy), float(fz)
    torque.x, torque.y, torque.z = float(tx), float(ty), float(tz)
    return msg


def wrench_from_msg(msg: Wrench) -> FloatArray:
    """Return force [N] and torque [N m] (6,)."""
    force, torque = msg.force, msg.torque
    return np.array([force.x, force.y, force.z, torque.x, torque.y, torque.z])


def drives_to_msg(drives: DriveSample, msg: DriveState | None = None) -> DriveState:
    """Write a sample of the drives into ``msg`` (a new one when None); the header is not set."""
    msg = DriveState() if msg is None else msg
    msg.name = [str(name) for name in drives.names]
    for field in _DRIVE_FIELDS:
        fill_doubles(msg, field, getattr(drives, field))
    msg.braked = bools_to_field(drives.braked)
    return msg


def drives_from_msg(msg: DriveState, receipt_ns: int) -> DriveSample:
    """Return the sample of the drives that a message carries.

    Raises:
        InputError: an array that is neither (n,) nor empty.
    """
    names = tuple(msg.name)
    values = {}
    for field in _DRIVE_FIELDS:
        array = doubles_from_field(getattr(msg, field))
        values[field] = sized(array, len(names), field) if array.size else array
    braked = bools_from_field(msg.braked)
    if braked.size:
        sized(braked, len(names), "braked")
    return DriveSample(names=names, braked=braked, receipt_ns=receipt_ns, **values)


def obstacles_to_msg(
    obstacles: contracts.ObstacleSpheres, msg: ObstacleSpheres | None = None
) -> ObstacleSpheres:
    """Write obstacles into ``msg`` (a new one when None) and return it.

    Raises:
        InputError: more than 256, or not three coordinates a radius.
    """
    msg = ObstacleSpheres() if msg is None else msg
    _check_obstacles(obstacles.center.size, obstacles.radius.size)
    decision_to_msg(obstacles.decision, msg.decision)
    fill_floats(msg, "center", obstacles.center)
    fill_floats(msg, "radius", obstacles.radius)
    return msg


def obstacles_from_msg(msg: ObstacleSpheres) -> contracts.ObstacleSpheres:
    """Return the obstacles that a message carries.

    Raises:
        InputError: more than 256, or not three coordinates a radius.
    """
    _check_obstacles(len(msg.center), len(msg.radius))
    return contracts.ObstacleSpheres(
        decision=decision_from_msg(msg.decision),
        center=floats_from_field(msg.center).reshape(-1, 3),
        radius=floats_from_field(msg.radius),
    )


def _check_obstacles(coordinates: int, radii: int) -> None:
    maximum = contracts.ObstacleSpheres.MAXIMUM
    if radii > maximum:
        raise InputError("radius", f"at most {maximum} obstacles", radii)
    if coordinates != 3 * radii:
        raise InputError("center", f"of size 3 * {radii}", coordinates)
