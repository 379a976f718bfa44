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
    response_timeout: float = parameter(
        0.5,
        "time after which a service call that a response made is given up and reported",
        unit="s",
        minimum=0.01,
        maximum=10.0,
    )
