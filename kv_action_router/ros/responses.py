"""Carrying out what the response table asks for: stop, invalidate, slow down, interrupt."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rclpy.node import Node

from kv_action_router.monitoring.events import FailureReport
from kv_action_router.monitoring.lasting import Request
from kv_action_router.msg import Stop
from kv_action_router.ros.topics import INTERRUPT, INVALIDATE, LIMIT_SPEED, RESUME, STOP
from kv_action_router.srv import (
    InterruptExecution,
    InvalidateCache,
    LimitSpeed,
    ResumeExecution,
)
from kv_action_router.tasks.rules import STOPPING, Layer, Response, Rule


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
        rules: Sequence[Rule],
        timeout_s: float,
        entry_in_force: Callable[[], int],
        on_failure: Callable[[str], None],
    ) -> None:
        """Create the stop's publisher and the clients.

        Args:
            node: that stops, invalidates, slows down and interrupts.
            rules: rows that the reports come from.
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
        self._resume = node.create_client(RESUME.type, RESUME.name)
        self._limit_speed = node.create_client(LIMIT_SPEED.type, LIMIT_SPEED.name)
        self._layers = {rule.name: rule.layer for rule in rules}

    def destroy(self) -> None:
        """Destroy the publisher and the clients."""
        self._calls.clear()
        self._node.destroy_publisher(self._stop)
        for client in (self._invalidate, self._interrupt, self._resume, self._limit_speed):
            self._node.destroy_client(client)

    def respond(self, report: FailureReport) -> None:
        """Carry out what a report asks for at once.

        What hits the execution layer the injector has done: it judges the same row in its own tick.
        ``complete`` has become a stage condition.
        """
        if not STOPPING.isdisjoint(report.responses):
            self._engage(report.message, fail_safe=Response.FAIL_SAFE in report.responses)
        if Response.INVALIDATE in report.responses:
            layer = self._layers.get(report.detector)
            if layer is Layer.TASK:
                self._throw_task_away(report)
            elif layer is Layer.BEHAVIOR:
                self._throw_away(report.message)

    def request(self, request: Request) -> None:
        """Ask for a response that lasts, or take it back."""
        name = self._node.get_name()
        own = f"{name}/{request.rule.name}"  # each row holds for itself
        if request.response is Response.SLOW:
            if not self._limit_speed.service_is_ready():
                return  # nobody moves, or has slowed anything down; what lasts is asked for again
            limit = LimitSpeed.Request(source=own, reason=request.reason, scale=request.scale)
            self._call(self._limit_speed, limit, LIMIT_SPEED.name)
            return
        inserts = request.rule.inserts
        source = own if request.rule.resumes or inserts else name  # a person resumes the latter
        if request.begins:
            interrupt = InterruptExecution.Request(
                source=source, reason=request.reason, sequence=inserts
            )
            self._call(self._interrupt, interrupt, INTERRUPT.name)
        else:
            self._call(self._resume, ResumeExecution.Request(source=source), RESUME.name)

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

    def _engage(self, reason: str, *, fail_safe: bool) -> None:
        message = Stop(
            engaged=True, source=self._node.get_name(), reason=reason, fail_safe=fail_safe
        )
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

    def _throw_task_away(self, report: FailureReport) -> None:
        intent = report.decision.intent_id
        if not intent:  # no task: nothing is known to be void
            return
        request = InvalidateCache.Request(
            scope=InvalidateCache.Request.SCOPE_TASK,
            intent_id=intent,
            reason=f"condition: {report.message}",
        )
        self._call(self._invalidate, request, INVALIDATE.name)

    def _call(self, client: Any, request: Any, what: str) -> None:
        if not client.service_is_ready():
            self._on_failure(f"{what} is not there")
            return
        due_ns = time.monotonic_ns() + self._timeout_ns
        self._calls.append(_Call(client, client.call_async(request), what, due_ns))
