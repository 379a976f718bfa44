"""Publishers of a driver's sensors: numbers in, bytes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from rclpy.node import Node

from kv_action_router.contracts import FloatArray
from kv_action_router.ros import topics
from kv_action_router.ros.bytes_publisher import BytesPublisher
from kv_action_router.ros.sensor_messages import (
    camera_info_writer,
    drive_state_writer,
    image_writer,
    imu_writer,
    joint_state_writer,
    scene_writer,
    stamp_of,
    wrench_writer,
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
        self._joints = joint_state_writer(names, BASE_FRAME)
        self._wrench = wrench_writer(TOOL_FRAME)
        self._imu = imu_writer(TOOL_FRAME, acceleration_noise, gyro_noise)
        self._drives = drive_state_writer(names)
        self._joint_publisher = BytesPublisher(node, topics.JOINT_STATES)
        self._wrench_publisher = BytesPublisher(node, topics.WRENCH)
        self._imu_publisher = BytesPublisher(node, topics.IMU)
        self._drive_publisher = BytesPublisher(node, topics.DRIVE_STATE)

    def joints(
        self, stamp_ns: int, position: FloatArray, velocity: FloatArray, effort: FloatArray
    ) -> None:
        """Publish position [rad], velocity [rad/s] and effort [N m], each (n,)."""
        values = (*stamp_of(stamp_ns), position, velocity, effort)
        self._joint_publisher.publish(self._joints.write(values))

    def wrench(self, stamp_ns: int, wrench: Sequence[float]) -> None:
        """Publish force x, y, z [N] and torque x, y, z [N m]."""
        self._wrench_publisher.publish(self._wrench.write((*stamp_of(stamp_ns), *wrench)))

    def imu(self, stamp_ns: int, reading: Sequence[float]) -> None:
        """Publish orientation x, y, z, w, rate x, y, z [rad/s], acceleration x, y, z [m/s^2]."""
        self._imu_publisher.publish(self._imu.write((*stamp_of(stamp_ns), *reading)))

    def drives(
        self,
        stamp_ns: int,
        temperature: FloatArray,
        current: FloatArray,
        rated_current: FloatArray,
        duty: FloatArray,
        braked: Sequence[bool],
        voltage: FloatArray,
    ) -> None:
        """Publish what the drives measure, each (n,).

        Args:
            stamp_ns: of the measurement [ns].
            temperature: [degC].
            current: [A].
            rated_current: [A].
            duty: current over rated current.
            braked: brake engaged.
            voltage: at the winding [V].
        """
        values = (*stamp_of(stamp_ns), temperature, current, rated_current, duty, braked, voltage)
        self._drive_publisher.publish(self._drives.write(values))

    def close(self) -> None:
        """Destroy the publishers; the thread that uses this must have ended."""
        for publisher in (
            self._joint_publisher,
            self._wrench_publisher,
            self._imu_publisher,
            self._drive_publisher,
        ):
            publisher.close()


class ScenePublisher:
    """What a simulated camera makes its images from. One thread may use it."""

    def __init__(self, node: Node, joints: int, things: int, lights: int) -> None:
        """Create the publisher for so many joints, things that are put somewhere, and lamps."""
        self._writer = scene_writer(joints, things, lights, BASE_FRAME)
        self._publisher = BytesPublisher(node, topics.SCENE_STATE)

    def publish(
        self,
        stamp_ns: int,
        joints: FloatArray,
        positions: FloatArray,
        orientations: FloatArray,
        lights: npt.NDArray[np.floating[Any]],
        box: FloatArray,
    ) -> None:
        """Publish where everything is.

        Args:
            stamp_ns: of the instant [ns].
            joints: positions [rad] (n,).
            positions: of the things [m] (m, 3).
            orientations: of the things, quaternions w, x, y, z (m, 4).
            lights: red, green, blue of each lamp (l, 3).
            box: half sizes of the box [m] (3,).
        """
        flat = positions.ravel(), orientations.ravel(), lights.ravel().astype(float)
        self._publisher.publish(self._writer.write((*stamp_of(stamp_ns), joints, *flat, box)))

    def close(self) -> None:
        """Destroy the publisher; the thread that uses this must have ended."""
        self._publisher.close()


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
        self._depth = image_writer(depth_encoding, size, kind, CAMERA_FRAME)
        self._color = image_writer(color_encoding, (*size, 3), np.uint8, CAMERA_FRAME)
        self._info = camera_info_writer(size[1], size[0], k, CAMERA_FRAME)
        self._depth_publisher = BytesPublisher(node, topics.DEPTH_IMAGE)
        self._info_publisher = BytesPublisher(node, topics.CAMERA_INFO)
        self._color_publisher = BytesPublisher(node, topics.COLOR_IMAGE)

    def publish(
        self, stamp_ns: int, color: npt.NDArray[np.uint8], depth: npt.NDArray[np.generic]
    ) -> None:
        """Publish one frame, all with one stamp. Color comes last: readers wait for it."""
        stamp = stamp_of(stamp_ns)
        self._depth_publisher.publish(self._depth.write((*stamp, depth.view(np.uint8))))
        self._info_publisher.publish(self._info.write(stamp))
        self._color_publisher.publish(self._color.write((*stamp, color)))

    def close(self) -> None:
        """Destroy the publishers; the thread that uses this must have ended."""
        for publisher in (self._depth_publisher, self._info_publisher, self._color_publisher):
            publisher.close()
