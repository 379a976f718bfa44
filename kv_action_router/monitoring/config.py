"""Parameters of the monitoring stage, declared once."""

from __future__ import annotations

from dataclasses import dataclass

from kv_action_router.configuration import Configuration, parameter


@dataclass(frozen=True)
class MonitorConfig(Configuration):
    """What the failure monitor watches, how often, and what it waits for."""

    conditions_file: str = parameter(
        "", "response table; empty = the package's config/conditions.yaml"
    )
    poll_period: float = parameter(
        0.01,
        "period at which every stream is polled and the conditions are judged",
        unit="s",
        minimum=0.001,
        maximum=0.020,
    )
    rest_speed: float = parameter(
        0.01, "joint speed up to which the arm is at rest", unit="rad/s", minimum=0.0, maximum=1.0
    )
    repeat_period: float = parameter(
        1.0,
        "one event of a detector and source goes out in this time; repeats are counted",
        unit="s",
        minimum=0.0,
        maximum=3600.0,
    )
    settle: float = parameter(
        2.0,
        "time that every node must have been active before a silence engages a stop",
        unit="s",
        minimum=0.0,
        maximum=60.0,
    )
    gripper_drive: str = parameter("", "drive that closes the gripper; empty = there is no gripper")
    gripper_force_constant: float = parameter(
        0.0, "force of the gripper over its drive's current", unit="N/A", minimum=0.0
    )
    robot: str = parameter(
        "ur5e",
        "arm whose distance from obstacles is judged (a file of kv_action_router/robots); empty ="
        " none",
    )
    joint_prefix: str = parameter("", "prefix of every joint name on the topics")
    tool_links: tuple[str, ...] = parameter(
        ("spindle", "tool"), "links that may come near obstacles where a stage allows contact"
    )
    proximity_reaction: float = parameter(
        0.25,
        "time from what the camera sees to the arm's first answer: its way in this time counts as"
        " swept",
        unit="s",
        minimum=0.02,
        maximum=2.0,
    )
    proximity_deceleration: float = parameter(
        2.0,
        "deceleration that every point of the arm brakes with at least",
        unit="m/s^2",
        minimum=0.1,
        maximum=50.0,
    )
    calibration_period: float = parameter(
        7200.0,
        "time between two calibrations of the drives; 0 = on demand only",
        unit="s",
        minimum=0.0,
        maximum=1.0e6,
    )
    contact_force: float = parameter(
        4.0,
        "force at the tool from which on a motion is not one without load",
        unit="N",
        minimum=0.1,
        maximum=100.0,
    )
    execution_values: str = parameter(
        "", "values that the drives begin with (YAML, or a robot); empty = those of the robot"
    )
    response_timeout: float = parameter(
        0.5,
        "time after which a service call that a response made is given up and reported",
        unit="s",
        minimum=0.01,
        maximum=10.0,
    )
