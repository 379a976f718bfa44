"""Carrying out what the response table asks for: stop, invalidate, interrupt."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rclpy.node import Node

from kv_action_router.monitoring.events import FailureReport
from kv_action_router.monitoring.response import STOPPING, Response
from kv_action_router.msg import Stop
from kv_action_router.ros.topics import INTERRUPT, INVALIDATE, STOP
from kv_action_router.srv import InterruptExecution, InvalidateCache


@dataclass(slots=True)
class _Call:
    """A request under way."""

    client: Any
    future: Any
    what: str
    due_ns: int


class Responder:
    """Engages the stop and makes service calls that never block.

    Invariant: every call ends, by its answer or by its timeout; what did not succeed is told.
    Used by one thread; answers arrive on the node's executor.
    """

    def __init__(
        self,
        node: Node,
        *,
        timeout_s: float,
        entry_in_force: Callable[[], int],
        on_failure: Callable[[str], None],
    ) -> None:
        """Create the stop's publisher and the clients.

        Args:
            node: that stops, invalidates and interrupts.
            timeout_s: after which an unanswered call is given up [s].
            entry_in_force: cache entry behind the motion under way, 0 = none.
            on_failure: receives what could not be done.
        """
        self._node = node
        self._timeout_ns = int(timeout_s * 1e9)
        self._entry_in_force = entry_in_force
        self._on_failure = on_failure
        self._calls: list[_Call] = []
        self._stop = node.create_publisher(STOP.type, STOP.name, STOP.profile())
        self._invalidate = node.create_client(INVALIDATE.type, INVALIDATE.name)
        self._interrupt = node.create_client(INTERRUPT.type, INTERRUPT.name)

    def destroy(self) -> None:
        """Destroy the publisher and the clients."""
        self._calls.clear()
        self._node.destroy_publisher(self._stop)
        self._node.destroy_client(self._invalidate)
        self._node.destroy_client(self._interrupt)

    def respond(self, report: FailureReport) -> None:
        """Carry out what a report asks for.

        ``derate`` is carried out by the injector, whose execution layer watches the same limit in
        its own tick; ``complete`` has become a stage condition.
        """
        if not STOPPING.isdisjoint(report.responses):
            self._engage(report.message)
        if Response.INVALIDATE in report.responses:
            self._throw_away(report.message)
        if Response.INTERRUPT in report.responses:
            request = InterruptExecution.Request(
                source=self._node.get_name(), reason=report.message
            )
            self._call(self._interrupt, request, INTERRUPT.name)

    def poll(self, now_ns: int) -> None:
        """End calls that are answered or overdue."""
        if not self._calls:
            return
        for call in list(self._calls):
            if call.future.done():
                self._calls.remove(call)
                answer = call.future.result()
                if answer is None or not answer.success:
                    said = "no answer" if answer is None else answer.message
                    self._on_failure(f"{call.what} refused: {said}")
            elif now_ns >= call.due_ns:
                self._calls.remove(call)
                call.client.remove_pending_request(call.future)
                self._on_failure(
                    f"{call.what} did not answer within {self._timeout_ns / 1e6:.0f} ms"
                )

    def _engage(self, reason: str) -> None:
        message = Stop(engaged=True, source=self._node.get_name(), reason=reason)
        message.header.stamp = self._node.get_clock().now().to_msg()
        message.monotonic_ns = time.monotonic_ns()
        self._stop.publish(message)

    def _throw_away(self, reason: str) -> None:
        entry_id = self._entry_in_force()
        if entry_id == 0:  # replanned: the cache holds nothing of it yet
            return
        request = InvalidateCache.Request(
            scope=InvalidateCache.Request.SCOPE_ENTRY,
            entry_id=entry_id,
            reason=f"condition: {reason}",  # counted as such, apart from requests of people
        )
        self._call(self._invalidate, request, INVALIDATE.name)

    def _call(self, client: Any, request: Any, what: str) -> None:
        if not client.service_is_ready():
            self._on_failure(f"{what} is not there")
            return
        due_ns = time.monotonic_ns() + self._timeout_ns
        self._calls.append(_Call(client, client.call_async(request), what, due_ns))
