"""The node ``cache_manager`` as a real process over DDS."""

from __future__ import annotations

import dataclasses
import signal
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

import yaml  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402

from kv_action_router.caching.decision_log import read_log  # noqa: E402
from kv_action_router.contracts import (  # noqa: E402
    Decision,
    JointSample,
    MissReason,
    ObstacleSpheres,
    Trigger,
    UpdateOperation,
)
from kv_action_router.msg import ExecutionFeedback  # noqa: E402
from kv_action_router.robots.execution_values import SLOT_BOUNDS  # noqa: E402
from kv_action_router.robots.model import RobotModel  # noqa: E402
from kv_action_router.ros import topics  # noqa: E402
from kv_action_router.ros.cache_client import CacheClient  # noqa: E402
from kv_action_router.ros.conversions import (  # noqa: E402
    entry_update_to_msg,
    execution_value_from_msg,
    key_to_msg,
    match_from_msg,
    obstacles_to_msg,
    task_state_to_msg,
)

pytestmark = [pytest.mark.dds, pytest.mark.timeout(120)]

PATIENCE_S = 45.0  # a start-up takes 2 s, and 15 on a machine whose cores are taken
ARM = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint")
JOINTS = (*ARM, "wrist_1_joint", "wrist_2_joint", "wrist_3_joint")


class Client:
    """The cache manager's surroundings: what sends to it and listens to it."""

    def __init__(self, context: Any) -> None:
        self.node = rclpy.create_node("cache_client", context=context)
        self.executor = SingleThreadedExecutor(context=context)
        self.executor.add_node(self.node)
        self.matches: list[Any] = []
        self.events: list[Any] = []
        self.latest: dict[str, Any] = {}
        self.publishers = {
            topic.name: self.node.create_publisher(topic.type, topic.name, topic.profile())
            for topic in (
                topics.TASK_KEY,
                topics.TASK_STATE,
                topics.ENTRY_UPDATE,
                topics.EXECUTION_FEEDBACK,
                topics.OBSTACLE_SPHERES,
            )
        }
        self._listen(topics.CACHE_MATCH, self.matches.append)
        self._listen(topics.FAILURE_EVENT, self.events.append)
        for topic in (topics.STATISTICS, topics.EXECUTION_VALUE):
            self._listen(
                topic, lambda message, name=topic.name: self.latest.update({name: message})
            )
        self.clients = {
            service.name: self.node.create_client(service.type, service.name)
            for service in (topics.QUERY, topics.INVALIDATE, topics.SET_DOMAIN_ISOLATION)
        }

    def _listen(self, topic: topics.Topic, callback: Callable[[Any], Any]) -> None:
        self.node.create_subscription(topic.type, topic.name, callback, topic.profile())

    def until(
        self, what: str, done: Callable[[], Any], act: Callable[[], Any] = lambda: None
    ) -> Any:
        """Spin, acting every 10 ms as the encoder does, until ``done`` returns something true."""
        end = time.monotonic() + PATIENCE_S
        due = 0.0
        while time.monotonic() < end:
            if result := done():
                return result
            if time.monotonic() >= due:
                act()
                due = time.monotonic() + 0.01
            self.executor.spin_once(timeout_sec=0.005)
        raise AssertionError(f"{what} did not happen within {PATIENCE_S} s")

    def connect(self) -> None:
        """Wait until both sides know each other."""
        self.until(
            "discovery",
            lambda: (
                all(p.get_subscription_count() for p in self.publishers.values())
                and all(client.service_is_ready() for client in self.clients.values())
                and topics.EXECUTION_VALUE.name in self.latest
                and self.node.count_publishers(topics.CACHE_MATCH.name)
            ),
        )

    def send(self, topic: topics.Topic, message: Any) -> None:
        self.publishers[topic.name].publish(message)

    def call(self, service: topics.Service, **fields: Any) -> Any:
        """Call a service and return its response."""
        future = self.clients[service.name].call_async(service.type.Request(**fields))
        self.until(f"answer of {service.name}", future.done)
        return future.result()

    def match(self, key: Any, wanted: Callable[[Any], bool]) -> Any:
        """Publish a key at 100 Hz until a wanted match comes back."""
        self.matches.clear()

        def found() -> Any:
            return next((m for m in map(match_from_msg, self.matches) if wanted(m)), None)

        return self.until("match", found, lambda: self.send(topics.TASK_KEY, key_to_msg(key)))

    def insert(self, update: Any) -> None:
        """Send an entry update and wait until it is counted."""
        before = self.entries()
        self.send(topics.ENTRY_UPDATE, entry_update_to_msg(update))
        self.until("insertion", lambda: self.entries() > before)

    def entries(self) -> int:
        message = self.latest.get(topics.STATISTICS.name)
        layers = message.layers if message is not None else []
        return sum(layer.entries for layer in layers if layer.layer == "task")

    def close(self) -> None:
        self.executor.shutdown()
        self.node.destroy_node()


@pytest.fixture
def process(spawn: Callable[..., Any], tmp_path: Path) -> Any:
    """The node, configured and activated by itself, with execution values of three joints."""
    common = {name: min(max(1.0, low), high) for name, (low, high) in SLOT_BOUNDS.items()}
    content = {"ur5e": {"common": common, "drives": {name: {} for name in ARM}}}
    path = tmp_path / "values.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    log = tmp_path / "decisions.jsonl"
    parameters = (
        "autostart:=true",
        "robot_id:=r1",
        "capacity:=100",
        f"execution_values:={path}",
        f"decision_log:={log}",
    )
    arguments = [part for parameter in parameters for part in ("-p", parameter)]
    return spawn("kv_action_router.caching.node", "--ros-args", *arguments)


@pytest.fixture
def client(process: Any, ros: Any) -> Iterator[Client]:
    """Its surroundings, connected."""
    made = Client(ros)
    try:
        made.connect()
        yield made
    finally:
        made.close()


def query(client: Client, vector: Any, **fields: str) -> Any:
    return client.call(topics.QUERY, key=array("d", np.asarray(vector, dtype=float)), **fields)


def behavior(build: Any) -> Any:
    """Return a motion of the robot's six joints, which stay where they are."""
    value = build.behavior()
    return dataclasses.replace(
        value,
        dimensions=tuple(f"{name}/position" for name in JOINTS),
        coefficients=np.zeros((len(value.coefficients), len(JOINTS))),
        decay=np.ones(len(JOINTS)),
    )


def update(build: Any, **changes: Any) -> Any:
    return build.update(behavior=behavior(build), **changes)


def key(build: Any, **changes: Any) -> Any:
    still = np.zeros(len(JOINTS))
    return dataclasses.replace(
        build.key(**changes), joints=JointSample(JOINTS, still, still, still, 1)
    )


def at_the_tip() -> ObstacleSpheres:
    """Return an obstacle that the tip of an arm with all joints at 0 stands in, seen now."""
    tip, _ = RobotModel.load().forward(np.zeros(len(JOINTS)))
    return ObstacleSpheres(
        Decision(trigger_monotonic_ns=time.monotonic_ns()),
        tip[None].astype(np.float32),
        np.array([0.02], dtype=np.float32),
    )


def test_key_in_match_out(client: Client, build: Any, tmp_path: Path) -> None:
    idle = client.match(key(build), lambda m: True)
    assert idle.miss_reason == MissReason.NO_TASK

    client.send(topics.TASK_STATE, task_state_to_msg(build.task(1)))
    miss = client.match(key(build, trace_id=41), lambda m: m.decision.decision_id == 1)
    assert (miss.hit, miss.miss_reason, miss.behavior) == (False, MissReason.EMPTY, None)

    client.insert(update(build))
    client.send(topics.TASK_STATE, task_state_to_msg(build.task(2)))
    before = time.monotonic_ns()
    hit = client.match(key(build, trace_id=42), lambda m: m.decision.decision_id == 2)
    assert hit.hit
    assert hit.is_decision
    assert hit.decision.trace_id == 42
    assert before < hit.decision.stage_ns[2] <= time.monotonic_ns()
    assert hit.behavior is not None
    assert np.array_equal(hit.behavior.coefficients, behavior(build).coefficients)
    assert hit.subtask == "touch_approach_v1"
    later = client.match(
        key(build, trigger=Trigger.JOINT_STATE), lambda m: m.trigger == Trigger.JOINT_STATE
    )
    assert (later.hit, later.is_decision) == (True, False)

    bad = client.match(
        key(build, vector=np.full(64, np.nan)), lambda m: m.miss_reason == MissReason.INVALID_KEY
    )
    assert "finite" in bad.reason

    def counted() -> Any:
        message = client.latest[topics.STATISTICS.name]
        task = next(layer for layer in message.layers if layer.layer == "task")
        return (task.decisions, task.hits, task.misses_empty) == (2, 1, 1) and message

    statistics = client.until("statistics", counted)
    assert statistics.robot_id == "r1"
    assert statistics.keys_refused >= 1
    assert statistics.match_time_max_us > 0.0

    def logged() -> Any:
        decisions, _ = read_log(tmp_path / "decisions.jsonl")
        return [(decision.trace_id, decision.hit) for decision in decisions]

    client.until("two logged decisions", lambda: logged() == [("41", False), ("42", True)])

    # Nothing tells when obstacles have arrived: the next decision may come before them.
    for decision_id in range(3, 50):
        client.send(topics.OBSTACLE_SPHERES, obstacles_to_msg(at_the_tip()))
        client.send(topics.TASK_STATE, task_state_to_msg(build.task(decision_id)))
        refused = client.match(
            key(build, scene="warehouse"),
            lambda m, asked=decision_id: m.decision.decision_id == asked,
        )
        if not refused.hit:
            break
    assert (refused.miss_reason, refused.guard) == (MissReason.GUARD, "collision")
    assert "refused by guard collision: spindle - obstacle 0 at 0.00 s" in refused.reason

    timer = client.node.create_timer(
        0.01, lambda: client.send(topics.TASK_KEY, key_to_msg(key(build, scene="warehouse")))
    )
    told = CacheClient(client.node, client.executor, PATIENCE_S).explain("", "", "")
    timer.cancel()
    assert (told["hit"], told["entry_id"], told["threshold"]) == (True, 1, pytest.approx(0.72))
    in_force = told["in_force"]
    assert (in_force["decision_id"], in_force["scene"]) == (decision_id, "warehouse")
    assert (in_force["hit"], in_force["guard"]) == (False, "collision")
    assert in_force["reason"] == refused.reason


def test_bad_questions_get_reasons_and_the_node_lives(
    client: Client, build: Any, process: Any
) -> None:
    client.insert(update(build))
    good = query(client, build.vector(), intent_id="touch")
    assert (good.success, good.hit, good.entry_id) == (True, True, 1)
    assert good.similarity == pytest.approx(1.0, abs=1e-5)
    for vector, fields, message in (
        (np.ones(63), {}, "key must be 64 values, got 63"),
        (np.ones(0), {}, "got 0"),
        (np.ones(1_000_000), {}, "got 1000000"),
        (np.full(64, np.nan), {}, "finite"),
        (np.zeros(64), {}, "zero"),
        (
            build.vector(),
            {"domain": "r11"},
            "domain must be a known domain, got 'r11' (near names: r1",
        ),
        (build.vector(), {"domain": "no such thing"}, "letters, digits"),
        (build.vector(), {"domain": "x" * 1000}, "at most 64"),
    ):
        response = query(client, vector, intent_id="touch", **fields)
        assert not response.success
        assert message in response.message
    miss = query(client, build.vector(), intent_id="toch")
    assert (miss.success, miss.hit, miss.miss_reason) == (True, False, int(MissReason.EMPTY))
    assert "near names: touch" in miss.reason
    assert query(client, build.vector()).miss_reason == int(MissReason.NO_TASK)
    assert process.running
    assert query(client, build.vector(), intent_id="touch").hit


def test_sharing_and_throwing_away(client: Client, build: Any) -> None:
    client.insert(update(build, domain="r2"))
    asked = {"intent_id": "touch"}
    assert not query(client, build.vector(), **asked).hit
    shared = client.call(topics.SET_DOMAIN_ISOLATION, owner_domain="r2", reader_domain="r1")
    assert (shared.success, list(shared.grants)) == (True, ["r2 -> r1"])
    found = query(client, build.vector(), **asked)
    assert (found.hit, found.source_domain) == (True, "r2")
    wrong = client.call(topics.SET_DOMAIN_ISOLATION, owner_domain="r22", reader_domain="r1")
    assert not wrong.success
    assert "near names: r2" in wrong.message
    assert list(wrong.grants) == ["r2 -> r1"]
    revoked = client.call(
        topics.SET_DOMAIN_ISOLATION, owner_domain="r2", reader_domain="r1", isolated=True
    )
    assert (revoked.success, list(revoked.grants)) == (True, [])
    assert not query(client, build.vector(), **asked).hit

    scopes = topics.INVALIDATE.type.Request
    for fields, message in (
        ({"scope": scopes.SCOPE_ENTRY, "entry_id": 1}, "reason must be"),
        ({"scope": 77, "reason": "test"}, "scope must be one of"),
        (
            {"scope": scopes.SCOPE_ENTRY, "entry_id": 9, "domain": "r2", "reason": "x"},
            "near ids: 1",
        ),
        ({"scope": scopes.SCOPE_ENTRY, "entry_id": 1, "reason": "test"}, "may read, got 1"),
        ({"scope": scopes.SCOPE_LAYER, "layer": "tsk", "reason": "test"}, "layer must be one of"),
    ):
        response = client.call(topics.INVALIDATE, **fields)
        assert not response.success
        assert message in response.message
    done = client.call(
        topics.INVALIDATE,
        scope=scopes.SCOPE_ALL,
        reason="condition: tracking error of elbow_joint 0.3 rad, limit 0.1 rad",
    )
    assert (done.success, done.count) == (True, 1)

    def counted() -> Any:
        layers = client.latest[topics.STATISTICS.name].layers
        layer = next((x for x in layers if (x.layer, x.domain) == ("task", "r2")), None)
        return layer is not None and layer.invalidations_condition == 1

    client.until("count by cause", counted)


def test_updates_that_are_refused_are_reported(client: Client, build: Any) -> None:
    client.send(
        topics.ENTRY_UPDATE,
        entry_update_to_msg(build.update(UpdateOperation.SUCCESS, entry=7, version=1)),
    )
    event = client.until(
        "failure event", lambda: next((e for e in client.events if e.error_code == 201), None)
    )
    assert "an entry that domain 'r1' may read, got 7 (it may read none)" in event.error_msg


def test_execution_value_is_latched_kept_and_counted(client: Client, build: Any) -> None:
    first = execution_value_from_msg(client.latest[topics.EXECUTION_VALUE.name])
    assert first is not None
    assert (first.drives, first.version) == (ARM, 1)
    hot = dataclasses.replace(
        first, confident=np.array([False, True, True]), version=2, base_version=1
    )
    client.send(
        topics.ENTRY_UPDATE,
        entry_update_to_msg(build.update(UpdateOperation.EXECUTION, execution=hot)),
    )
    kept = client.until(
        "version 2",
        lambda: (
            (m := execution_value_from_msg(client.latest[topics.EXECUTION_VALUE.name]))
            and m.version == 2
            and m
        ),
    )
    assert kept.confident.tolist() == [False, True, True]

    def counted() -> Any:
        layers = client.latest[topics.STATISTICS.name].layers
        layer = next((entry for entry in layers if entry.layer == "execution"), None)
        return layer is not None and (layer.decisions, layer.hits, layer.entries_not_confident) == (
            1000,
            900,
            1,
        )

    feedback = ExecutionFeedback(ticks=1000, confident_ticks=900)

    def act() -> None:
        client.send(topics.EXECUTION_FEEDBACK, feedback)
        client.send(topics.TASK_KEY, key_to_msg(key(build)))

    client.until("ticks counted", counted, act)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ends_orderly_on_a_signal(client: Client, process: Any, number: signal.Signals) -> None:
    process.send(number)
    assert process.wait(5.0) == 0
    assert "Traceback" not in process.output()
