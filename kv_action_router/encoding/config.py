"""Parameters of the encoding stage, declared once; those of perception in a file of their own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kv_action_router.configuration import Configuration, parameter
from kv_action_router.encoding.perception_config import PerceptionConfig, TargetConfig
from kv_action_router.errors import ConfigError
from kv_action_router.identity import check_if_named


@dataclass(frozen=True)
class ObstacleConfig(Configuration):
    """Which depth points become obstacle spheres."""

    obstacle_every: int = parameter(3, "images per message with obstacles", minimum=1, maximum=1000)
    obstacle_stride: int = parameter(
        6,
        "pixels between two depth points, both ways",
        unit="px",
        minimum=1,
        maximum=64,
    )
    obstacle_cell: float = parameter(
        0.05,
        "edge of the cells that points are gathered in",
        unit="m",
        minimum=0.005,
        maximum=1.0,
    )
    obstacle_points_minimum: int = parameter(
        2, "points that make a cell an obstacle", minimum=1, maximum=1000
    )
    obstacle_height_minimum: float = parameter(
        0.025,
        "height above the base plane below which a point is table",
        unit="m",
        minimum=-5.0,
        maximum=5.0,
    )
    obstacle_range: float = parameter(
        1.6,
        "distance from the base beyond which points are left out",
        unit="m",
        minimum=0.1,
        maximum=20.0,
    )
    robot_padding: float = parameter(
        0.04,
        "added to the robot's own spheres when it is filtered out",
        unit="m",
        minimum=0.0,
        maximum=1.0,
    )
    target_padding: float = parameter(
        0.02,
        "added around the target when it is filtered out",
        unit="m",
        minimum=0.0,
        maximum=1.0,
    )


@dataclass(frozen=True)
class SlipConfig(Configuration):
    """When the wheels' odometry is not believed."""

    slip_ratio: float = parameter(
        1.8,
        "ratio of IMU to wheel acceleration, or its inverse, that means slip",
        minimum=1.05,
        maximum=100.0,
    )
    slip_acceleration_dead_band: float = parameter(
        0.35,
        "accelerations below it are no evidence",
        unit="m/s^2",
        minimum=0.001,
        maximum=50.0,
    )
    slip_yaw_dead_band: float = parameter(
        0.15,
        "difference of gyro and wheel yaw rate below it is no evidence",
        unit="rad/s",
        minimum=0.001,
        maximum=50.0,
    )
    slip_filter: float = parameter(
        0.05,
        "time constant of both accelerations' low pass",
        unit="s",
        minimum=0.001,
        maximum=10.0,
    )
    slip_attack: float = parameter(
        0.05,
        "time constant with which the confidence falls",
        unit="s",
        minimum=0.001,
        maximum=10.0,
    )
    slip_release: float = parameter(
        0.5,
        "time constant with which the confidence returns",
        unit="s",
        minimum=0.001,
        maximum=100.0,
    )
    gravity_filter: float = parameter(
        2.0,
        "time constant of the gravity estimate where the IMU gives no orientation",
        unit="s",
        minimum=0.01,
        maximum=100.0,
    )


@dataclass(frozen=True)
class EncoderConfig(TargetConfig, PerceptionConfig, ObstacleConfig, SlipConfig):
    """All parameters of the node ``task_key_encoder``."""

    robot: str = parameter("ur5e", "robot model, or the path of its YAML file")
    joint_prefix: str = parameter("", "prefix of the robot's joint names")
    robot_id: str = parameter(
        "",
        "identity of the robot, its hash is the robot slice; empty = the kept one, else made from "
        "the hardware address",
    )
    domain: str = parameter("", "cache partition; empty = the robot's identity")
    scene: str = parameter("table", "scene whose thresholds apply, until another is told")
    scene_source: str = parameter(
        "parameter",
        "who says which scene it is: this parameter, the topic scene, or the image's scene slice "
        "compared with scenes_file; a task that names its scene goes before",
        choices=("parameter", "topic", "slice"),
    )
    scenes_file: str = parameter(
        "", "YAML file of known scenes (kv_router remember-scene), for scene_source slice"
    )
    scene_minimum: float = parameter(
        0.9,
        "similarity to a known scene's slice below which the scene is unknown",
        minimum=-1.0,
        maximum=1.0,
    )
    base_frame: str = parameter("base_link", "frame of all poses in keys and obstacles")
    required_joints: tuple[str, ...] = parameter(
        ("",),
        "joints without which there is no key; one empty name = all of the robot model",
    )
    key_rate: float = parameter(
        100.0, "rate of keys between images", unit="Hz", minimum=1.0, maximum=1000.0
    )
    joint_timeout: float = parameter(
        0.1,
        "age of a joint's state beyond which it counts as missing",
        unit="s",
        minimum=0.005,
        maximum=60.0,
    )
    input_timeout: float = parameter(
        0.2,
        "age of IMU, odometry or drive feedback beyond which it is masked",
        unit="s",
        minimum=0.005,
        maximum=60.0,
    )
    target_hold_limit: float = parameter(
        10.0,
        "how long the last estimate is held while the target is hidden",
        unit="s",
        minimum=0.0,
        maximum=3600.0,
    )
    target_gone_frames: int = parameter(
        3,
        "images in a row that show the empty place before a held target is dropped",
        minimum=1,
        maximum=1000,
    )
    pairing_tolerance: float = parameter(
        0.010,
        "largest difference of the stamps of a color and a depth image",
        unit="s",
        minimum=0.0,
        maximum=1.0,
    )
    stamp_tolerance: float = parameter(
        5.0,
        "largest difference of a stamp from the wall clock before receipt time replaces it",
        unit="s",
        minimum=0.01,
        maximum=86400.0,
    )
    odometry_window: float = parameter(
        1.0,
        "time over which the odometry displacement in the key is taken",
        unit="s",
        minimum=0.05,
        maximum=60.0,
    )
    odometry_jump: float = parameter(
        0.5,
        "displacement between two odometry samples that is a jump",
        unit="m",
        minimum=0.001,
        maximum=1000.0,
    )
    camera_position: tuple[float, ...] = parameter(
        (0.78, 0.0, 0.38),
        "optical center in the base frame",
        unit="m",
        minimum=-10.0,
        maximum=10.0,
    )
    camera_orientation: tuple[float, ...] = parameter(
        (0.66425, 0.66425, -0.24243, -0.24243),
        "optical frame (x right, y down, z forward) in the base frame, quaternion x, y, z, w",
        minimum=-1.0,
        maximum=1.0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, size in (("camera_position", 3), ("camera_orientation", 4)):
            value = getattr(self, name)
            if len(value) != size:
                raise ConfigError(name, f"{size} numbers", value)
        norm = float(np.linalg.norm(self.camera_orientation))
        if abs(norm - 1.0) > 1e-3:
            raise ConfigError("camera_orientation", "a unit quaternion", self.camera_orientation)
        for field in ("robot_id", "domain"):
            check_if_named(field, getattr(self, field))
        if self.scene_source == "slice" and not self.scenes_file:
            raise ConfigError("scenes_file", "a file where scene_source is slice", "")
        if self.pairing_tolerance >= 1.0 / 30.0:
            # above a frame's period at 30 Hz two neighboring frames would pair as well
            raise ConfigError("pairing_tolerance", "below 1/30 s", self.pairing_tolerance)

    @property
    def domain_name(self) -> str:
        """Cache partition in which this robot's keys live."""
        return self.domain or self.identity

    @property
    def identity(self) -> str:
        """Who the robot is; without ROS nobody fills ``robot_id`` in, and the model stands in."""
        return self.robot_id or Path(self.robot).stem
