"""Trajectories of one point, for ros2_control's joint trajectory controller and its kin."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from kv_action_router.injection.outputs.base import NewMessage

_HORIZON_PERIODS = 2  # the next point must arrive before this one is reached


class JointTrajectoryOutput:
    """``joint_trajectory_controller/joint_trajectory``: one point, two periods ahead.

    The header's stamp stays 0: start at once. The controller holds a point that it has reached, so
    that silence ends in a standing arm.
    """

    def __init__(self, interface: str, joints: Sequence[str], period_ns: int) -> None:
        self.topic = "joint_trajectory_controller/joint_trajectory"
        self.message_type = "trajectory_msgs/msg/JointTrajectory"
        self._field = "positions" if interface == "position" else "velocities"
        self.fields: tuple[str, ...] = (f"points[0].{self._field}",)
        self.stamped = False
        self.sent_field = ""
        self.has_own_timeout = True
        self._joints = list(joints)
        self._horizon_ns = _HORIZON_PERIODS * period_ns

    def prepare(self, message: Any, new: NewMessage) -> None:
        """Set the joints' names and the one point."""
        message.joint_names = list(self._joints)
        point = new("trajectory_msgs/msg/JointTrajectoryPoint")
        setattr(point, self._field, array("d", [0.0] * len(self._joints)))
        point.time_from_start.sec, point.time_from_start.nanosec = divmod(
            self._horizon_ns, 1_000_000_000
        )
        message.points = [point]
