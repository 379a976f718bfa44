"""Responses are carried out, or it is told why not; nothing waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

rclpy = pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.node import Node  # noqa: E402

from kv_action_router.contracts import Decision  # noqa: E402
from kv_action_router.monitoring.events import FailureReport  # noqa: E402
from kv_action_router.monitoring.lasting import Request  # noqa: E402
from kv_action_router.ros import topics  # noqa: E402
from kv_action_router.ros.conversions.failure import (  # noqa: E402
    report_from_msg,
    report_to_msg,
)
from kv_action_router.ros.responses import Responder  # noqa: E402
from kv_action_router.tasks.rule_file import parse_rules  # noqa: E402
from kv_action_router.tasks.rules import Response, Severity  # noqa: E402

pytestmark = pytest.mark.dds


BASE = {
    "signal": "tracking_error", "op": ">", "limit": 0.2, "severity": "fatal", "message": "m",
}  # fmt: skip
RULES = parse_rules(
    {
        "conditions": [
            {**BASE, "name": "tracking_lost", "error_code": 521, "layer": "behavior",
             "response": "invalidate"},
            {**BASE, "name": "intent_void", "error_code": 522, "layer": "task",
             "response": "invalidate"},
            {**BASE, "name": "late", "error_code": 523, "response": "slow", "speed_scale": 0.3},
            {**BASE, "name": "near", "error_code": 524, "response": "interrupt", "resumes": True},
            {**BASE, "name": "press", "error_code": 525, "response": "interrupt"},
        ]
    }
)  # fmt: skip
RULE = {rule.name: rule for rule in RULES}


def report(*responses: Response) -> FailureReport:
    return FailureReport(
        Decision(decision_id=3, intent_id="touch-1"), 521, "elbow is lost", Severity.FATAL,
        "elbow", "tracking_lost", "tracking_error", 0.5, 0.2, 0.02, responses, "touch_target",
        "touch", 123, 4,
    )  # fmt: skip


class Bench:
    def __init__(self, context: Any) -> None:
        self.node = Node("failure_monitor", context=context)
        self.executor = SingleThreadedExecutor(context=context)
        self.executor.add_node(self.node)
        self.entry_id = 17
        self.failures: list[str] = []
        self.stops: list[Any] = []
        self.requests: list[Any] = []
        self.accept = True
        self.node.create_subscription(
            topics.STOP.type, topics.STOP.name, self.stops.append, topics.STOP.profile()
        )
        self.responder = Responder(
            self.node,
            rules=RULES,
            timeout_s=0.2,
            entry_in_force=lambda: self.entry_id,
            on_failure=self.failures.append,
        )
        self.closing = threading.Event()
        self.spins = True
        self.thread = threading.Thread(target=self.spin)
        self.thread.start()

    def spin(self) -> None:
        while not self.closing.is_set():
            if self.spins:
                self.executor.spin_once(timeout_sec=0.02)
            else:
                self.closing.wait()

    def serve(self, service: topics.Service) -> None:
        self.node.create_service(service.type, service.name, self.answer)

    def answer(self, request: Any, response: Any) -> Any:
        self.requests.append(request)
        response.success = self.accept
        response.message = "" if self.accept else "entry 17 is not there"
        return response

    def polled(self) -> list[str]:
        self.responder.poll(time.monotonic_ns())
        return self.failures

    def ready(self) -> bool:
        responder = self.responder
        clients = (
            responder._invalidate, responder._interrupt, responder._resume, responder._limit_speed
        )  # fmt: skip
        return any(client.service_is_ready() for client in clients)

    def close(self) -> None:
        self.closing.set()
        self.thread.join()
        self.responder.destroy()
        self.executor.shutdown()
        self.node.destroy_node()


@pytest.fixture
def bench(ros: Any) -> Iterator[Bench]:
    made = Bench(ros)
    yield made
    made.close()


@pytest.mark.parametrize("response", [Response.BRAKE, Response.FAIL_SAFE])
def test_stopping_engages_the_stop(
    bench: Bench, wait_until: Callable[..., Any], response: Response
) -> None:
    bench.responder.respond(report(response))
    stop = wait_until(lambda: bench.stops, 5.0, "the stop")[0]
    assert stop.engaged
    assert stop.source == "failure_monitor"
    assert stop.reason == "elbow is lost"
    assert stop.fail_safe == (response is Response.FAIL_SAFE)
    assert 0 < stop.monotonic_ns <= time.monotonic_ns()


def test_the_entry_in_force_is_invalidated(bench: Bench, wait_until: Callable[..., Any]) -> None:
    bench.serve(topics.INVALIDATE)
    wait_until(bench.ready, 5.0, "the service")
    bench.responder.respond(report(Response.INVALIDATE))
    request = wait_until(lambda: bench.requests, 5.0, "the request")[0]
    assert (request.scope, request.entry_id) == (request.SCOPE_ENTRY, 17)
    assert request.reason == "condition: elbow is lost"
    wait_until(lambda: not bench.polled() and not bench.responder._calls, 5.0, "the answer")


def test_an_intent_that_is_void_loses_all_its_entries(
    bench: Bench, wait_until: Callable[..., Any]
) -> None:
    bench.serve(topics.INVALIDATE)
    wait_until(bench.ready, 5.0, "the service")
    bench.responder.respond(replace(report(Response.INVALIDATE), detector="intent_void"))
    request = wait_until(lambda: bench.requests, 5.0, "the request")[0]
    assert (request.scope, request.intent_id) == (request.SCOPE_TASK, "touch-1")


def test_what_the_injector_does_itself_is_asked_of_nobody(bench: Bench) -> None:
    bench.responder.respond(replace(report(Response.INVALIDATE), detector="of no row"))
    bench.responder.respond(report(Response.DERATE))
    assert bench.polled() == []


def test_a_lower_speed_is_asked_for_and_lifted_by_the_same_source(
    bench: Bench, wait_until: Callable[..., Any]
) -> None:
    for begins in (False, True):
        bench.responder.request(Request(Response.SLOW, RULE["late"], begins, 0.3, "r"))
    assert bench.polled() == []  # nobody is there who moves or has slowed down
    bench.serve(topics.LIMIT_SPEED)
    wait_until(bench.ready, 5.0, "the service")
    bench.responder.request(Request(Response.SLOW, RULE["late"], True, 0.3, "images are late"))
    bench.responder.request(Request(Response.SLOW, RULE["late"], False))
    wait_until(lambda: len(bench.requests) == 2, 5.0, "both requests")
    assert [(r.source, r.scale, r.reason) for r in bench.requests] == [
        ("failure_monitor/late", 0.3, "images are late"),
        ("failure_monitor/late", 1.0, ""),
    ]


def test_an_interruption_that_resumes_is_held_by_its_row(
    bench: Bench, wait_until: Callable[..., Any]
) -> None:
    for service in (topics.INTERRUPT, topics.RESUME):
        bench.serve(service)
    wait_until(
        lambda: (
            bench.responder._interrupt.service_is_ready()
            and bench.responder._resume.service_is_ready()
        ),
        5.0,
        "both services",
    )
    for name in ("near", "press"):
        bench.responder.request(Request(Response.INTERRUPT, RULE[name], True, reason="too near"))
    wait_until(lambda: len(bench.requests) == 2, 5.0, "both requests")
    assert {(r.source, r.reason) for r in bench.requests} == {
        ("failure_monitor/near", "too near"),
        ("failure_monitor", "too near"),  # a person resumes it by this name
    }
    bench.responder.request(Request(Response.INTERRUPT, RULE["near"], False))
    wait_until(lambda: len(bench.requests) == 3, 5.0, "the resumption")
    assert bench.requests[-1].source == "failure_monitor/near"


def test_a_replanned_motion_has_no_entry(bench: Bench) -> None:
    bench.entry_id = 0
    bench.responder.respond(report(Response.INVALIDATE))
    assert bench.polled() == []


def test_a_service_that_is_not_there_is_told(bench: Bench) -> None:
    bench.responder.request(Request(Response.INTERRUPT, RULE["press"], True, reason="r"))
    assert bench.polled() == ["behavior_synthesizer/interrupt is not there"]


def test_a_refusal_is_told_with_its_reason(bench: Bench, wait_until: Callable[..., Any]) -> None:
    bench.accept = False
    bench.serve(topics.INVALIDATE)
    wait_until(bench.ready, 5.0, "the service")
    bench.responder.respond(report(Response.INVALIDATE))
    (told,) = wait_until(bench.polled, 5.0, "the refusal")
    assert told == "cache_manager/invalidate refused: entry 17 is not there"


def test_no_answer_is_told_after_the_timeout(bench: Bench, wait_until: Callable[..., Any]) -> None:
    bench.serve(topics.INTERRUPT)
    wait_until(bench.ready, 5.0, "the service")
    bench.spins = False  # it is there, and answers nothing
    begin = time.monotonic()
    bench.responder.request(Request(Response.INTERRUPT, RULE["press"], True, reason="r"))
    assert time.monotonic() - begin < 0.15, "a response has waited"
    (told,) = wait_until(bench.polled, 5.0, "the timeout")
    assert told == "behavior_synthesizer/interrupt did not answer within 200 ms"
    assert bench.responder._calls == []


@pytest.mark.parametrize("responses", [(Response.NONE,), (Response.FAIL_SAFE, Response.INVALIDATE)])
def test_reports_survive_the_message(responses: tuple[Response, ...]) -> None:
    before = report(*responses)
    assert report_from_msg(report_to_msg(before)) == before
