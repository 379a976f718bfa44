"""One pass over everything that makes a key, before the first key counts.

The first call of anything costs more: code is loaded, buffers are made, BLAS starts. Here it is
paid before the node is active, and every library is kept to one thread.
"""

from __future__ import annotations

import cv2
import numpy as np
from threadpoolctl import threadpool_limits

from kv_action_router.contracts import DriveSample, FloatArray, ImuSample, ObstacleSpheres, TaskKey
from kv_action_router.encoding.camera import Camera, Intrinsics
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.encoder import KeyEncoder, Origin
from kv_action_router.encoding.odometry import OdometrySample
from kv_action_router.encoding.robot import Robot
from kv_action_router.encoding.synthetic import disc_on_table
from kv_action_router.errors import EncodingError

_ROUNDS = 5
_STEP_NS = 10_000_000


def limit_threads() -> None:
    """Keep OpenCV and BLAS to one thread: more turn a product of 0.1 ms into spikes of 8 ms."""
    cv2.setNumThreads(1)
    threadpool_limits(limits=1)


def warm_up(config: EncoderConfig, robot: Robot) -> tuple[TaskKey, ObstacleSpheres]:
    """Make keys and obstacles from synthetic data with an encoder of their own; return the last.

    Args:
        config: of the encoder that will be used.
        robot: its model; its state does not change.
    """
    encoder = KeyEncoder(config, robot)
    intrinsics = Intrinsics(320, 240, 312.0, 312.0, 159.5, 119.5)
    encoder.set_camera(intrinsics)
    camera = Camera(intrinsics, config.camera_position, config.camera_orientation)
    center = _in_view(camera, config.target_height)
    color, depth = disc_on_table(camera, center, config.target_radius, config.target_height)
    names = encoder.joints.names
    zeros = np.zeros(len(names))
    upright, gravity = np.array([0.0, 0.0, 0.0, 1.0]), np.array([0.0, 0.0, 9.81])
    now = _STEP_NS
    key: TaskKey | None = None
    for _ in range(_ROUNDS):
        now += _STEP_NS
        origin = Origin(now, now, now)
        encoder.joints.update(names, zeros, zeros, zeros, now, now)
        encoder.on_odometry(OdometrySample(0.0, 0.0, 0.0, 0.0, 0.0, now))
        encoder.inputs.on_imu(ImuSample(upright, np.zeros(3), gravity, now))
        encoder.inputs.on_drives(
            DriveSample(names, zeros, zeros, zeros, zeros, zeros, np.zeros(len(names), bool), now)
        )
        encoder.on_body(now, origin)
        key = encoder.on_image(color, depth, origin, now)
    if key is None:
        raise EncodingError("warm-up: the synthetic depth image was refused")
    return key, encoder.obstacles(depth, key)


def _in_view(camera: Camera, height: float) -> FloatArray:
    """Return a point of the plane z = height that the camera looks at, or the base without one."""
    ray = camera.rays[camera.shape[0] // 2, camera.shape[1] // 2].astype(float)
    if ray[2] > -0.05:
        return np.array([0.0, 0.0, height])
    return camera.origin + (height - camera.origin[2]) / ray[2] * ray
