"""The fault proxy between real publishers and readers; spoiled messages; systems behind it."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from rclpy.node import Node  # noqa: E402
from rclpy.serialization import deserialize_message, serialize_message  # noqa: E402
from sensor_msgs.msg import Image, JointState  # noqa: E402
from std_msgs.msg import String  # noqa: E402

from kv_action_router.errors import ConfigError  # noqa: E402
from kv_action_router.msg import DriveState  # noqa: E402
from kv_action_router.ros import qos, topics  # noqa: E402
from kv_action_router.ros.altered_messages import altered  # noqa: E402
from kv_action_router.ros.arguments import Arguments  # noqa: E402
from kv_action_router.ros.fault_proxy import WRITERS, behind_proxy  # noqa: E402
from kv_action_router.ros.streams import DataPlane  # noqa: E402
from kv_action_router.ros.system import SYSTEMS  # noqa: E402
from kv_action_router.simulation.faulty_link import CONTENTS, Fault  # noqa: E402


def alter(fault: Fault, message: Any) -> Any:
    kind = type(message)
    return deserialize_message(altered(fault, kind, serialize_message(message)), kind)


def test_spoiled_numbers_are_nan_and_the_rest_is_whole() -> None:
    message = JointState(name=["a"], position=[1.0], velocity=[2.0])
    message.header.stamp.sec = 5
    spoilt = alter(Fault.NAN, message)
    assert (spoilt.name, spoilt.header.stamp.sec, len(spoilt.effort)) == (["a"], 5, 0)
    assert math.isnan(spoilt.position[0]) and math.isnan(spoilt.velocity[0])

    depth = Image(encoding="32FC1", height=1, width=2, step=8)
    depth.data = array("B", np.ones(2, np.float32).tobytes())
    assert np.isnan(np.frombuffer(alter(Fault.NAN, depth).data, np.float32)).all()


def test_other_contents() -> None:
    image = Image(encoding="rgb8", height=1, width=1, step=3, data=[1, 2, 3])
    assert alter(Fault.BLACK, image).data.tolist() == [0, 0, 0]
    drives = DriveState(name=["a"], temperature=array("d", [40.0]))
    assert alter(Fault.HOT, drives).temperature.tolist() == [90.0]
    assert alter(Fault.BLACK, drives).temperature.tolist() == [40.0]
    image.header.stamp.sec = 10_000
    assert alter(Fault.SET_BACK, image).header.stamp.sec == 6_400


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("fault", CONTENTS)
def test_any_message_can_be_altered(name: str, fault: Fault) -> None:
    alter(fault, WRITERS[name][0].type())


def test_a_system_behind_a_proxy_is_remapped_at_the_writer() -> None:
    plain = SYSTEMS["ur5e"](Arguments())
    system = behind_proxy(plain, "joint_states", "task_key")
    by_name = {process.name: process for process in system.processes}
    assert by_name["simulation"].remaps == {"joint_states": "joint_states/unfaulted"}
    assert by_name["task_key_encoder"].remaps == {"task_key": "task_key/unfaulted"}
    assert "topics:=['joint_states', 'task_key']" in by_name["fault_proxy"].ros_arguments()
    with pytest.raises(ConfigError, match=r"topics must be of joint_states, .* got 'stop'"):
        behind_proxy(plain, "stop")


@pytest.mark.dds
@pytest.mark.timeout(120)
def test_messages_pass_until_they_are_told_not_to(
    ros: Any, spawn: Callable[..., Any], wait_until: Callable[..., Any]
) -> None:
    process = spawn(
        "kv_action_router.ros.fault_proxy", "--ros-args", "-p", "topics:=['joint_states']"
    )
    node = Node("bench", context=ros)
    plane = DataPlane(node)
    try:
        upstream = node.create_publisher(JointState, "joint_states/unfaulted", qos.driver())
        told = node.create_publisher(String, topics.FAULT.name, topics.FAULT.profile())
        reader = plane.reader(topics.JOINT_STATES, profile=qos.log_stream())
        count = 0

        def passed() -> Any:
            nonlocal count
            count += 1
            upstream.publish(JointState(name=["a"], position=[float(count)]))
            return reader.take_newest()

        wait_until(passed, 60.0, "a message behind the proxy")
        wait_until(told.get_subscription_count, 30.0, "the proxy to listen")
        told.publish(String(data="joint_states nan"))
        wait_until(
            lambda: (s := passed()) is not None and math.isnan(s.message.position[0]),
            30.0,
            "a spoiled message",
        )
        told.publish(String(data="joint_states fire"))
        told.publish(String(data="joint_states silence"))
        wait_until(lambda: "joint_states: silence" in process.output(), 30.0, "silence")
        reader.take_newest()
        told.publish(String(data="joint_states none"))
        wait_until(
            lambda: (s := passed()) is not None and s.message.position[0] > 0.0,
            30.0,
            "an end of it",
        )
        assert "fault must be one of" in process.output()
    finally:
        plane.destroy()
        node.destroy_node()
