"""Takes one camera image together with the target that was decoded from it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from rclpy.node import Node

from kv_action_router.encoding.camera import Camera, Intrinsics
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.msg import TaskKey
from kv_action_router.reporting.records import TargetFrame
from kv_action_router.ros import qos
from kv_action_router.ros.topics import CAMERA_INFO, COLOR_IMAGE, TASK_KEY


class FrameCapture:
    """Holds the newest image until a key with the same stamp tells where its target is.

    Invariant: ``frame`` is set once, and its image and target come from the same instant.
    """

    def __init__(self, node: Node, config: EncoderConfig) -> None:
        self.frame: TargetFrame | None = None
        self._config = config
        self._node = node
        self._images: dict[tuple[int, int], Any] = {}
        self._intrinsics: Intrinsics | None = None
        self._subscriptions = [
            node.create_subscription(
                COLOR_IMAGE.type, COLOR_IMAGE.name, self._on_image, qos.sensor()
            ),
            node.create_subscription(
                CAMERA_INFO.type, CAMERA_INFO.name, self._on_info, qos.sensor()
            ),
            node.create_subscription(TaskKey, TASK_KEY.name, self._on_key, qos.log_stream()),
        ]

    def close(self) -> None:
        """Leave the topics; images are too big to be received for nothing."""
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        self._subscriptions.clear()
        self._images.clear()

    def _on_info(self, message: Any) -> None:
        self._intrinsics = Intrinsics.from_matrix(message.width, message.height, message.k)

    def _on_image(self, message: Any) -> None:
        stamp = message.header.stamp
        self._images[(stamp.sec, stamp.nanosec)] = message
        while len(self._images) > 8:
            del self._images[next(iter(self._images))]

    def _on_key(self, message: TaskKey) -> None:
        stamp = message.decision.header.stamp
        image = self._images.get((stamp.sec, stamp.nanosec))
        if (
            self.frame is not None
            or image is None
            or self._intrinsics is None
            or not message.target_valid
            or message.trigger != TaskKey.TRIGGER_IMAGE
        ):
            return
        camera = Camera(
            self._intrinsics, self._config.camera_position, self._config.camera_orientation
        )
        point = message.target.pose.position
        center = np.array([point.x, point.y, point.z])
        pixel = np.asarray(camera.project(center[None, :])).reshape(-1)[:2]
        pixels = np.frombuffer(image.data, np.uint8).reshape(image.height, image.step)
        colors = pixels[:, : 3 * image.width].reshape(image.height, image.width, 3)
        if image.encoding == "bgr8":
            colors = colors[:, :, ::-1]
        radius = camera.focal_length * self._config.target_radius / camera.depth_of(center)
        if math.isfinite(radius):
            self.frame = TargetFrame(
                colors.copy(), (float(pixel[0]), float(pixel[1])), float(radius)
            )
