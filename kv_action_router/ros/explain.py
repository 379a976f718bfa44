"""Asks the cache manager about the present key."""

from __future__ import annotations

import math
from typing import Any

import rclpy

from kv_action_router.errors import RouterError
from kv_action_router.msg import TaskKey
from kv_action_router.ros import qos
from kv_action_router.ros.process import make_executor
from kv_action_router.ros.task_client import wait_until
from kv_action_router.ros.topics import QUERY, TASK_KEY
from kv_action_router.srv import QueryCache

_WAIT_S = 5.0


def explain_now(*, namespace: str, domain: str, intent: str, subtask: str) -> dict[str, Any]:
    """Take the newest key, ask what it finds, and return the answer's fields; NaN becomes None.

    Raises:
        TimeOutError: no key, or no answer.
        RouterError: the manager could not answer, with its reason.
    """
    rclpy.init(args=[])
    try:
        node = rclpy.create_node("kv_router", namespace=namespace)
        executor = make_executor()
        executor.add_node(node)
        keys: list[TaskKey] = []
        node.create_subscription(TaskKey, TASK_KEY.name, keys.append, qos.log_stream())
        client = node.create_client(QueryCache, QUERY.name)
        wait_until(executor, lambda: bool(keys), _WAIT_S, lambda: f"a key on {TASK_KEY.name}")
        wait_until(executor, client.service_is_ready, _WAIT_S, lambda: QUERY.name)
        request = QueryCache.Request(
            key=[float(value) for value in keys[-1].key],
            domain=domain,
            intent_id=intent,
            subtask=subtask,
        )
        future = client.call_async(request)
        wait_until(executor, future.done, _WAIT_S, lambda: f"an answer of {QUERY.name}")
        answer = future.result()
    finally:
        rclpy.try_shutdown()
    if not answer.success:
        raise RouterError(answer.message)
    return {name: _plain(getattr(answer, name)) for name in answer.get_fields_and_field_types()}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
