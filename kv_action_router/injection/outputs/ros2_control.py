"""ros2_control's forward command controllers: one number a joint."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from kv_action_router.injection.outputs.base import NewMessage


class ForwardCommandOutput:
    """``<interface>_controller/commands``; labels of the layout's dimensions are joint names.

    A forward command controller keeps the last command for ever: the drives' own time-out must
    brake. It looks at the data alone; to drives that look further the layout's ``data_offset``,
    which has no use beside one array without padding, says when the command was sent.
    """

    def __init__(self, interface: str, joints: Sequence[str]) -> None:
        self.topic = f"{interface}_controller/commands"
        self.message_type = "std_msgs/msg/Float64MultiArray"
        self.fields: tuple[str, ...] = ("data",)
        self.stamped = False
        self.sent_field = "layout.data_offset"
        self.has_own_timeout = False
        self._joints = tuple(joints)

    def prepare(self, message: Any, new: NewMessage) -> None:
        """Set one dimension a joint, with its name as label, and the size of the data."""
        dimensions = []
        for joint in self._joints:
            dimension = new("std_msgs/msg/MultiArrayDimension")
            dimension.label = joint
            dimension.size = dimension.stride = 1
            dimensions.append(dimension)
        message.layout.dim = dimensions
        message.data = array("d", [0.0] * len(self._joints))
