"""Takes one camera image together with the target that was decoded from it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sensor_msgs.msg import CameraInfo, Image

from kv_action_router.contracts import FloatArray
from kv_action_router.encoding.camera import Camera, Intrinsics
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.msg import TaskKey
from kv_action_router.reporting.records import TargetFrame
from kv_action_router.ros import qos
from kv_action_router.ros.streams import DataPlane
from kv_action_router.ros.topics import CAMERA_INFO, COLOR_IMAGE, TASK_KEY
from kv_action_router.ros.wire.reader import FieldReader, message_from_bytes

_STAMP = ("header.stamp.sec", "header.stamp.nanosec")
_KEY = (
    "decision.header.stamp.sec",
    "decision.header.stamp.nanosec",
    "trigger",
    "target_valid",
    "target.pose.position.x",
    "target.pose.position.y",
    "target.pose.position.z",
)
_KEPT = 4  # images whose key has not come yet


class FrameCapture:
    """Holds some images until a key with the stamp of one tells where its target is.

    It is polled, and looks at the stamps of what came only: images are too big to be read for
    nothing. Once it has its frame it leaves the topics.

    Invariant: ``frame`` is set once, and its image and target come from the same instant.
    """

    def __init__(self, plane: DataPlane, config: EncoderConfig) -> None:
        self.frame: TargetFrame | None = None
        self._config = config
        self._plane = plane
        self._images: dict[tuple[int, int], bytes] = {}
        self._intrinsics: Intrinsics | None = None
        self._colors = plane.reader(COLOR_IMAGE, profile=qos.sensor(), raw=True)
        self._infos = plane.reader(CAMERA_INFO, profile=qos.sensor(), raw=True)
        self._keys = plane.reader(TASK_KEY, profile=qos.log_stream(), raw=True)
        self._stamp = FieldReader(Image, _STAMP)
        self._key = FieldReader(TaskKey, _KEY)

    def take_all(self) -> None:
        """Take what came; on the thread that polls the plane."""
        if self.frame is not None:
            return
        if self._intrinsics is None and (sample := self._infos.take()) is not None:
            info = message_from_bytes(CameraInfo, sample.message)
            self._intrinsics = Intrinsics.from_matrix(info.width, info.height, info.k)
        while (sample := self._colors.take()) is not None:
            stamp = self._stamp.read(sample.message)
            if stamp is not None:
                self._images[stamp] = sample.message
        while len(self._images) > _KEPT:
            del self._images[next(iter(self._images))]
        while (sample := self._keys.take()) is not None:
            fields = self._key.read(sample.message)
            if fields is not None:
                self._on_key(*fields)
        if self.frame is not None:
            self._images.clear()
            for reader in (self._colors, self._infos, self._keys):
                self._plane.leave(reader)

    def _on_key(
        self, sec: int, nanosec: int, trigger: int, valid: bool, x: float, y: float, z: float
    ) -> None:
        image = self._images.get((sec, nanosec))
        unfit = not valid or trigger != TaskKey.TRIGGER_IMAGE
        if self.frame is not None or image is None or self._intrinsics is None or unfit:
            return
        camera = Camera(
            self._intrinsics, self._config.camera_position, self._config.camera_orientation
        )
        center = np.array([x, y, z])
        pixel: FloatArray = np.asarray(camera.project(center[None, :])).reshape(-1)[:2]
        radius = camera.focal_length * self._config.target_radius / camera.depth_of(center)
        if math.isfinite(radius):
            self.frame = TargetFrame(
                _colors_of(message_from_bytes(Image, image)),
                (float(pixel[0]), float(pixel[1])),
                float(radius),
            )


def _colors_of(image: Any) -> np.ndarray:
    """Return an image's pixels, RGB (h, w, 3)."""
    pixels = np.frombuffer(image.data, np.uint8).reshape(image.height, image.step)
    colors = pixels[:, : 3 * image.width].reshape(image.height, image.width, 3)
    return (colors[:, :, ::-1] if image.encoding == "bgr8" else colors).copy()
