"""Adapters from a command to the message that a robot's controller takes; no ROS in here."""

from __future__ import annotations

from collections.abc import Sequence

from kv_action_router.errors import OutputError
from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.outputs.base import Output
from kv_action_router.injection.outputs.joint_trajectory import JointTrajectoryOutput
from kv_action_router.injection.outputs.ros2_control import ForwardCommandOutput
from kv_action_router.injection.outputs.twist import TwistOutput, TwistStampedOutput

__all__ = ["Output", "make_output"]


def make_output(config: InjectionConfig, joints: Sequence[str]) -> Output:
    """Return the configured adapter.

    Raises:
        OutputError: it does not fit the joints, or nothing would brake the drives if this process
            died.
    """
    interface = config.command_interface
    output: Output
    if config.output == "ros2_control":
        output = ForwardCommandOutput(interface, joints)
    elif config.output == "joint_trajectory":
        output = JointTrajectoryOutput(interface, joints, config.period_ns)
    elif config.output == "twist":
        output = TwistOutput(interface, joints)
    else:
        output = TwistStampedOutput(interface, joints)
    if config.output_topic:
        output.topic = config.output_topic
    if not output.has_own_timeout and config.drive_timeout <= 0.0:
        raise OutputError(
            f"output {config.output} needs drives that brake by themselves when commands stay "
            "away: drive_timeout must be above 0 s, got 0"
        )
    return output
