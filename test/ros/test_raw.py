"""Fields read straight from the bytes are those that the real deserialization finds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from rclpy.serialization import serialize_message

from kv_action_router.errors import InputError
from kv_action_router.msg import Heartbeat
from kv_action_router.ros.conversions.raw import lifecycle_state_from_bytes, wrench_from_bytes

FRAMES = ["", "a", "ab", "abc", "abcd", "tool0", "robot_1/tool0_controller"]


@pytest.mark.parametrize("frame", FRAMES)
def test_wrench(frame: str) -> None:
    message = WrenchStamped()
    message.header.frame_id = frame
    force, torque = message.wrench.force, message.wrench.torque
    force.x, force.y, force.z = 1.5, -2.25, math.nan
    torque.x, torque.y, torque.z = math.inf, 0.0, -1e-300
    read = wrench_from_bytes(serialize_message(message))
    np.testing.assert_array_equal(read, [1.5, -2.25, math.nan, math.inf, 0.0, -1e-300])


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("node", ["a", "cache_manager", "task_key_encoder"])
@pytest.mark.parametrize("state", [1, 3, 255])
def test_heartbeat(frame: str, node: str, state: int) -> None:
    message = Heartbeat(
        node=node, monotonic_ns=2**63, sequence=7, lifecycle_state=state, epoch=2**32 - 1
    )
    message.header.frame_id = frame
    assert lifecycle_state_from_bytes(serialize_message(message)) == state


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x01\x00\x00", bytes(11)])
def test_what_is_too_short_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="bytes"):
        wrench_from_bytes(data)
    with pytest.raises(InputError, match="bytes"):
        lifecycle_state_from_bytes(data)
