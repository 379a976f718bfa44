"""Publishers of a driver's sensors: arrays in, messages out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from rclpy.node import Node

from kv_action_router.contracts import FloatArray
from kv_action_router.ros import topics
from kv_action_router.ros.sensor_messages import (
    CameraInfoMessage,
    DriveStateMessage,
    ImageMessage,
    imu_message,
    joint_state_message,
    wrench_message,
)

BASE_FRAME = "base_link"
TOOL_FRAME = "tool0"
CAMERA_FRAME = "camera_color_optical_frame"


def create(node: Node, topic: topics.Topic) -> Any:
    """Return a publisher of a topic with the profile that it is declared with."""
    return node.create_publisher(topic.type, topic.name, topic.profile())


class RobotPublishers:
    """Joint states, wrench, IMU and drive states. One thread may use it."""

    def __init__(
        self, node: Node, names: Sequence[str], acceleration_noise: float, gyro_noise: float
    ) -> None:
        """Create the publishers; noise [m/s^2] and [rad/s] goes into the IMU's covariances."""
        self._joints = joint_state_message(names, BASE_FRAME)
        self._wrench = wrench_message(TOOL_FRAME)
        self._imu = imu_message(TOOL_FRAME, acceleration_noise, gyro_noise)
        self._drives = DriveStateMessage(names)
        self._joint_publisher = create(node, topics.JOINT_STATES)
        self._wrench_publisher = create(node, topics.WRENCH)
        self._imu_publisher = create(node, topics.IMU)
        self._drive_publisher = create(node, topics.DRIVE_STATE)

    def joints(self, stamp_ns: int, *readings: FloatArray) -> None:
        """Publish position [rad], velocity [rad/s] and effort [N m], each (n,)."""
        self._joint_publisher.publish(self._joints.fill(stamp_ns, *readings))

    def wrench(self, stamp_ns: int, wrench: FloatArray) -> None:
        """Publish force [N] and torque [N m] in one array (6,)."""
        self._wrench_publisher.publish(self._wrench.fill(stamp_ns, wrench))

    def imu(self, stamp_ns: int, *readings: FloatArray) -> None:
        """Publish orientation x, y, z, w, rate [rad/s] and acceleration [m/s^2]."""
        self._imu_publisher.publish(self._imu.fill(stamp_ns, *readings))

    def drives(
        self,
        stamp_ns: int,
        temperature: FloatArray,
        current: FloatArray,
        rated_current: FloatArray,
        duty: FloatArray,
        braked: bool,
    ) -> None:
        """Publish temperature [degC], current [A], rated current [A] and duty, each (n,)."""
        self._drive_publisher.publish(
            self._drives.fill(stamp_ns, temperature, current, rated_current, duty, braked)
        )


class ImagePublishers:
    """Depth, calibration and color of one camera. One thread may use it."""

    def __init__(
        self,
        node: Node,
        color_encoding: str,
        depth_encoding: str,
        size: tuple[int, int],
        k: FloatArray,
    ) -> None:
        """Create the publishers for images of ``size`` (h, w) and intrinsic matrix ``k`` (3, 3)."""
        kind = np.uint16 if depth_encoding == "16UC1" else np.float32
        self._depth = ImageMessage(depth_encoding, size, kind, CAMERA_FRAME)
        self._color = ImageMessage(color_encoding, (*size, 3), np.uint8, CAMERA_FRAME)
        self._info = CameraInfoMessage(size[1], size[0], k, CAMERA_FRAME)
        self._depth_publisher = create(node, topics.DEPTH_IMAGE)
        self._info_publisher = create(node, topics.CAMERA_INFO)
        self._color_publisher = create(node, topics.COLOR_IMAGE)

    def publish(
        self, stamp_ns: int, color: npt.NDArray[np.uint8], depth: npt.NDArray[np.generic]
    ) -> None:
        """Publish one frame, all with one stamp. Color comes last: readers wait for it."""
        self._depth_publisher.publish(self._depth.fill(stamp_ns, depth))
        self._info_publisher.publish(self._info.fill(stamp_ns))
        self._color_publisher.publish(self._color.fill(stamp_ns, color))
