"""Messages of a driver that are made once and filled in place: no allocation at 500 Hz.

Fast streams are patched bytes (``serialized.py``). The classes here own one ``message`` each, which
``fill`` returns; it must be published before the next ``fill``. What is rare is made anew.
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
from kv_action_router.msg import DriveState, SimulationTruth
from kv_action_router.ros.serialized import Marks, PatchedMessage


def set_stamp(stamp: Time, nanoseconds: int) -> None:
    """Write a time [ns] into a header's stamp."""
    stamp.sec, stamp.nanosec = divmod(nanoseconds, 1_000_000_000)


def joint_state_message(names: Sequence[str], frame_id: str) -> PatchedMessage:
    """Return joint states to fill with position, velocity and effort in SI units, each (n,)."""
    marks = Marks()
    size = len(names)
    message = JointState(name=list(names))
    message.header.frame_id = frame_id
    message.position = marks.take(size)
    message.velocity = marks.take(size)
    message.effort = marks.take(size)
    return PatchedMessage(message, marks)


def wrench_message(frame_id: str) -> PatchedMessage:
    """Return a wrench to fill with force [N] and torque [N m] in one array (6,)."""
    marks = Marks()
    message = WrenchStamped()
    message.header.frame_id = frame_id
    for vector in (message.wrench.force, message.wrench.torque):
        vector.x, vector.y, vector.z = marks.take(3)
    return PatchedMessage(message, marks)


def imu_message(frame_id: str, acceleration_noise: float, gyro_noise: float) -> PatchedMessage:
    """Return an IMU sample to fill.

    It takes orientation x, y, z, w (4,), rate [rad/s] (3,) and acceleration [m/s^2] (3,).

    Args:
        frame_id: of the sensor.
        acceleration_noise: standard deviation [m/s^2], for the covariance.
        gyro_noise: standard deviation [rad/s], for the covariance.
    """
    marks = Marks()
    message = Imu()
    message.header.frame_id = frame_id
    for covariance, deviation in (
        (message.orientation_covariance, 1e-3),
        (message.angular_velocity_covariance, gyro_noise),
        (message.linear_acceleration_covariance, acceleration_noise),
    ):
        covariance[0] = covariance[4] = covariance[8] = deviation**2
    turn = message.orientation
    turn.x, turn.y, turn.z, turn.w = marks.take(4)
    for vector in (message.angular_velocity, message.linear_acceleration):
        vector.x, vector.y, vector.z = marks.take(3)
    return PatchedMessage(message, marks)


class DriveStateMessage:
    """Feedback of named drives; wheel speeds are not measured."""

    def __init__(self, names: Sequence[str]) -> None:
        self.message = DriveState(name=list(names))

    def fill(
        self,
        stamp_ns: int,
        temperature: FloatArray,
        current: FloatArray,
        rated_current: FloatArray,
        duty: FloatArray,
        braked: bool,
    ) -> DriveState:
        """Write temperatures [degC], currents [A] and duties, each (n,), and the brakes' state."""
        message = self.message
        set_stamp(message.header.stamp, stamp_ns)
        message.temperature = array("d", temperature.tobytes())
        message.current = array("d", current.tobytes())
        message.rated_current = array("d", rated_current.tobytes())
        message.duty = array("d", duty.tobytes())
        message.braked = [braked] * len(message.name)
        return message


class ImageMessage:
    """An image whose pixels are written straight into the message's buffer.

    Attributes:
        pixels: view of the message's data: (h, w) or (h, w, channels).
    """

    def __init__(
        self, encoding: str, shape: tuple[int, ...], dtype: npt.DTypeLike, frame_id: str
    ) -> None:
        kind = np.dtype(dtype)
        height, width = shape[:2]
        size = int(np.prod(shape)) * kind.itemsize
        self.message = Image(height=height, width=width, encoding=encoding, step=size // height)
        self.message.header.frame_id = frame_id
        self.message.data = array("B", bytes(size))
        self.pixels: npt.NDArray[np.generic] = np.frombuffer(self.message.data, kind).reshape(shape)

    def fill(self, stamp_ns: int, pixels: npt.NDArray[np.generic]) -> Image:
        """Copy pixels of the same shape."""
        set_stamp(self.message.header.stamp, stamp_ns)
        self.pixels[...] = pixels
        return self.message


class CameraInfoMessage:
    """Calibration of an undistorted pinhole camera."""

    def __init__(self, width: int, height: int, matrix: FloatArray, frame_id: str) -> None:
        """Set the size [px] and the intrinsic matrix K (3, 3)."""
        self.message = CameraInfo(width=width, height=height, distortion_model="plumb_bob")
        self.message.header.frame_id = frame_id
        self.message.d = [0.0] * 5
        self.message.k = matrix.ravel()
        self.message.r = np.eye(3).ravel()
        self.message.p = np.hstack([matrix, np.zeros((3, 1))]).ravel()

    def fill(self, stamp_ns: int) -> CameraInfo:
        """Write the stamp."""
        set_stamp(self.message.header.stamp, stamp_ns)
        return self.message


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
    set_stamp(message.header.stamp, stamp_ns)
    message.header.frame_id = frame_id
    message.error = message.force = math.nan
    return message


def _point(position: FloatArray) -> Point:
    x, y, z = (float(value) for value in position)
    return Point(x=x, y=y, z=z)
