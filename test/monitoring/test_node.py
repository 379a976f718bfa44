"""The real failure_monitor process between fake nodes, over DDS."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from diagnostic_msgs.msg import DiagnosticStatus  # noqa: E402
from lifecycle_msgs.msg import State, Transition  # noqa: E402
from lifecycle_msgs.srv import ChangeState, GetState  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.node import Node  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.parameter_client import AsyncParameterClient  # noqa: E402

from kv_action_router.contracts import Decision, DecisionReason, TaskState, TaskStatus  # noqa: E402
from kv_action_router.msg import (  # noqa: E402
    CacheMatch,
    DriveState,
    ExecutionFeedback,
    FailureEvent,
    Heartbeat,
    StageCondition,
)
from kv_action_router.ros import topics  # noqa: E402
from kv_action_router.ros.conversions import task_state_to_msg  # noqa: E402
from kv_action_router.tasks.rule_file import default_table  # noqa: E402

pytestmark = pytest.mark.dds

HERE = Path(__file__).parent
SCRIPT = HERE.parents[1] / "scripts" / "failure_monitor"
NODES = [name for name in topics.NODES if name != "failure_monitor"]
JOINTS = ["elbow_joint", "wrist_1_joint"]


class Suite(Node):
    """Stands in for the rest of the suite: publishes every 2 ms on a thread, listens on another."""

    def __init__(self, context: Any) -> None:
        super().__init__("fake_suite", context=context)
        self.events: list[FailureEvent] = []
        self.conditions: list[StageCondition] = []
        self.stops: list[Any] = []
        self.diagnostics: list[Any] = []
        self.requests: list[Any] = []
        for topic, store in (
            (topics.FAILURE_EVENT, self.events),
            (topics.CONDITION, self.conditions),
            (topics.STOP, self.stops),
            (topics.DIAGNOSTICS, self.diagnostics),
        ):
            self.create_subscription(topic.type, topic.name, store.append, topic.profile())
        for service in (topics.INVALIDATE, topics.INTERRUPT):
            self.create_service(service.type, service.name, self._answer)
        sent = (
            topics.TASK_STATE, topics.EXECUTION_FEEDBACK, topics.WRENCH, topics.DRIVE_STATE,
            topics.CACHE_MATCH,
        )  # fmt: skip
        self._out = {t.name: self.create_publisher(t.type, t.name, t.profile()) for t in sent}
        self._beats = {}
        for name in NODES:
            topic = topics.HEARTBEATS[name]
            self._beats[name] = self.create_publisher(topic.type, topic.name, topic.profile())
        self.beating = set(NODES)
        self.force: Callable[[int], float] = lambda tick: 0.0
        self.setpoint = 0.0
        self.decision_id = 0
        self.temperature = 40.0
        self.entry_id = 0
        self.tick = 0
        self._running = True
        self._executor_made = SingleThreadedExecutor(context=context)
        self._executor_made.add_node(self)
        self._threads = [
            threading.Thread(target=self._publish),
            threading.Thread(target=self._spin),
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._running = False
        for thread in self._threads:
            thread.join()
        self._executor_made.shutdown()
        self.destroy_node()

    def begin_stage(self, stage: str, decision_id: int, index: int) -> None:
        """Ask for a stage's decision; the injector follows it at once."""
        state = TaskState(
            Decision(decision_id=decision_id), TaskStatus.RUNNING, "touch_target", "goal", stage,
            index, 3, "touch_v1", 0.0, np.zeros(0, np.float32), DecisionReason.STAGE_ENTRY, True,
            False, 0, "target",
        )  # fmt: skip
        self._out["task_state"].publish(task_state_to_msg(state))
        self.decision_id = decision_id

    def seen(self, detector: str, source: str | None = None) -> list[FailureEvent]:
        return [
            event
            for event in list(self.events)
            if event.detector == detector and source in (None, event.source)
        ]

    def signals(self) -> dict[str, str]:
        """Return what the newest diagnostics show of signals and stage."""
        return {
            value.key.split()[0]: value.value
            for item in self.diagnostics[-1].status
            for value in item.values
            if item.name.endswith("signals")
        }

    def shown(self, condition: str) -> str:
        """Return what the diagnostics have said of a condition that holds."""
        return "\n".join(
            item.message
            for message in list(self.diagnostics)
            for item in message.status
            if item.name.endswith(condition) and item.level == DiagnosticStatus.ERROR
        )

    def _answer(self, request: Any, response: Any) -> Any:
        self.requests.append(request)
        response.success = True
        return response

    def _spin(self) -> None:
        while self._running:
            self._executor_made.spin_once(timeout_sec=0.05)

    def _publish(self) -> None:
        wrench = topics.WRENCH.type()
        feedback = ExecutionFeedback(
            joint=JOINTS, position=array("d", [0.0, 0.0]), velocity=array("d", [0.0, 0.0]),
            setpoint_velocity=array("d", [0.0, 0.0]), command=array("d", [0.0, 0.0]),
            confident=[True, True], state=ExecutionFeedback.STATE_FOLLOW, phase=0.5,
            command_interface="effort",
        )  # fmt: skip
        drives = DriveState(name=JOINTS)
        match = CacheMatch(hit=True)
        due = time.monotonic()
        while self._running:
            tick = self.tick = self.tick + 1
            wrench.wrench.force.z = float(self.force(tick))
            self._out["wrench"].publish(wrench)
            if tick % 5 == 0:
                feedback.monotonic_ns = time.monotonic_ns()
                feedback.decision.decision_id = self.decision_id
                feedback.setpoint_position = array("d", [0.0, self.setpoint])
                self._out["execution_feedback"].publish(feedback)
                match.entry_id = self.entry_id
                self._out["cache_match"].publish(match)
            if tick % 10 == 0:
                for name in self.beating:
                    beat = Heartbeat(node=name, lifecycle_state=State.PRIMARY_STATE_ACTIVE)
                    self._beats[name].publish(beat)
                drives.temperature = array("d", [40.0, self.temperature])
                self._out["drive_state"].publish(drives)
            due += 0.002
            time.sleep(max(0.0, due - time.monotonic()))


@pytest.fixture
def suite(ros: Any) -> Iterator[Suite]:
    node = Suite(ros)
    yield node
    node.close()


@pytest.fixture
def start(spawn: Callable[..., Any], suite: Suite, wait_until: Callable[..., Any]) -> Any:
    """Start an active monitor and wait until it has heard every node and published."""

    def begin(**parameters: Any) -> Any:
        settings = {"autostart": True, **parameters}
        words = [w for name, value in settings.items() for w in ("-p", f"{name}:={value}")]
        process = spawn([sys.executable, str(SCRIPT), "--ros-args", *words])
        wait_until(lambda: suite.diagnostics, 20.0, "the first diagnostics")
        return process

    return begin


def test_a_killed_node_is_named_and_the_robot_stopped(
    start: Any, suite: Suite, spawn: Callable[..., Any], wait_until: Callable[..., Any]
) -> None:
    suite.beating.discard("cache_manager")
    active = str(State.PRIMARY_STATE_ACTIVE)
    victim = spawn([sys.executable, str(HERE / "fake_node.py"), "cache_manager", active])
    heard = []
    topic = topics.HEARTBEATS["cache_manager"]
    suite.create_subscription(topic.type, topic.name, heard.append, topic.profile())
    start()
    wait_until(lambda: "heartbeat_age" in suite.signals(), 10.0, "signs of life of every node")
    wait_until(lambda: heard, 10.0, "a sign of life that is heard here too")
    victim.send(signal.SIGKILL)
    victim.wait(5.0)
    last_ns = heard[-1].monotonic_ns
    wait_until(
        lambda: [e for e in suite.seen("node_lost", "cache_manager") if e.monotonic_ns > last_ns],
        2.0,
        "the report of the killed node",
    )
    event = suite.seen("node_lost", "cache_manager")[-1]
    assert event.error_code == 510
    assert event.severity == FailureEvent.SEVERITY_FATAL
    assert event.response == "brake"
    assert event.signal == "heartbeat_age"
    assert event.value > event.limit == 0.060
    assert "cache_manager" in event.error_msg
    stop = wait_until(lambda: suite.stops, 2.0, "the stop")[-1]
    assert stop.engaged
    assert stop.source == "failure_monitor"
    wait_until(
        lambda: "cache_manager" in suite.shown("node_lost"), 3.0, "the same in the diagnostics"
    )


def test_a_node_never_seen_is_named(
    start: Any, suite: Suite, wait_until: Callable[..., Any], tmp_path: Path
) -> None:
    suite.beating.discard("behavior_synthesizer")
    table = tmp_path / "conditions.yaml"
    shipped = default_table().read_text(encoding="utf-8")
    assert shipped.count("limit: 10.0\n") == 1
    table.write_text(shipped.replace("limit: 10.0\n", "limit: 1.5\n"), encoding="utf-8")
    start(conditions_file=table)
    # The diagnostics repeat what the event has said, maybe before it could be heard here.
    wait_until(lambda: "behavior_synthesizer" in suite.shown("node_absent"), 10.0, "the report")


def test_held_force_ends_the_stage_and_nan_does_not(
    start: Any, suite: Suite, wait_until: Callable[..., Any]
) -> None:
    start()
    suite.begin_stage("approach", 1, 0)
    # The stage's tare is taken when its motion begins, in free space.
    wait_until(lambda: "decision 1 in force" in suite.signals()["stage"], 10.0, "the approach")
    wait_until(lambda: "wrench_force" in suite.signals(), 20.0, "the tare")
    # One sample in four is not measured: no 20 ms in a row.
    suite.force = lambda tick: math.nan if tick % 4 == 0 else -8.0
    suite.begin_stage("touch", 2, 1)
    sent = suite.tick
    wait_until(lambda: suite.tick > sent + 500, 10.0, "a second of broken samples")
    assert suite.conditions == []
    suite.force = lambda tick: -8.0
    condition = wait_until(lambda: suite.conditions, 20.0, "the condition")[0]
    assert condition.condition == "contact"
    assert condition.kind == StageCondition.END
    assert (condition.task, condition.stage, condition.goal_id) == ("touch_target", "touch", "goal")
    assert condition.decision_id == 2
    assert condition.signal == "wrench_force"
    assert condition.value == pytest.approx(8.0)
    assert condition.limit == 5.0
    assert condition.held >= 0.020
    pressed = suite.tick
    wait_until(lambda: suite.tick > pressed + 100, 5.0, "200 ms more of the same force")
    assert len(suite.conditions) == 1


def test_a_lost_joint_stops_and_invalidates_the_entry_in_force(
    start: Any, suite: Suite, wait_until: Callable[..., Any]
) -> None:
    suite.entry_id = 41
    start()
    suite.setpoint = 0.5
    request = wait_until(lambda: suite.requests, 5.0, "the call of invalidate")[0]
    assert request.scope == request.SCOPE_ENTRY
    assert request.entry_id == 41
    assert "wrist_1_joint" in request.reason
    assert wait_until(lambda: suite.stops, 2.0, "the stop")[-1].engaged
    wait_until(lambda: any(s.fail_safe for s in suite.stops), 2.0, "the stop by fail-safe")
    assert wait_until(lambda: suite.seen("tracking_lost", "wrist_1_joint"), 2.0, "the event")


def test_a_press_that_lasts_interrupts_the_task(
    start: Any, suite: Suite, wait_until: Callable[..., Any]
) -> None:
    start()
    suite.begin_stage("approach", 1, 0)
    # A tare that is taken later would take the press for the tool's weight.
    wait_until(lambda: "decision 1 in force" in suite.signals()["stage"], 10.0, "the approach")
    wait_until(lambda: "wrench_force" in suite.signals(), 10.0, "the tare")
    suite.force = lambda tick: 40.0
    request = wait_until(lambda: suite.requests, 20.0, "the call of interrupt")[0]
    assert request.source == "failure_monitor"
    assert "200 ms" in request.reason
    assert not [stop for stop in suite.stops if "at the tool" in stop.reason]


def test_a_hot_drive_is_named(start: Any, suite: Suite, wait_until: Callable[..., Any]) -> None:
    start()
    suite.temperature = 75.0
    event = wait_until(lambda: suite.seen("drive_hot"), 5.0, "the event")[0]
    assert event.source == "wrist_1_joint"
    assert event.response == "derate"
    assert event.value == 75.0


def test_a_broken_table_fails_configure_and_a_mended_one_does_not(
    spawn: Callable[..., Any], suite: Suite, wait_until: Callable[..., Any], tmp_path: Path
) -> None:
    broken = tmp_path / "conditions.yaml"
    broken.write_text("conditions: [{name: a, signal: wrench_forc, op: '>', limit: 1.0}]")
    process = spawn([sys.executable, str(SCRIPT), "--ros-args", "-p", f"conditions_file:={broken}"])
    change = suite.create_client(ChangeState, "failure_monitor/change_state")
    state = suite.create_client(GetState, "failure_monitor/get_state")
    wait_until(change.service_is_ready, 20.0, "the lifecycle service")

    def call(client: Any, request: Any) -> Any:
        future = client.call_async(request)
        wait_until(future.done, 10.0, f"the answer of {client.srv_name}")
        return future.result()

    def transition(number: int) -> bool:
        request = ChangeState.Request(transition=Transition(id=number))
        return bool(call(change, request).success)

    assert not transition(Transition.TRANSITION_CONFIGURE)
    assert "wrench_forc" in process.output()
    assert "did you mean 'wrench_force'" in process.output()
    current = call(state, GetState.Request()).current_state
    assert current.id == State.PRIMARY_STATE_UNCONFIGURED
    parameters = AsyncParameterClient(suite, "failure_monitor")
    wait_until(parameters.services_are_ready, 10.0, "the parameter services")
    future = parameters.set_parameters([Parameter("conditions_file", value="")])
    wait_until(future.done, 10.0, "the parameter's answer")
    assert transition(Transition.TRANSITION_CONFIGURE)
    assert transition(Transition.TRANSITION_ACTIVATE)
    assert transition(Transition.TRANSITION_DEACTIVATE)
    assert transition(Transition.TRANSITION_CLEANUP)
    assert transition(Transition.TRANSITION_CONFIGURE)
    assert process.running


def test_sigterm_ends_it_without_a_traceback(start: Any, suite: Suite) -> None:
    process = start()
    process.send(signal.SIGTERM)
    assert process.wait(5.0) == 0
    assert "Traceback" not in process.output()
