"""Asks a running cache manager from a program; every wait is bounded and names its reason."""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor

from kv_action_router.contracts import SCENE_SLICE, Trigger
from kv_action_router.errors import RouterError
from kv_action_router.msg import CacheMatch
from kv_action_router.ros import qos, topics
from kv_action_router.ros.domain_id import VARIABLE, check_domain_id
from kv_action_router.ros.task_client import TimeOutError, wait_until
from kv_action_router.srv import InvalidateCache, QueryCache

Answer = dict[str, Any]

SCOPES = {
    "entry": InvalidateCache.Request.SCOPE_ENTRY,
    "task": InvalidateCache.Request.SCOPE_TASK,
    "layer": InvalidateCache.Request.SCOPE_LAYER,
    "domain": InvalidateCache.Request.SCOPE_DOMAIN,
    "all": InvalidateCache.Request.SCOPE_ALL,
}
# What a match and an answer tell alike.
IN_FORCE = sorted(
    set(QueryCache.Response.get_fields_and_field_types())
    & set(CacheMatch.get_fields_and_field_types())
)


class CacheClient:
    """Client of one robot's cache manager. Used by one thread."""

    def __init__(self, node: Any, executor: Any, timeout: float) -> None:
        """Ask through a node that nobody else spins.

        Args:
            node: in the namespace of the robot's nodes.
            executor: that serves it.
            timeout: of each wait [s].
        """
        self._node = node
        self._executor = executor
        self._timeout = timeout
        self._asking: dict[topics.Service, Any] = {}

    def call(self, service: topics.Service, **fields: Any) -> Any:
        """Call a service and return its response.

        Raises:
            TimeOutError: nobody serves it here, or no answer came; with a hint.
            RouterError: it was refused, with the reason.
        """
        client = self._client(service)
        self._wait(client.service_is_ready, f"service {service.name}", self._hint)
        future = client.call_async(service.type.Request(**fields))
        self._wait(future.done, f"an answer of {service.name}", lambda: "")
        response = future.result()
        if not response.success:
            raise RouterError(response.message)
        return response

    def newest(self, topic: topics.Topic, profile: Any) -> Any:
        """Return the next message of a topic (of a latched one, the last that was sent).

        Raises:
            TimeOutError: none came; with a hint.
        """
        return self.collect(topic, profile, 1, lambda _: True)[-1]

    def collect(
        self, topic: topics.Topic, profile: Any, count: int, wanted: Callable[[Any], bool]
    ) -> list[Any]:
        """Return the next wanted messages of a topic, at least ``count``.

        Raises:
            TimeOutError: they did not come; with a hint.
        """
        messages: list[Any] = []

        def take(message: Any) -> None:
            if wanted(message):
                messages.append(message)

        subscription = self._node.create_subscription(topic.type, topic.name, take, profile)
        what = "a message" if count == 1 else f"{count} messages"
        try:
            self._wait(lambda: len(messages) >= count, f"{what} on {topic.name}", self._hint)
        finally:
            self._node.destroy_subscription(subscription)
        return messages

    # --- answers with plain values, one for each verb of kv_router ---

    def explain(self, domain: str, intent: str, subtask: str) -> Answer:
        """Return what the newest key finds, and why; ``in_force`` is what the task goes by.

        Guards that look at the arm and at obstacles are asked by decisions alone, so what they
        refused stands in ``in_force``.

        Raises:
            RouterError: the newest key is none, with the reason.
        """
        match = self.newest(topics.CACHE_MATCH, qos.log_stream())
        if match.miss_reason == CacheMatch.MISS_INVALID_KEY:
            raise RouterError(match.reason)
        response = self.call(
            topics.QUERY,
            key=array("d", [float(value) for value in match.key]),
            domain=domain,
            intent_id=intent,
            subtask=subtask,
            scene=match.decision.scene,
        )
        in_force = {name: plain(getattr(match, name)) for name in IN_FORCE}
        in_force |= {name: getattr(match.decision, name) for name in ("decision_id", "scene")}
        return {**_answer(response), "in_force": in_force}

    def entries(self, domain: str, intent: str, subtask: str, after: int, limit: int) -> Answer:
        """Return the entries that a domain may read, lowest id first."""
        response = self.call(
            topics.LIST_ENTRIES,
            domain=domain,
            intent_id=intent,
            subtask=subtask,
            after=after,
            limit=limit,
        )
        return _answer(response)

    def entry(self, entry_id: int, domain: str) -> Answer:
        """Return one entry as it is stored."""
        return _answer(self.call(topics.GET_ENTRY, entry_id=entry_id, domain=domain))

    def domains(self) -> Answer:
        """Return the domains, what they hold and who may read them."""
        return _answer(self.call(topics.LIST_DOMAINS))

    def set_isolation(self, owner: str, reader: str, isolated: bool) -> Answer:
        """Share a domain's entries with a reader, or take that back."""
        response = self.call(
            topics.SET_DOMAIN_ISOLATION, owner_domain=owner, reader_domain=reader, isolated=isolated
        )
        return _answer(response, "message")

    def invalidate(self, scope: str, reason: str, **what: Any) -> Answer:
        """Throw entries away; ``what`` are the request's other fields."""
        response = self.call(topics.INVALIDATE, scope=SCOPES[scope], reason=reason, **what)
        return _answer(response, "message")

    def scene(self, images: int) -> Answer:
        """Return the mean scene slice of the next keys that were made from images."""
        keys = self.collect(
            topics.TASK_KEY, qos.log_stream(), images, lambda key: key.trigger == Trigger.IMAGE
        )
        rows = np.array([key.key for key in keys], dtype=float)[:, SCENE_SLICE]
        return {"images": len(rows), "slice": plain(rows.mean(axis=0))}

    def statistics(self) -> Answer:
        """Return the newest statistics."""
        return plain(self.newest(topics.STATISTICS, topics.STATISTICS.profile()))

    # --- inside ---

    def _client(self, service: topics.Service) -> Any:
        """Return the client of a service, kept for the next call.

        The answer to the first request of a client is dropped when the server has not heard of the
        client within 100 ms of it (rmw_fastrtps), so there should be few first ones.
        """
        if service not in self._asking:
            self._asking[service] = self._node.create_client(
                service.type, service.name, qos_profile=qos.request()
            )
        return self._asking[service]

    def _wait(self, done: Any, what: str, hint: Any) -> None:
        try:
            wait_until(self._executor, done, self._timeout, lambda: what)
        except TimeOutError as error:
            where = f"in namespace {self._node.get_namespace()!r}"
            raise TimeOutError(f"{error} {where}{hint()}") from error

    def _hint(self) -> str:
        """Say where a cache manager is seen, or what may be the matter."""
        suffix = "/" + topics.QUERY.name
        seen = sorted(
            name.removesuffix(suffix) or "/"
            for name, _ in self._node.get_service_names_and_types()
            if name.endswith(suffix)
        )
        here = self._node.get_namespace()
        if here in seen:
            return "; a cache manager is there: is its part of the system active?"
        if seen:
            return "; cache managers are seen in " + ", ".join(f"--namespace {n}" for n in seen)
        domain = os.environ.get(VARIABLE, "0")
        return (
            f"; no cache manager is seen in ROS domain {domain}: is one running and configured "
            f"there, and is {VARIABLE} the same?"
        )


@contextmanager
def connected(namespace: str, timeout: float) -> Iterator[CacheClient]:
    """Yield a client of the cache manager in a namespace.

    Raises:
        ConfigError: ``ROS_DOMAIN_ID`` is no domain.
        RouterError: the namespace is none.
    """
    warning = check_domain_id()
    context = rclpy.Context()
    rclpy.init(args=[], context=context)
    executor = SingleThreadedExecutor(context=context)
    try:
        try:
            node = rclpy.create_node("kv_router", namespace=namespace, context=context)
        except rclpy.exceptions.InvalidNamespaceException as error:
            raise RouterError(f"namespace must be one, got {namespace!r}: {error}") from error
        if warning:
            node.get_logger().warning(warning)
        executor.add_node(node)
        yield CacheClient(node, executor, timeout)
        executor.remove_node(node)
        node.destroy_node()
    finally:
        executor.shutdown()
        context.try_shutdown()


def plain(value: Any) -> Any:
    """Return a message as dictionaries, lists and numbers; what is not finite becomes None."""
    if hasattr(value, "get_fields_and_field_types"):
        return {name: plain(getattr(value, name)) for name in value.get_fields_and_field_types()}
    if isinstance(value, (list, tuple, array, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def _answer(response: Any, *kept: str) -> Answer:
    """Return a response's fields without what only says that it is one."""
    fields: Answer = plain(response)
    for name in {"success", "message"} - set(kept):
        del fields[name]
    return fields
