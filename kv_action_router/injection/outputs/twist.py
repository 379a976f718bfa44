"""Velocity commands of a mobile base: forward and turning speed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kv_action_router.errors import OutputError
from kv_action_router.injection.outputs.base import NewMessage


class TwistOutput:
    """``cmd_vel``; the two joints are forward speed [m/s] and turning speed [rad/s] of the base.

    Base controllers have a command time-out of their own (``cmd_vel_timeout`` of
    diff_drive_controller).
    """

    def __init__(self, interface: str, joints: Sequence[str]) -> None:
        if interface != "velocity" or len(joints) != 2:
            raise OutputError(
                "output twist needs command_interface velocity and two joints (forward, turning), "
                f"got {interface} and {len(joints)} joints"
            )
        self.topic = "cmd_vel"
        self.message_type = "geometry_msgs/msg/Twist"
        self.fields: tuple[str, ...] = ("linear.x", "angular.z")
        self.stamped = False
        self.sent_field = ""
        self.has_own_timeout = True

    def prepare(self, message: Any, new: NewMessage) -> None:
        """Nothing to size."""


class TwistStampedOutput(TwistOutput):
    """``cmd_vel`` with a header, as controllers of newer ROS distributions ask for."""

    def __init__(self, interface: str, joints: Sequence[str]) -> None:
        super().__init__(interface, joints)
        self.message_type = "geometry_msgs/msg/TwistStamped"
        self.fields = ("twist.linear.x", "twist.angular.z")
        self.stamped = True
