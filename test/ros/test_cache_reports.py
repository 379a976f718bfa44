"""Diagnostics of the cache over DDS, and two robots of one identity that find out there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

rclpy = pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from rclpy.executors import SingleThreadedExecutor  # noqa: E402

from kv_action_router.errors import RouterError  # noqa: E402
from kv_action_router.msg import LayerStatistics  # noqa: E402
from kv_action_router.ros import topics  # noqa: E402
from kv_action_router.ros.cache_client import connected  # noqa: E402

pytestmark = [pytest.mark.dds, pytest.mark.timeout(150)]

PATIENCE_S = 45.0


def driving_one_leaves_the_other_alone(
    node: Any, executor: Any, wait_until: Callable[..., Any]
) -> None:
    """Send keys to the first robot only; the second's cache answers and counts nothing."""
    matches: dict[str, list[Any]] = {"one": [], "two": []}
    for namespace, heard in matches.items():
        node.create_subscription(
            topics.CACHE_MATCH.type,
            f"/{namespace}/{topics.CACHE_MATCH.name}",
            heard.append,
            topics.CACHE_MATCH.profile(),
        )
    keys = node.create_publisher(
        topics.TASK_KEY.type, f"/one/{topics.TASK_KEY.name}", topics.TASK_KEY.profile()
    )
    key = topics.TASK_KEY.type(trigger=topics.TASK_KEY.type.TRIGGER_JOINT_STATE)
    key.key[:] = 0.125

    def answered() -> bool:
        keys.publish(key)
        executor.spin_once(timeout_sec=0.01)
        return len(matches["one"]) >= 10

    wait_until(answered, PATIENCE_S, "matches of the first robot")
    assert not matches["two"]
    with connected("two", PATIENCE_S) as client:
        assert client.statistics()["keys"] == 0


def test_two_robots_of_one_identity_are_both_told(
    ros: Any, spawn: Callable[..., Any], wait_until: Callable[..., Any]
) -> None:
    node = rclpy.create_node("listener", context=ros)
    executor = SingleThreadedExecutor(context=ros)
    executor.add_node(node)
    statuses: dict[str, Any] = {}
    node.create_subscription(
        topics.DIAGNOSTICS.type,
        topics.DIAGNOSTICS.name,
        lambda array: statuses.update({status.name: status for status in array.status}),
        topics.DIAGNOSTICS.profile(),
    )

    def start(namespace: str, robot_id: str) -> Any:
        parameters = (
            "-p",
            "autostart:=true",
            "-p",
            f"robot_id:={robot_id}",
            "-p",
            "store_path:=':memory:'",
        )
        return spawn(
            "kv_action_router.caching.node", "--ros-args", "-r", f"__ns:=/{namespace}", *parameters
        )

    def level(namespace: str) -> Any:
        executor.spin_once(timeout_sec=0.05)
        status = statuses.get(f"{namespace}/cache_manager: cache")
        return status.level if status is not None else None

    first = start("one", "agv-01")
    wait_until(lambda: level("one") == b"\0", PATIENCE_S, "diagnostics of the first robot")
    task = statuses["one/cache_manager: cache task agv-01"]
    assert task.hardware_id == "agv-01"
    numbers = {value.key: float(value.value) for value in task.values}
    assert set(numbers) == set(LayerStatistics.get_fields_and_field_types()) - {"layer", "domain"}
    with connected("one", PATIENCE_S) as client:
        client.set_isolation("agv-01", "7bot", False)

    second = start("two", "agv-01")
    wait_until(lambda: level("one") == level("two") == b"\2", PATIENCE_S, "both robots being told")
    driving_one_leaves_the_other_alone(node, executor, wait_until)
    for process, other in ((first, "two"), (second, "one")):
        told = f"robot_id 'agv-01' is claimed by /{other}/cache_manager too"
        assert told in process.output()
        assert "[207]" in process.output()
    with connected("one", PATIENCE_S) as client:
        with pytest.raises(RouterError, match="must not be shared while robot_id 'agv-01' is"):
            client.set_isolation("agv-01", "agv-02", False)
        seen = client.domains()
        assert "/two/cache_manager" in seen["identity_conflict"]
        assert client.set_isolation("agv-01", "7bot", True)["grants"] == []  # taking back works
    executor.shutdown()
    node.destroy_node()
