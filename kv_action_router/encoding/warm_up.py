"""One pass over everything that makes a key, before the first key counts.

The first call of anything costs more: code is loaded, buffers are made, BLAS starts. Here it is paid
before the node is active, and every library is kept to one thread.
"""

from __future__ import annotations

import cv2
import numpy as np
from threadpoolctl import threadpool_limits

from kv_action_router.contracts import DriveSample, ImuSample, ObstacleSpheres, TaskKey
from kv_action_router.encoding.camera import Camera, Intrinsics
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.encoder import KeyEncoder, Origin, Robot
from kv_action_router.encoding.odometry import OdometrySample
from kv_action_router.encoding.synthetic import disc_on_table

_ROUNDS = 5
_STEP_NS = 10_000_000


def limit_threads() -> None:
    """Keep OpenCV and BLAS to one thread: more of them turn a 0.1 ms product into spikes of 8 ms."""
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
    still = ImuSample(np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3), np.array([0.0, 0.0, 9.81]), 0)
    now = _STEP_NS
    for _ in range(_ROUNDS):
        now += _STEP_NS
        origin = Origin(now, now, now)
        encoder.joints.update(names, zeros, zeros, zeros, now, now)
        encoder.on_odometry(OdometrySample(0.0, 0.0, 0.0, 0.0, 0.0, now))
        encoder.inputs.on_imu(
            ImuSample(still.orientation, still.angular_velocity, still.linear_acceleration, now)
        )
        encoder.inputs.on_drives(
            DriveSample(names, zeros, zeros, zeros, zeros, zeros, np.zeros(len(names), bool), now)
        )
        encoder.on_body(now, origin)
        key = encoder.on_image(color, depth, origin, now)
        assert key is not None  # the synthetic depth image is valid
        obstacles = encoder.obstacles(depth, key)
    return key, obstacles


def _in_view(camera: Camera, height: float) -> np.ndarray:
    """Return a point of the plane z = height that the camera looks at, or the base without one."""
    ray = camera.rays[camera.shape[0] // 2, camera.shape[1] // 2].astype(float)
    if ray[2] > -0.05:
        return np.array([0.0, 0.0, height])
    return camera.origin + (height - camera.origin[2]) / ray[2] * ray
