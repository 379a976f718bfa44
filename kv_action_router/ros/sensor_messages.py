"""Messages of a driver: writers of its fast streams' bytes, and rare ones as they are.

Names, frames, sizes and covariances never change, so the writers are made with them once.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, WrenchStamped
from sensor_msgs.msg import CameraInfo, Image, Imu, JointState

from kv_action_router.contracts import FloatArray
from kv_action_router.msg import DriveState, SceneState, SimulationTruth
from kv_action_router.ros.wire import FieldWriter

_STAMP = ("header.stamp.sec", "header.stamp.nanosec")
_XYZ = "xyz"


def stamp_of(nanoseconds: int) -> tuple[int, int]:
    """Return the two numbers of a header's stamp [ns]: the first values of every writer here."""
    return divmod(nanoseconds, 1_000_000_000)


def joint_state_writer(names: Sequence[str], frame_id: str) -> FieldWriter:
    """Return a writer of stamp, position, velocity and effort in SI units, each (n,)."""
    zeros = [0.0] * len(names)
    message = JointState(name=list(names), position=zeros, velocity=zeros, effort=zeros)
    message.header.frame_id = frame_id
    return FieldWriter(JointState, (*_STAMP, "position", "velocity", "effort"), message)


def wrench_writer(frame_id: str) -> FieldWriter:
    """Return a writer of stamp, force x, y, z [N] and torque x, y, z [N m]."""
    message = WrenchStamped()
    message.header.frame_id = frame_id
    names = [f"wrench.{part}.{axis}" for part in ("force", "torque") for axis in _XYZ]
    return FieldWriter(WrenchStamped, (*_STAMP, *names), message)


def imu_writer(frame_id: str, acceleration_noise: float, gyro_noise: float) -> FieldWriter:
    """Return a writer of an IMU's samples.

    It takes the stamp, orientation x, y, z, w, rate x, y, z [rad/s] and acceleration x, y, z
    [m/s^2].

    Args:
        frame_id: of the sensor.
        acceleration_noise: standard deviation [m/s^2], for the covariance.
        gyro_noise: standard deviation [rad/s], for the covariance.
    """
    message = Imu()
    message.header.frame_id = frame_id
    for covariance, deviation in (
        (message.orientation_covariance, 1e-3),
        (message.angular_velocity_covariance, gyro_noise),
        (message.linear_acceleration_covariance, acceleration_noise),
    ):
        covariance[0] = covariance[4] = covariance[8] = deviation**2
    names = [f"orientation.{axis}" for axis in "xyzw"]
    names += [f"angular_velocity.{axis}" for axis in _XYZ]
    names += [f"linear_acceleration.{axis}" for axis in _XYZ]
    return FieldWriter(Imu, (*_STAMP, *names), message)


def drive_state_writer(names: Sequence[str]) -> FieldWriter:
    """Return a writer of the feedback of named drives; wheel speeds are not measured.

    It takes the stamp, temperature [degC], current [A], rated current [A], duty, whether the drive
    is braked, and voltage [V], each (n,).
    """
    zeros = [0.0] * len(names)
    fields = ("temperature", "current", "rated_current", "duty")
    message = DriveState(
        name=list(names),
        braked=[False] * len(names),
        voltage=zeros,
        **dict.fromkeys(fields, zeros),
    )
    return FieldWriter(DriveState, (*_STAMP, *fields, "braked", "voltage"), message)


def image_writer(
    encoding: str, shape: tuple[int, ...], dtype: npt.DTypeLike, frame_id: str
) -> FieldWriter:
    """Return a writer of stamp and pixels; these as bytes: ``pixels.view(np.uint8)``.

    Args:
        encoding: see sensor_msgs/image_encodings.
        shape: (h, w) or (h, w, channels).
        dtype: of one channel.
        frame_id: of the camera's optical frame.
    """
    height, width = shape[:2]
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    message = Image(height=height, width=width, encoding=encoding, step=size // height)
    message.header.frame_id = frame_id
    message.data = array("B", bytes(size))
    return FieldWriter(Image, (*_STAMP, "data"), message)


def camera_info_writer(width: int, height: int, matrix: FloatArray, frame_id: str) -> FieldWriter:
    """Return a writer of the stamp of an undistorted pinhole camera's calibration.

    Args:
        width, height: [px].
        matrix: intrinsic matrix K (3, 3).
        frame_id: of the camera's optical frame.
    """
    message = CameraInfo(width=width, height=height, distortion_model="plumb_bob")
    message.header.frame_id = frame_id
    message.d = [0.0] * 5
    message.k = matrix.ravel()
    message.r = np.eye(3).ravel()
    message.p = np.hstack([matrix, np.zeros((3, 1))]).ravel()
    return FieldWriter(CameraInfo, _STAMP, message)


def scene_writer(joints: int, things: int, lights: int, frame_id: str) -> FieldWriter:
    """Return a writer of a scene's state.

    It takes the stamp, positions of the joints [rad] (n,), positions [m] (3 m,) and quaternions
    w, x, y, z (4 m,) of things, colors of lamps (3 l,) and half sizes of the box [m] (3,).
    """
    message = SceneState(
        joints=[0.0] * joints,
        positions=[0.0] * 3 * things,
        orientations=[0.0] * 4 * things,
        lights=[0.0] * 3 * lights,
    )
    message.header.frame_id = frame_id
    fields = ("joints", "positions", "orientations", "lights", "box")
    return FieldWriter(SceneState, (*_STAMP, *fields), message)


def pose_message(position: FloatArray, yaw: float = 0.0) -> Pose:
    """Return a pose at a position [m] (3,), turned about z by ``yaw`` [rad]."""
    pose = Pose()
    pose.position = _point(position)
    pose.orientation.z, pose.orientation.w = math.sin(yaw / 2), math.cos(yaw / 2)
    return pose


def truth_message(
    event: str, stamp_ns: int, target: FloatArray, tip: FloatArray, frame_id: str
) -> SimulationTruth:
    """Return where target and tip [m] (3,) are; error and force are not measured."""
    message = SimulationTruth(event=event, target=pose_message(target), tip=_point(tip))
    sec, nanosec = stamp_of(stamp_ns)
    message.header.stamp = Time(sec=sec, nanosec=nanosec)
    message.header.frame_id = frame_id
    message.error = message.force = math.nan
    message.final_torque = message.advance = message.search = math.nan
    message.insertion = message.insertion_force = math.nan
    return message


def _point(position: FloatArray) -> Point:
    x, y, z = (float(value) for value in position)
    return Point(x=x, y=y, z=z)
