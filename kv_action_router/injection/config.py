"""Parameters of the injector."""

from __future__ import annotations

from dataclasses import dataclass

from kv_action_router.configuration import Configuration, parameter
from kv_action_router.errors import ConfigError

INTERFACES = ("effort", "velocity", "position", "duty")
OUTPUTS = ("ros2_control", "joint_trajectory", "twist", "twist_stamped")


@dataclass(frozen=True)
class InjectionConfig(Configuration):
    """What the injector can be told; every field is a ROS parameter of ``actuator_injector``."""

    robot: str = parameter("ur5e", "robot model, or the path of its YAML file")
    robot_id: str = parameter(
        "", "identity of the robot; empty = the kept one, else made from the hardware address"
    )
    joint_prefix: str = parameter("", "prefix of the robot's joint names")
    execution_values: str = parameter(
        "",
        "YAML file of the execution values at start; empty = the one that comes with the package",
    )
    conditions_file: str = parameter(
        "",
        "response table whose rows of the execution layer are judged in the control loop; empty ="
        " the package's config/conditions.yaml",
    )
    command_interface: str = parameter(
        "effort", "what the drives are commanded in", choices=INTERFACES
    )
    output: str = parameter("ros2_control", "adapter that sends the commands", choices=OUTPUTS)
    output_topic: str = parameter("", "topic of the commands; empty = the adapter's own")
    drive_timeout: float = parameter(
        0.040,
        "silence after which the drives brake by themselves; 0 = they do not",
        unit="s",
        minimum=0.0,
        maximum=1.0,
    )
    dry_run: bool = parameter(False, "compute everything, send no command")
    rate: float = parameter(500.0, "of the control loop", unit="Hz", minimum=50.0, maximum=1000.0)
    gravity_free_drives: tuple[str, ...] = parameter(
        ("",), "joints that stay where they are without current; duty 0 is safe for these only"
    )

    # watchdogs
    joint_state_timeout: float = parameter(
        0.020, "joint states are lost after", unit="s", minimum=0.002, maximum=0.2
    )
    joint_state_delay: float = parameter(
        0.020,
        "joint states that come later than the best one by more are refused; 0 = none is",
        unit="s",
        minimum=0.0,
        maximum=0.2,
    )
    imu_timeout: float = parameter(
        0.050, "an IMU that was seen, or is required, is lost after", unit="s", minimum=0.005
    )
    imu_required: bool = parameter(False, "fail safe when no IMU is seen at all")
    chunk_timeout: float = parameter(
        0.060, "the set-point starves after", unit="s", minimum=0.02, maximum=1.0
    )
    heartbeat_timeout: float = parameter(
        0.060, "a node is lost after", unit="s", minimum=0.02, maximum=1.0
    )
    grace: float = parameter(
        3.0, "a source not seen since activation counts as lost after", unit="s", minimum=0.0
    )
    overrun_limit: float = parameter(
        0.040,
        "a loop that was late by this fails safe (the drive has braked by then)",
        unit="s",
        minimum=0.005,
        maximum=0.5,
    )
    watched_nodes: tuple[str, ...] = parameter(
        ("task_key_encoder", "cache_manager", "behavior_synthesizer", "failure_monitor"),
        "nodes whose heartbeat must not be lost; one empty name = none",
    )

    # set-points
    blend_time: float = parameter(
        0.020,
        "shortest blend from the own set-point into a chunk",
        unit="s",
        minimum=0.002,
        maximum=0.1,
    )
    blend_time_limit: float = parameter(
        0.250,
        "longest blend; a chunk that needs more is refused",
        unit="s",
        minimum=0.002,
        maximum=1.0,
    )
    chunk_distance_limit: float = parameter(
        0.2, "a chunk that starts farther from the set-point is refused", unit="rad", minimum=0.0
    )
    decision_distance_limit: float = parameter(
        0.05,
        "after a stop or fail-safe, a decision must start this near to the measured state",
        unit="rad",
        minimum=0.0,
    )
    decision_velocity_limit: float = parameter(
        0.05,
        "after a stop or fail-safe, largest velocity at the start of a decision",
        unit="rad/s",
        minimum=0.0,
    )
    # The rest is the controller's: what it corrects comes on top of the set-point's acceleration,
    # up to a quarter of it (wrist_1 of a UR5e that is stopped while it speeds up).
    blend_acceleration: float = parameter(
        0.75,
        "share of the acceleration limit that a blend may use with the path it leads to, unless"
        " that uses more itself",
        minimum=0.3,
        maximum=1.0,
    )
    starvation_deceleration: float = parameter(
        0.75, "share of the acceleration limit used when chunks run out", minimum=0.05, maximum=1.0
    )
    stop_deceleration: float = parameter(
        0.8,
        "share of the acceleration limit used by a stop",
        minimum=0.05,
        maximum=1.0,
    )
    fail_safe_deceleration: float = parameter(
        0.65,  # without stiffness the arm trails at first, and then makes up for it
        "share of the acceleration limit used by the fail-safe",
        minimum=0.05,
        maximum=1.0,
    )
    fail_safe_duration: float = parameter(
        0.020,
        "interpolation from the last command to the fail-safe value",
        unit="s",
        minimum=0.002,
        maximum=0.5,
    )
    rest_velocity: float = parameter(
        0.01, "a joint at rest is not faster", unit="rad/s", minimum=0.001, maximum=0.1
    )
    publish_margin: float = parameter(
        0.003,
        "what is left of a trigger's 15 ms when the command goes out, at least",
        unit="s",
        minimum=0.0,
        maximum=0.005,
    )

    # control law
    position_gain: float = parameter(
        8.0, "velocity interface: gain from position error", unit="1/s", minimum=0.0, maximum=100.0
    )
    wind_up_error: float = parameter(
        0.004,
        "a joint farther from its set-point loses its integral when the fail-safe begins",
        unit="rad",
        minimum=0.001,
    )
    velocity_filter: float = parameter(
        0.004,
        "time constant of velocities that are not measured but differentiated",
        unit="s",
        minimum=0.0,
        maximum=0.1,
    )
    protective_hold: float = parameter(
        0.020,
        "a drive at its protective limit for this long loses its confidence",
        unit="s",
        minimum=0.0,
        maximum=1.0,
    )
    temperature_hysteresis: float = parameter(
        5.0, "a derated drive recovers this far below its temperature limit", unit="K", minimum=0.1
    )

    # real time
    loop_priority: int = parameter(
        5,
        "how far the loop thread stands above the process's SCHED_FIFO priority",
        minimum=0,
        maximum=40,
    )
    lock_memory: bool = parameter(True, "keep the process in memory (mlockall)")
    cpu_affinity: tuple[int, ...] = parameter(
        (-1,), "processors that the process may run on; -1 = all", minimum=-1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.blend_time_limit < self.blend_time:
            raise ConfigError(
                "blend_time_limit",
                f"at least blend_time {self.blend_time} s",
                self.blend_time_limit,
            )
        if self.output != "ros2_control" and self.command_interface in ("effort", "duty"):
            raise ConfigError(
                "command_interface",
                f"velocity or position with output {self.output}",
                self.command_interface,
            )

    @property
    def period_ns(self) -> int:
        """Period of the control loop [ns]."""
        return round(1e9 / self.rate)
