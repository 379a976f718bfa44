"""Who else is on the command topic (K45): foreign writers, nobody, another type or profile."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from kv_action_router.ros.command_watch import UNKNOWN_NODE, CommandWatch

TYPE = "geometry_msgs/msg/Twist"
TOPIC = "/robot/cmd_vel"


def end(name: str, kind: str = TYPE, namespace: str = "/robot") -> SimpleNamespace:
    return SimpleNamespace(node_name=name, node_namespace=namespace, topic_type=kind)


def watch(
    publishers: list[SimpleNamespace], subscribers: list[SimpleNamespace], matched: int
) -> CommandWatch:
    node = SimpleNamespace(
        get_namespace=lambda: "/robot",
        get_name=lambda: "actuator_injector",
        count_publishers=lambda _: len(publishers),
        get_publishers_info_by_topic=lambda _: publishers,
        get_subscriptions_info_by_topic=lambda _: subscribers,
    )
    publisher = SimpleNamespace(topic_name=TOPIC, get_subscription_count=lambda: matched)
    return CommandWatch(node, publisher, TYPE)


OWN = end("actuator_injector")


@pytest.mark.parametrize(
    ("publishers", "foreign"),
    [
        ([OWN], ""),
        ([OWN, OWN], ""),  # what is left of an earlier process of ours
        ([OWN, end(UNKNOWN_NODE)], ""),
        ([OWN, end("teleop")], "/robot/teleop"),
        ([end("actuator_injector", namespace="/other"), OWN], "/other/actuator_injector"),
    ],
)
def test_foreign_publishers_are_named(publishers: list[SimpleNamespace], foreign: str) -> None:
    assert watch(publishers, [end("base")], 1).look().foreign == foreign


@pytest.mark.parametrize(
    ("subscribers", "matched", "trouble"),
    [
        ([end("base")], 1, ""),
        ([], 0, "nobody subscribes to /robot/cmd_vel"),
        (
            [end("base", "geometry_msgs/msg/TwistStamped")],
            0,
            "/robot/base wants geometry_msgs/msg/TwistStamped",
        ),
        ([end("base")], 0, "asks for another quality of service"),
    ],
)
def test_trouble_with_subscribers_is_told(
    subscribers: list[SimpleNamespace], matched: int, trouble: str
) -> None:
    told = watch([OWN], subscribers, matched).look().trouble
    assert trouble in told
    assert bool(told) == bool(trouble)
