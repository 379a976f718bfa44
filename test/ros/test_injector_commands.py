"""Commands as bytes: what the robot's controller reads of them."""

from __future__ import annotations

import time
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="no ROS 2 here")

from rclpy.serialization import deserialize_message

from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.outputs import make_output
from kv_action_router.ros.injector_commands import CommandWriter

COMMANDS = ([0.1, -0.2], [0.3, -0.4], [-1e300, 0.0])


def commands(**parameters: Any) -> list[tuple[list[float], Any]]:
    """Return what was written, and its message, of one writer."""
    writer = CommandWriter(make_output(InjectionConfig(**parameters), ("a", "b")))
    return [(values, deserialize_message(writer.write(values), writer.kind)) for values in COMMANDS]


@pytest.mark.parametrize("interface", ["effort", "velocity", "position"])
def test_forward_commands_are_labeled_with_the_joints(interface: str) -> None:
    for values, message in commands(command_interface=interface):
        assert list(message.data) == values
        dimensions = message.layout.dim
        assert [(d.label, d.size, d.stride) for d in dimensions] == [("a", 1, 1), ("b", 1, 1)]


@pytest.mark.parametrize("field", ["positions", "velocities"])
def test_trajectories_have_one_point(field: str) -> None:
    interface = {"positions": "position", "velocities": "velocity"}[field]
    for values, message in commands(output="joint_trajectory", command_interface=interface):
        assert message.joint_names == ["a", "b"]
        (point,) = message.points
        assert list(getattr(point, field)) == values
        assert len(point.positions) + len(point.velocities) == 2
        assert point.time_from_start.nanosec == 4_000_000
        assert message.header.stamp.sec == 0


def test_base_velocity() -> None:
    for values, message in commands(output="twist", command_interface="velocity"):
        assert [message.linear.x, message.angular.z] == values
        assert [message.linear.y, message.linear.z, message.angular.x, message.angular.y] == [0] * 4


def test_stamped_base_velocity_has_the_present_time() -> None:
    begin = time.time_ns()
    for values, message in commands(output="twist_stamped", command_interface="velocity"):
        assert [message.twist.linear.x, message.twist.angular.z] == values
        stamp = message.header.stamp
        assert begin <= stamp.sec * 1_000_000_000 + stamp.nanosec <= time.time_ns()


def test_a_stamp_is_of_the_clock_that_is_given() -> None:
    """Simulated time may begin at 0, stand still, and be set back: it is told as it is."""
    times = iter([0, 5_000_000_007, 5_000_000_007, 1])
    config = InjectionConfig(output="twist_stamped", command_interface="velocity")
    writer = CommandWriter(make_output(config, ("a", "b")), lambda: next(times))
    stamps = []
    for _ in range(4):
        stamp = deserialize_message(writer.write([0.0, 0.0]), writer.kind).header.stamp
        stamps.append((stamp.sec, stamp.nanosec))
    assert stamps == [(0, 0), (5, 7), (5, 7), (0, 1)]
