"""The cache's file behind ``cache_manager``, as real processes: saved, killed, started again."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

rclpy = pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from rclpy.executors import SingleThreadedExecutor  # noqa: E402

from kv_action_router.ros import topics  # noqa: E402
from kv_action_router.ros.conversions import entry_update_to_msg  # noqa: E402

pytestmark = [pytest.mark.dds, pytest.mark.timeout(180)]

PATIENCE_S = 60.0


class Client:
    """Inserts, saves, asks."""

    def __init__(self, context: Any, wait_until: Callable[..., Any]) -> None:
        self.node = rclpy.create_node("store_client", context=context)
        self.executor = SingleThreadedExecutor(context=context)
        self.executor.add_node(self.node)
        self.wait_until = wait_until
        self.statistics: list[Any] = []
        update = topics.ENTRY_UPDATE
        self.updates = self.node.create_publisher(update.type, update.name, update.profile())
        state = topics.STATISTICS
        self.node.create_subscription(
            state.type, state.name, self.statistics.append, state.profile()
        )

    def until(self, done: Callable[[], Any], what: str) -> Any:
        def look() -> Any:
            self.executor.spin_once(timeout_sec=0.01)
            return done()

        return self.wait_until(look, PATIENCE_S, what)

    def call(self, service: topics.Service, **fields: Any) -> Any:
        client = self.node.create_client(service.type, service.name)
        self.until(client.service_is_ready, service.name)
        future = client.call_async(service.type.Request(**fields))
        self.until(future.done, f"an answer of {service.name}")
        self.node.destroy_client(client)
        return future.result()


def test_a_saved_entry_outlives_kill_9_and_has_one_manager(
    spawn: Callable[..., Any],
    ros: Any,
    wait_until: Callable[..., Any],
    build: Any,
    tmp_path: Path,
) -> None:
    path = tmp_path / "cache.sqlite3"
    path.write_bytes(b"no database")  # also: the start says what it found
    arguments = ("--ros-args", "-p", "autostart:=true", "-p", "robot_id:=r1")
    arguments += ("-p", f"store_path:={path}")
    first = spawn("kv_action_router.caching.node", *arguments)
    client = Client(ros, wait_until)
    client.until(client.updates.get_subscription_count, "the node")
    assert "it was damaged (it does not begin as a database does)" in first.output()
    client.updates.publish(entry_update_to_msg(build.update()))

    def saved() -> Any:
        answer = client.call(topics.SAVE)
        return answer.success and answer.entries == 1 and answer

    answer = client.until(saved, "the entry on the disk")
    assert answer.path == str(path)
    second = spawn("kv_action_router.caching.node", *arguments, "-r", "__ns:=/other")
    wait_until(lambda: "in use by pid" in second.output(), PATIENCE_S, "the refusal")
    assert f"in use by pid {first.pid}" in second.output()
    second.send(signal.SIGKILL)

    first.send(signal.SIGKILL)
    first.wait(5.0)
    spawn("kv_action_router.caching.node", *arguments)

    def loaded() -> Any:
        return next((told for told in client.statistics if told.entries_loaded), None)

    told = client.until(loaded, "statistics of the next process")
    assert (told.stored, told.store) == (True, str(path))
    assert (told.entries_loaded, told.entries_lost, told.entries_quarantined) == (1, 0, 0)
    found = client.call(
        topics.QUERY, key=[float(number) for number in build.vector()], intent_id="touch"
    )
    assert (found.success, found.similarity > 0.999) == (True, True)
