"""Roles around one cache manager: a source of keys, and clients that call its services.

The source fills the cache, sends keys as an encoder does and a decision every half second, and
notes when each key was published, matched and its match received. A client calls at a fixed rate
in every other phase. Both wait for each other by files. Run by ``services.py``.
"""

from __future__ import annotations

import argparse
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from rclpy.node import Node

from harness.messages import COEFFICIENTS, DEGREE, JOINTS
from kv_action_router import realtime
from kv_action_router.contracts import (
    INTENT_SIZE,
    KEY_SIZE,
    BehaviorValue,
    Decision,
    DecisionReason,
    Float32Array,
    JointSample,
    TaskKey,
    TaskState,
    TaskStatus,
    Trigger,
)
from kv_action_router.ros import qos, topics
from kv_action_router.ros.bytes_publisher import BytesPublisher
from kv_action_router.ros.cache_client import CacheClient
from kv_action_router.ros.conversions import behavior_to_msg, task_state_to_msg
from kv_action_router.ros.process import make_executor
from kv_action_router.ros.streams import DataLoop, DataPlane
from kv_action_router.ros.wire import KeyWriter, MatchReader

ENTRIES = 500
INTENT, SUBTASK, ENCODER = "reach", "reach_v1", "benchmark"
KEY_NS, IMAGE_NS, DECISION_NS = 10_000_000, 33_333_333, 500_000_000
_START_S = 120.0


@dataclass(frozen=True)
class Plan:
    """When calls are made: ``phases`` of ``seconds`` each, the even ones without calls."""

    phases: int
    seconds: float

    def phase(self, at_ns: int, begin_ns: int) -> int:
        """Return the number of the phase at a time; outside all of them -1 or ``phases``."""
        return min(self.phases, max(-1, int((at_ns - begin_ns) // (self.seconds * 1e9))))


def vectors() -> Float32Array:
    """Return keys far from each other (ENTRIES, 64); all processes get the same."""
    keys = np.random.default_rng(1).normal(size=(ENTRIES, KEY_SIZE)).astype(np.float32)
    norm = np.linalg.norm(keys[:, :56], axis=1, keepdims=True)
    keys /= norm
    keys[:, 56:] = 0.35  # one robot
    return keys


def motion() -> BehaviorValue:
    """Return a behavior of usual size: six joints that stay where they are."""
    inner = np.linspace(0.0, 2.0, COEFFICIENTS - DEGREE + 1)
    return BehaviorValue(
        subtask=SUBTASK,
        dimensions=tuple(f"{name}/position" for name in JOINTS),
        degree=DEGREE,
        knots=np.concatenate([np.zeros(DEGREE), inner, np.full(DEGREE, 2.0)]),
        coefficients=np.zeros((COEFFICIENTS, len(JOINTS))),
        phase=0.0,
        decay=np.ones(len(JOINTS)),
        target=None,
    )


def fill(client: CacheClient) -> None:
    """Insert one entry for each key."""
    behavior = behavior_to_msg(motion())
    for key in vectors():
        client.call(
            topics.INSERT_ENTRY,
            key=array("d", key.tolist()),
            encoder_id=ENCODER,
            intent_id=INTENT,
            behavior=behavior,
        )


class Source:
    """Sends keys and decisions, and collects what becomes of the keys."""

    def __init__(self, node: Node) -> None:
        self._plane = DataPlane(node)
        self._matches = self._plane.reader(topics.CACHE_MATCH, raw=True)
        self._loop = DataLoop(self._plane, (self._matches,), self._on_wake, _raise)
        self._reader, self._writer = MatchReader(), KeyWriter()
        self._keys = BytesPublisher(node, topics.TASK_KEY)
        task = topics.TASK_STATE
        self._tasks = node.create_publisher(task.type, task.name, task.profile())
        still = np.zeros(len(JOINTS))
        self._key = TaskKey(
            decision=Decision(encoder_id=ENCODER, scene="default", intent_id=INTENT),
            trigger=Trigger.JOINT_STATE,
            vector=vectors()[0],
            target=None,
            target_age=np.nan,
            scene_age=0.01,
            body_age=0.0,
            masked_inputs=0,
            joints=JointSample(JOINTS, still, still, still, 1),
        )
        self.rows: list[tuple[int, int, int]] = []
        self.sent = 0
        self.hits = 0

    def run(self, until_ns: int, begin_ns: int) -> None:
        """Send until a time [ns]; keys count from ``begin_ns`` on."""
        self._loop.start()
        key_ns = decision_ns = time.monotonic_ns()
        image_ns = key_ns + KEY_NS // 2  # never at once with another: the newest would replace it
        decision = 0
        while (now := time.monotonic_ns()) < until_ns:
            if now >= decision_ns:
                decision += 1
                decision_ns += DECISION_NS
                self._ask(decision)
            due = min(key_ns, image_ns)
            if now < due:
                time.sleep((due - now) * 1e-9)
            if due == key_ns:
                key_ns += KEY_NS
                self._send(Trigger.JOINT_STATE, begin_ns)
            else:
                image_ns += IMAGE_NS
                self._send(Trigger.IMAGE, begin_ns)
        time.sleep(0.1)  # what is under way arrives
        self._loop.stop()
        self._keys.close()
        self._plane.destroy()

    def _send(self, trigger: Trigger, begin_ns: int) -> None:
        now = time.monotonic_ns()
        self.sent += now >= begin_ns
        decision = replace(self._key.decision, trace_id=self.sent, trigger_monotonic_ns=now)
        key = replace(self._key, decision=decision, trigger=trigger)
        self._keys.publish(self._writer.write(key, time.monotonic_ns()))

    def _ask(self, decision_id: int) -> None:
        state = TaskState(
            decision=Decision(decision_id=decision_id, intent_id=INTENT),
            status=TaskStatus.RUNNING,
            task="benchmark",
            goal_id="benchmark",
            stage="reach",
            stage_index=0,
            stage_count=1,
            subtask=SUBTASK,
            phase=0.0,
            intent=np.ones(INTENT_SIZE, dtype=np.float32),
            decision_reason=DecisionReason.STAGE_ENTRY,
            needs_target=False,
            needs_image=False,
            requested_monotonic_ns=0,
            allowed_contact="",
        )
        self._tasks.publish(task_state_to_msg(state))

    def _on_wake(self, _: int) -> None:
        while (sample := self._matches.take()) is not None:
            now = time.monotonic_ns()
            match = self._reader.read(sample.message)
            self.hits += match.hit
            self.rows.append((match.decision.stage_ns[1], match.decision.stage_ns[2], now))


class Caller:
    """Calls the services in turn, without waiting for one answer before the next call."""

    def __init__(self, node: Node, executor: Any, number: int) -> None:
        self._executor = executor
        kinds = {
            topics.QUERY: {"intent_id": INTENT, "key": array("d", vectors()[number].tolist())},
            topics.GET_ENTRY: {"entry_id": number + 1},
            topics.LIST_ENTRIES: {"limit": 10},
            topics.LIST_DOMAINS: {},
        }
        profile = qos.request()
        made = {s: node.create_client(s.type, s.name, qos_profile=profile) for s in kinds}
        requests = {s: s.type.Request(**fields) for s, fields in kinds.items()}
        query = topics.QUERY
        rest = [s for s in kinds if s is not query]
        turn = [s for other in rest for s in (query, query, query, other)]  # three of four
        self._turn = [(made[s], requests[s]) for s in turn]
        self.ready = lambda: all(client.service_is_ready() for client in made.values())
        self.rows: list[tuple[int, int, int]] = []  # sent, answered [ns], success
        self.sent = 0

    def call(self) -> None:
        """Make the next call."""
        client, request = self._turn[self.sent % len(self._turn)]
        self.sent += 1
        sent_ns = time.monotonic_ns()

        def done(future: Any) -> None:
            self.rows.append((sent_ns, time.monotonic_ns(), int(future.result().success)))

        client.call_async(request).add_done_callback(done)

    def spin(self, seconds: float) -> None:
        """Serve answers for so long."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0.0:
            self._executor.spin_once(timeout_sec=left)

    def run(self, plan: Plan, begin_ns: int, period_ns: int) -> None:
        """Call through all phases with calls, then wait for what is under way."""
        due = begin_ns
        while plan.phase(now := time.monotonic_ns(), begin_ns) < plan.phases:
            if now >= due:
                if plan.phase(due, begin_ns) % 2 == 1:
                    self.call()
                due += period_ns  # a client that comes late calls all the same: the load is fixed
            else:
                self.spin((due - now) * 1e-9)
        self.spin(2.0)


def _raise(error: Exception) -> None:
    raise error


def wait(done: Callable[[], Any], what: str) -> Any:
    """Return the first true value."""
    until = time.monotonic() + _START_S
    while not (value := done()):
        if time.monotonic() > until:
            raise SystemExit(f"waited {_START_S:g} s for {what}")
        time.sleep(0.05)
    return value


def main() -> int:
    """Run one role to its end; its rows are written to the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=("source", "client"))
    parser.add_argument("--number", type=int, default=0, help="of the client, from 0")
    parser.add_argument("--clients", type=int, default=0)
    parser.add_argument("--rate", type=float, default=50.0, help="calls/s of each client")
    parser.add_argument("--phases", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--priority", type=int, default=0)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    plan = Plan(options.phases, options.seconds)
    go, part = options.folder / "go", options.folder / "go.part"
    realtime.schedule_process(options.priority)
    rclpy.init(args=[])
    node = rclpy.create_node(f"benchmark_{options.role}_{options.number}")
    executor = make_executor()
    executor.add_node(node)
    if options.role == "client":
        caller = Caller(node, executor, options.number)
        wait(caller.ready, "the services")
        (options.folder / f"client_{options.number}.ready").touch()
        begin_ns = int(wait(lambda: go.is_file() and go.read_text(), "the source"))
        realtime.rest_garbage()
        caller.run(plan, begin_ns, round(1e9 / options.rate))
        rows = caller.rows + [(0, 0, 0)] * (caller.sent - len(caller.rows))
        np.save(options.folder / f"client_{options.number}.npy", np.array(rows, np.int64))
        return 0
    fill(CacheClient(node, executor, _START_S))
    source = Source(node)
    wait(
        lambda: len(list(options.folder.glob("*.ready"))) == options.clients,
        f"{options.clients} clients",
    )
    begin_ns = time.monotonic_ns() + 1_000_000_000
    part.write_text(str(begin_ns))
    part.rename(go)
    realtime.rest_garbage()
    source.run(begin_ns + round(plan.phases * plan.seconds * 1e9), begin_ns)
    found = np.array(source.rows, np.int64).reshape(-1, 3)
    np.savez(options.folder / "source.npz", rows=found, sent=source.sent, hits=source.hits)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
