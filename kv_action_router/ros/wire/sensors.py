"""A driver's streams and the heartbeats."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import Imu, JointState

from kv_action_router.contracts import DriveSample, ImuSample, JointReading, JointSample
from kv_action_router.errors import InputError
from kv_action_router.msg import DriveState, Heartbeat
from kv_action_router.ros.wire.reader import FieldReader

_STAMP = ("header.stamp.sec", "header.stamp.nanosec")
_DRIVE_ARRAYS = ("temperature", "current", "rated_current", "duty", "wheel_speed")
_AXES = ("x", "y", "z")
_IMU = (
    *(f"orientation.{axis}" for axis in "xyzw"),
    *(f"angular_velocity.{axis}" for axis in _AXES),
    *(f"linear_acceleration.{axis}" for axis in _AXES),
    "orientation_covariance",
    "angular_velocity_covariance",
    "linear_acceleration_covariance",
)


def _read(reader: FieldReader, topic: str, data: bytes) -> tuple[Any, ...]:
    try:
        values = reader.read(data)
    except InputError:
        raise InputError(topic, "a complete message", f"{len(data)} bytes") from None
    assert values is not None  # none of these messages holds a sequence of messages
    return values


class JointReader:
    """Reads ``sensor_msgs/JointState``."""

    def __init__(self) -> None:
        names = (*_STAMP, "name", "position", "velocity", "effort")
        self._reader = FieldReader(JointState, names)

    def read(self, data: bytes, receipt_ns: int) -> JointReading:
        """Return what a message says that was received at ``receipt_ns`` [ns].

        Raises:
            InputError: it is not complete.
        """
        sec, nanosec, names, position, velocity, effort = _read(self._reader, "joint_states", data)
        stamp_ns = sec * 1_000_000_000 + nanosec
        return JointReading(names, position, velocity, effort, stamp_ns, receipt_ns)

    def sample(self, data: bytes, receipt_ns: int) -> JointSample:
        """Return the same with arrays; an empty one is "not measured" and becomes NaN (n,).

        Raises:
            InputError: not complete, no names, or an array that is neither (n,) nor empty.
        """
        names, position, velocity, effort, stamp_ns, _ = self.read(data, receipt_ns)
        size = len(names)
        if size == 0:
            raise InputError("name", "at least one joint", names)
        nan = np.full(size, np.nan)
        arrays = []
        for field, values in (("position", position), ("velocity", velocity), ("effort", effort)):
            if len(values) not in (0, size):
                raise InputError(field, f"of size {size}", len(values))
            arrays.append(np.array(values) if values else nan)
        return JointSample(tuple(names), *arrays, receipt_ns, stamp_ns)


class DriveReader:
    """Reads ``DriveState``."""

    def __init__(self) -> None:
        names = ("name", *_DRIVE_ARRAYS, "braked", "voltage")
        self._reader = FieldReader(DriveState, names, (*_DRIVE_ARRAYS, "voltage"))

    def read(self, data: bytes, receipt_ns: int) -> DriveSample:
        """Return what a message says that was received at ``receipt_ns`` [ns].

        Raises:
            InputError: it is not complete, or an array is neither (n,) nor empty.
        """
        names, *arrays, braked, voltage = _read(self._reader, "drive_state", data)
        for array in (*arrays, braked, voltage):
            if len(array) not in (0, len(names)):
                raise InputError("drive_state", f"of {len(names)} values an array", len(array))
        return DriveSample(names, *arrays, np.array(braked, dtype=np.bool_), receipt_ns, voltage)


class ImuReader:
    """Reads ``sensor_msgs/Imu``."""

    def __init__(self) -> None:
        self._reader = FieldReader(Imu, _IMU)

    def read(self, data: bytes, receipt_ns: int) -> ImuSample:
        """Return what a message says that was received at ``receipt_ns`` [ns].

        Parts that are not measured are NaN: covariance[0] = -1 (REP 145), and an orientation whose
        quaternion is zero.

        Raises:
            InputError: it is not complete.
        """
        v = _read(self._reader, "imu", data)
        turn, rate, force = np.array(v[0:4]), np.array(v[4:7]), np.array(v[7:10])
        if v[10][0] == -1.0 or not any(v[0:4]):
            turn[:] = np.nan
        if v[11][0] == -1.0:
            rate[:] = np.nan
        if v[12][0] == -1.0:
            force[:] = np.nan
        return ImuSample(turn, rate, force, receipt_ns)


class WrenchReader:
    """Reads ``geometry_msgs/WrenchStamped``."""

    def __init__(self) -> None:
        names = [f"wrench.{part}.{axis}" for part in ("force", "torque") for axis in _AXES]
        self._reader = FieldReader(WrenchStamped, names)

    def read(self, data: bytes) -> tuple[float, ...]:
        """Return force [N] and torque [N m], six numbers.

        Raises:
            InputError: it is not complete.
        """
        return _read(self._reader, "wrench", data)


class HeartbeatReader:
    """Reads ``Heartbeat``."""

    def __init__(self) -> None:
        self._reader = FieldReader(Heartbeat, ("lifecycle_state", "epoch"))

    def read(self, data: bytes) -> tuple[int, int]:
        """Return the lifecycle state and the epoch.

        Raises:
            InputError: it is not complete.
        """
        state, epoch = _read(self._reader, "heartbeat", data)
        return state, epoch
