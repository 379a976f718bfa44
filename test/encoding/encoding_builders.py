"""Synthetic cameras, images and samples for the tests of stage 1."""

from __future__ import annotations

import numpy as np

from kv_action_router.contracts import DriveSample, FloatArray, ImuSample
from kv_action_router.encoding.camera import Camera, Intrinsics
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.encoder import KeyEncoder, Origin
from kv_action_router.encoding.images import ColorImage, DepthImage
from kv_action_router.encoding.synthetic import disc_on_table

MS = 1_000_000  # [ns]
SECOND = 1000 * MS
CONFIG = EncoderConfig()
INTRINSICS = Intrinsics(320, 240, 312.0, 312.0, 159.5, 119.5)
CAMERA = Camera(INTRINSICS, CONFIG.camera_position, CONFIG.camera_orientation)
CENTER = np.array([0.46, 0.03, 0.010])
JOINTS = ("pan", "lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
POSE = np.array([-0.3, -1.68, 1.41, -1.3, -1.57, -1.87])


def look(
    center: FloatArray = CENTER, noise: float = 0.0, seed: int = 1, **disc: float
) -> tuple[ColorImage, DepthImage]:
    """Return color and depth of a disc, with white noise of this deviation on the depth [m]."""
    shape = {"radius": CONFIG.target_radius, "height": CONFIG.target_height, **disc}
    color, depth = disc_on_table(CAMERA, center, **shape)
    generator = np.random.default_rng(seed)
    return color, depth + (noise * generator.standard_normal(depth.shape)).astype(np.float32)


def hide(
    color: ColorImage, depth: DepthImage, rows: slice, columns: slice, nearer: float = 0.15
) -> None:
    """Put something gray before a part of the images, in place."""
    color[rows, columns] = (120, 120, 125)
    depth[rows, columns] = depth[rows, columns].min() - nearer


def pixel_of(center: FloatArray) -> tuple[int, int]:
    """Return row and column that show a point of the base frame."""
    column, row = CAMERA.project(center[None, :])[0]
    return int(np.rint(row)), int(np.rint(column))


class FakeRobot:
    """Six joints; one sphere stands for the whole robot, far from the table."""

    joint_names = JOINTS
    velocity_limit = np.full(6, np.pi)
    spindles = np.zeros(6, dtype=bool)

    def __init__(self) -> None:
        self.spheres = np.array([[0.0, 0.0, 0.2, 0.1]])

    def link_spheres(self, q: FloatArray) -> FloatArray:
        return self.spheres


def encoder(robot: FakeRobot | None = None, **values: object) -> KeyEncoder:
    """Return an encoder with a camera and a fresh joint state at t = 1 s."""
    made = KeyEncoder(EncoderConfig(**values), robot or FakeRobot())
    made.set_camera(INTRINSICS)
    feed(made, SECOND)
    return made


def feed(made: KeyEncoder, now_ns: int, position: FloatArray = POSE) -> None:
    """Give the encoder a joint state received now."""
    made.joints.update(JOINTS, position, np.zeros(6), np.zeros(6), now_ns, now_ns)


def origin(now_ns: int) -> Origin:
    """Return the origin of a sample that was sent 1 ms before it was received."""
    return Origin(now_ns, now_ns - MS, now_ns)


def imu(now_ns: int, **parts: FloatArray) -> ImuSample:
    """Return an IMU sample at rest and upright, with some parts replaced."""
    values = {
        "orientation": np.array([0.0, 0.0, 0.0, 1.0]),
        "angular_velocity": np.zeros(3),
        "linear_acceleration": np.array([0.0, 0.0, 9.81]),
        **parts,
    }
    return ImuSample(receipt_ns=now_ns, **values)


def drives(now_ns: int, duty: FloatArray, names: tuple[str, ...] = JOINTS) -> DriveSample:
    """Return drive feedback with this duty."""
    empty = np.zeros(0)
    return DriveSample(names, empty, empty, empty, duty, empty, np.zeros(0, bool), now_ns)
