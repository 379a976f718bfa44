"""Parameters of the synthesis stage."""

from __future__ import annotations

from dataclasses import dataclass

from kv_action_router.configuration import parameter
from kv_action_router.errors import ConfigError
from kv_action_router.robots.collision_config import CollisionConfig
from kv_action_router.synthesis.basis import FEWEST


@dataclass(frozen=True)
class SynthesisConfig(CollisionConfig):
    """How motions are planned, joined and sent."""

    robot: str = parameter("ur5e", "robot model to load")
    joint_prefix: str = parameter("", "prefix of the joint names on all topics")
    robot_id: str = parameter(
        "", "identity of the robot; empty = the kept one, else as matches say"
    )
    domain: str = parameter("", "cache partition of tasks that name none; empty = the robot's own")
    scene: str = parameter("default", "scene of tasks that name none")
    policy: str = parameter(
        "",
        "package.module:function that makes the policy that misses ask; empty = they are replanned",
    )
    policy_time_limit: float = parameter(
        2.0, "how long a policy may think", unit="s", minimum=0.01, maximum=600.0
    )
    coefficients: int = parameter(
        28, "B-spline coefficients of a planned motion", minimum=FEWEST, maximum=200
    )
    velocity_share: float = parameter(
        0.9, "share of the joints' velocity limits that plans use", minimum=0.01, maximum=1.0
    )
    acceleration_share: float = parameter(
        0.8, "share of the joints' acceleration limits that plans use", minimum=0.01, maximum=1.0
    )
    jerk_share: float = parameter(
        0.8, "share of the joints' jerk limits that plans use", minimum=0.01, maximum=1.0
    )
    line_speed: float = parameter(
        0.25, "speed of lines whose stage names none", unit="m/s", minimum=0.001, maximum=5.0
    )
    line_acceleration: float = parameter(
        0.6, "acceleration along lines", unit="m/s^2", minimum=0.01, maximum=50.0
    )
    line_jerk: float = parameter(8.0, "jerk along lines", unit="m/s^3", minimum=0.1, maximum=1000.0)
    line_tolerance: float = parameter(
        0.002,
        "largest distance of a line's motion from the line",
        unit="m",
        minimum=1.0e-5,
        maximum=0.1,
    )
    stretch_limit: float = parameter(
        2.5,
        "a cached motion that must become slower than this many times is replanned",
        minimum=1.0,
        maximum=20.0,
    )
    tracking_envelope: float = parameter(
        0.15,
        "distance of reference and measurement above which a motion is joined to the "
        "measurement again",
        unit="rad",
        minimum=0.001,
        maximum=3.0,
    )
    refresh_distance: float = parameter(
        0.0002, "a target that moved less is not followed", unit="m", minimum=0.0, maximum=0.1
    )
    refresh_speed: float = parameter(
        0.5,
        "speed at which a motion's end follows the target at most",
        unit="m/s",
        minimum=0.001,
        maximum=10.0,
    )
    refresh_deviation: float = parameter(
        0.004,
        "a target whose standard deviation is larger is not followed",
        unit="m",
        minimum=1.0e-5,
        maximum=1.0,
    )
    resume_patience: float = parameter(
        5.0,
        "after a sequence, wait this long for what is in the way to leave before planning around",
        unit="s",
        minimum=0.0,
        maximum=60.0,
    )
    resume_distance: float = parameter(
        0.05,
        "a target that moved further during an interruption is planned for anew",
        unit="m",
        minimum=0.0,
        maximum=10.0,
    )
    plan_attempts: int = parameter(
        3,
        "decisions in a row that may find no motion before the task fails",
        minimum=1,
        maximum=100,
    )
    feedback_limit_ms: float = parameter(
        60.0,
        "execution feedback older than this counts as lost",
        unit="ms",
        minimum=10.0,
        maximum=10000.0,
    )
    joints_limit_ms: float = parameter(
        20.0, "joint states older than this count as lost", unit="ms", minimum=1.0, maximum=10000.0
    )
    settle_timeout: float = parameter(
        2.0,
        "a canceled task ends at the latest after this time",
        unit="s",
        minimum=0.1,
        maximum=60.0,
    )
    detour_until_ms: float = parameter(
        8.0,
        "age of the trigger after which no further way around an obstacle is tried; the rest waits"
        " for the next key",
        unit="ms",
        minimum=0.0,
        maximum=15.0,
    )
    rest_speed: float = parameter(
        0.01,
        "joint speed below which the robot counts as at rest",
        unit="rad/s",
        minimum=1.0e-4,
        maximum=1.0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.robot:
            raise ConfigError("robot", "the name of a robot model", self.robot)
