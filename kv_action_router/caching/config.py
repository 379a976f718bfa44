"""Parameters of the cache manager."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kv_action_router.configuration import parameter
from kv_action_router.errors import ConfigError
from kv_action_router.identity import check_if_named
from kv_action_router.robots.collision_config import CollisionConfig


@dataclass(frozen=True)
class CachingConfig(CollisionConfig):
    """What the cache manager needs to know.

    Raises:
        ConfigError: naming the field, its limit and the value received.
    """

    robot: str = parameter("ur5e", "robot model whose joint limits the guards use")
    joint_prefix: str = parameter("", "prefix of the robot's joint names")
    robot_id: str = parameter(
        "", "identity of the robot; empty = the kept one, else made from the hardware address"
    )
    domain: str = parameter("", "cache partition of the robot; empty = its identity")
    scene: str = parameter("default", "scene of keys that name none")
    threshold: float = parameter(
        0.85,
        "similarity that a hit must exceed in scenes without their own",
        minimum=-1.0,
        maximum=1.0,
    )
    scene_names: Sequence[str] = parameter(
        ("corridor", "warehouse"), "scenes that have their own threshold"
    )
    scene_thresholds: Sequence[float] = parameter(
        (0.85, 0.72),
        "similarity that a hit must exceed, one for each of scene_names",
        minimum=-1.0,
        maximum=1.0,
    )
    target_minimum: float = parameter(
        0.75,
        "similarity of the target slice alone that a hit must reach",
        minimum=-1.0,
        maximum=1.0,
    )
    candidates: int = parameter(
        4, "candidates tried, best first, before a decision is a miss", minimum=1, maximum=64
    )
    capacity: int = parameter(
        1000, "entries of the task and behavior layers", minimum=1, maximum=1_000_000
    )
    index: str = parameter(
        "auto",
        "how keys are searched; auto = exact up to 100,000 entries of capacity, beyond by vector, "
        "which needs the package usearch",
        choices=("auto", "exact", "vector"),
    )
    maximum_coefficients: int = parameter(
        768,
        "numbers in the coefficients of one behavior value",
        minimum=2,
        maximum=1_000_000,
    )
    maximum_knots: int = parameter(160, "knots of one behavior value", minimum=4, maximum=1_000_000)
    maximum_dimensions: int = parameter(
        32, "columns of one behavior value", minimum=1, maximum=1000
    )
    precision: str = parameter(
        "double",
        "of stored coefficients; single halves their memory, rounding by at most 1.2e-7 rad",
        choices=("double", "single"),
    )
    eviction: str = parameter(
        "least_useful",
        "which entry goes when the cache is full",
        choices=("least_useful", "least_recently_used"),
    )
    merge_threshold: float = parameter(
        0.995,
        "similarity above which an insertion replaces an entry instead of adding one",
        minimum=0.0,
        maximum=1.0,
    )
    failure_limit: int = parameter(
        2, "failures in a row that take an entry's confidence bit", minimum=1, maximum=1000
    )
    start_distance: float = parameter(
        0.6,
        "largest distance of a joint from the start of a cached motion",
        unit="rad",
        minimum=0.0,
        maximum=6.283185307179586,
    )
    obstacle_age_ms: float = parameter(
        1000.0,
        "obstacles seen longer ago than this vouch for no cached motion",
        unit="ms",
        minimum=10.0,
        maximum=1.0e6,
    )
    decision_log: str = parameter(
        "",
        "file to which decisions and outcomes are appended, for kv_router calibrate; empty = none",
    )
    store_path: str = parameter(
        "",
        "file that keeps the cache; empty = {robot_id}.sqlite3; a relative path stands in the "
        "package's state folder, {robot_id} is replaced; :memory: = the cache is not kept",
    )
    execution_values: str = parameter(
        "",
        "YAML file of the execution values at start; empty = the one that comes with the package",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.scene_names) != len(self.scene_thresholds):
            raise ConfigError(
                "scene_thresholds",
                f"one for each of the {len(self.scene_names)} scene_names",
                self.scene_thresholds,
            )
        if len(set(self.scene_names)) != len(self.scene_names):
            raise ConfigError("scene_names", "without repetition", self.scene_names)
        for field in ("robot_id", "domain"):
            check_if_named(field, getattr(self, field))

    @property
    def own_domain(self) -> str:
        """Partition of this robot; without ROS nobody fills its identity in."""
        return self.domain or self.robot_id or Path(self.robot).stem

    def threshold_of(self, scene: str) -> float:
        """Return the similarity that a hit must exceed in a scene."""
        if scene in self.scene_names:
            return float(self.scene_thresholds[self.scene_names.index(scene)])
        return self.threshold
