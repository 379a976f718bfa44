"""The node ``behavior_synthesizer`` as a real process over DDS, in a pretended world."""

from __future__ import annotations

import dataclasses
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

rclpy = pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from action_msgs.msg import GoalStatus  # noqa: E402
from lifecycle_msgs.msg import Transition  # noqa: E402
from lifecycle_msgs.srv import ChangeState  # noqa: E402
from rclpy.action import ActionClient  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.parameter_client import AsyncParameterClient  # noqa: E402
from synthesis_rig import make_match, pose  # noqa: E402

from kv_action_router.contracts import (  # noqa: E402
    CHUNK_PERIOD,
    ChunkKind,
    Decision,
    DecisionReason,
    ExecutionFeedback,
    InjectorEvent,
    InjectorState,
    JointSample,
    StageCondition,
    TaskStatus,
    TrajectoryChunk,
    Trigger,
    UpdateOperation,
)
from kv_action_router.errors import TaskTransitionError  # noqa: E402
from kv_action_router.robots.model import RobotModel  # noqa: E402
from kv_action_router.ros import topics  # noqa: E402
from kv_action_router.ros.conversions import (  # noqa: E402
    chunk_from_msg,
    condition_to_msg,
    entry_update_from_msg,
    feedback_to_msg,
    match_to_msg,
    task_state_from_msg,
)
from kv_action_router.tasks.definition import load_task, task_folders  # noqa: E402

pytestmark = [pytest.mark.dds, pytest.mark.timeout(180)]

PATIENCE_S = 45.0  # a start-up takes 2 s, and 15 on a machine whose cores are taken
MS = 1_000_000
FRESH_NS = -50 * MS  # triggers of the future: what a busy machine costs must not drop decisions


class World:
    """Joints, injector, cache and monitor in one thread; acts every few milliseconds."""

    def __init__(self, context: Any, model: RobotModel, task: str) -> None:
        self.task = task
        self.node = rclpy.create_node("world", context=context)
        self.executor = SingleThreadedExecutor(context=context)
        self.executor.add_node(self.node)
        self.model = model
        self.position = np.array(model.home)
        self.velocity = np.zeros(model.n)
        self.target = pose(0.5, 0.1)
        self.chunk: TrajectoryChunk | None = None
        self.chunks: list[TrajectoryChunk] = []
        self.states: list[Any] = []
        self.events: list[Any] = []
        self.updates: list[Any] = []
        self.stops: list[Any] = []
        self.answered = 0
        self.trigger_age_ns = FRESH_NS
        self.monitored = True
        self.image = 0
        self.epoch = 5
        self.injector = InjectorState.HOLD
        self.reason = ""
        self.publishers = {
            topic.name: self.node.create_publisher(topic.type, topic.name, topic.profile())
            for topic in (
                topics.CACHE_MATCH,
                topics.EXECUTION_FEEDBACK,
                topics.CONDITION,
            )
        }
        self._listen(topics.TRAJECTORY_CHUNK, self._on_chunk)
        self._listen(topics.TASK_STATE, lambda m: self.states.append(task_state_from_msg(m)))
        self._listen(topics.FAILURE_EVENT, self.events.append)
        self._listen(topics.ENTRY_UPDATE, lambda m: self.updates.append(entry_update_from_msg(m)))
        self._listen(topics.STOP, self.stops.append)
        self.action = ActionClient(self.node, topics.EXECUTE_TASK.type, topics.EXECUTE_TASK.name)
        self.clients = {
            service.name: self.node.create_client(service.type, service.name)
            for service in (topics.INTERRUPT, topics.RESUME, topics.LIMIT_SPEED)
        }

    def _listen(self, topic: topics.Topic, callback: Callable[[Any], Any]) -> None:
        self.node.create_subscription(topic.type, topic.name, callback, topic.profile())

    def close(self) -> None:
        self.action.destroy()
        self.executor.shutdown()
        self.node.destroy_node()

    # --- acting -----------------------------------------------------------------------------

    def _on_chunk(self, message: Any) -> None:
        chunk = chunk_from_msg(message)
        self.chunks.append(chunk)
        if chunk.decision.epoch == self.epoch and self.injector != InjectorState.STOPPED:
            self.chunk, self.injector = chunk, InjectorState.FOLLOW

    def act(self) -> None:
        """Move, measure, answer, judge."""
        now = time.monotonic_ns()
        self._play(now)
        self._send(topics.EXECUTION_FEEDBACK, feedback_to_msg(self._feedback(now)))
        state = self.states[-1] if self.states else None
        if state is None:
            return
        active = state.status in (TaskStatus.RUNNING, TaskStatus.INTERRUPTED, TaskStatus.STOPPING)
        self.image += 1
        first = state.decision.decision_id != self.answered
        self.answered = state.decision.decision_id
        by_image = first or self.image % 4 == 0
        is_old = self.trigger_age_ns != FRESH_NS  # then every match is, not images alone
        match = make_match(
            self.target,
            decision_id=self.answered if active else 0,
            trigger_ns=now - self.trigger_age_ns if by_image or is_old else now,
            trigger=Trigger.IMAGE if by_image else Trigger.JOINT_STATE,
            is_decision=first,
            names=self.model.joint_names,
            published_ns=now,
        )
        nothing = np.full(self.model.n, np.nan)
        joints = JointSample(self.model.joint_names, self.position, self.velocity, nothing, now)
        match = dataclasses.replace(match, joints=joints)
        self._send(topics.CACHE_MATCH, match_to_msg(match))
        if self.monitored and state.status == TaskStatus.RUNNING:
            self._judge(state, now)

    def _play(self, now: int) -> None:
        chunk = self.chunk
        if chunk is None or self.injector != InjectorState.FOLLOW:
            return
        row = (now - chunk.anchor_ns) * 1e-9 / CHUNK_PERIOD
        if row > 99.0 and not chunk.ends_at_rest:
            self.injector, self.velocity = InjectorState.RAMP, np.zeros(self.model.n)
            return
        sample = chunk.samples[min(max(int(row), 0), 99)]
        self.position, self.velocity = sample[: self.model.n], sample[self.model.n :]

    def _judge(self, state: Any, now: int) -> None:
        """Report the stage's end when its motion is done, as the monitor does."""
        chunk = self.chunk
        if chunk is None or chunk.stage != state.stage or self.injector != InjectorState.FOLLOW:
            return
        if chunk.decision.decision_id != state.decision.decision_id:
            return
        contact = state.stage == "touch" and chunk.phase > 0.8
        if chunk.phase < 1.0 and not contact:
            return
        name = {"approach": "above_target", "touch": "contact", "retreat": "home"}[state.stage]
        condition = StageCondition(
            state.task, state.goal_id, state.stage, state.decision.decision_id, name,
            False, "motion_phase", 1.0, 1.0, 0.03, now,
        )  # fmt: skip
        self._send(topics.CONDITION, condition_to_msg(condition))

    def _feedback(self, now: int) -> ExecutionFeedback:
        chunk, n = self.chunk, self.model.n
        return ExecutionFeedback(
            decision=Decision() if chunk is None else chunk.decision,
            state=self.injector,
            event=InjectorEvent.NONE,
            reason=self.reason,
            monotonic_ns=now,
            epoch=self.epoch,
            chunk_sequence=0 if chunk is None else chunk.decision.sequence,
            phase=float("nan") if chunk is None else chunk.phase,
            joints=self.model.joint_names,
            position=self.position,
            velocity=self.velocity,
            setpoint_position=self.position,
            setpoint_velocity=self.velocity,
            command=np.zeros(n),
            command_interface="effort",
            confident=np.ones(n, dtype=bool),
            execution_version=1,
            joint_monotonic_ns=now,
        )

    def _send(self, topic: topics.Topic, message: Any) -> None:
        self.publishers[topic.name].publish(message)

    # --- waiting ----------------------------------------------------------------------------

    def until(self, what: str, done: Callable[[], Any]) -> Any:
        """Act every 5 ms until ``done`` returns something true."""
        end = time.monotonic() + PATIENCE_S
        due = 0.0
        while time.monotonic() < end:
            if result := done():
                return result
            if time.monotonic() >= due:
                self.act()
                due = time.monotonic() + 0.005
            self.executor.spin_once(timeout_sec=0.001)
        raise AssertionError(f"{what} did not happen within {PATIENCE_S} s")

    def connect(self) -> None:
        """Wait until both sides know each other and the node is active."""
        self.until(
            "discovery",
            lambda: (
                all(p.get_subscription_count() for p in self.publishers.values())
                and all(client.service_is_ready() for client in self.clients.values())
                and self.action.server_is_ready()
                and self.states
            ),
        )

    def call(self, service: topics.Service, **fields: Any) -> Any:
        """Call a service and return its response."""
        future = self.clients[service.name].call_async(service.type.Request(**fields))
        self.until(f"answer of {service.name}", future.done)
        return future.result()

    def goal(self, task: str = "") -> Any:
        """Send a goal and return its handle."""
        goal = topics.EXECUTE_TASK.type.Goal(task=task or self.task)
        sent = self.action.send_goal_async(goal)
        self.until("the goal's acceptance", sent.done)
        return sent.result()

    def result(self, handle: Any) -> Any:
        """Wait for a goal's end and return its status and result."""
        ended = handle.get_result_async()
        self.until("the goal's end", ended.done)
        return ended.result()

    def status(self) -> TaskStatus:
        """Return the task's newest status."""
        return TaskStatus(self.states[-1].status)

    def moving(self) -> bool:
        """Say whether the arm moves noticeably."""
        return float(np.abs(self.velocity).max()) > 0.1


@pytest.fixture
def process(spawn: Callable[..., Any]) -> Any:
    """Start the node; it configures and activates itself."""
    return spawn("kv_action_router.synthesis.node", "--ros-args", "-p", "autostart:=true")


@pytest.fixture
def patient_task(tmp_path: Path) -> str:
    """Write the package's task with time-outs that a busy machine keeps."""
    folder = next(iter(task_folders()))
    data = yaml.safe_load((folder / "touch_target.yaml").read_text(encoding="utf-8"))
    for part in (data, *data["stages"]):
        part["timeout"] = 120.0
    path = tmp_path / "touch_target.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    return str(path)


@pytest.fixture
def world(process: Any, ros: Any, model: RobotModel, patient_task: str) -> Iterator[World]:
    """Pretend everything around the node, and wait until they know each other."""
    world = World(ros, model, patient_task)
    world.connect()
    yield world
    world.close()


def test_task_runs_to_its_end(world: World) -> None:
    handle = world.goal()
    assert handle.accepted
    answer = world.result(handle)
    result = answer.result
    assert answer.status == GoalStatus.STATUS_SUCCEEDED, result
    assert (result.success, result.error_code, result.stages_completed) == (True, 0, 3)
    assert (result.task_hits, result.behavior_hits) == (0, 0)
    assert result.decisions >= 3
    world.until("three insertions", lambda: len(world.updates) >= 3)
    assert {update.operation for update in world.updates} == {UpdateOperation.INSERT}
    assert [update.behavior.subtask for update in world.updates] == [
        stage.subtask for stage in load_task("touch_target").stages
    ]
    decisions = [chunk for chunk in world.chunks if chunk.kind == ChunkKind.DECISION]
    assert {chunk.stage for chunk in decisions} == {"approach", "touch", "retreat"}
    for chunk in world.chunks:
        assert chunk.decision.epoch == world.epoch
        if chunk.kind == ChunkKind.CONTINUATION:
            assert 0 <= chunk.anchor_ns - chunk.decision.trigger_monotonic_ns <= 15 * MS
    sequences = [chunk.decision.sequence for chunk in world.chunks]
    assert sequences == sorted(set(sequences))
    assert np.allclose(world.position, world.model.home, atol=1e-3)
    world.until("idle", lambda: world.chunks[-1].ends_at_rest)


def test_cancel_is_answered_at_rest_and_a_second_goal_is_rejected(world: World) -> None:
    handle = world.goal()
    world.until("motion", world.moving)
    assert not world.goal().accepted
    world.until("the reason", lambda: any("under way" in e.error_msg for e in world.events))
    canceled = handle.cancel_goal_async()
    ended = handle.get_result_async()
    world.until("the goal's end", ended.done)
    assert canceled.done()
    assert ended.result().status == GoalStatus.STATUS_CANCELED
    assert not world.moving()
    assert world.status() == TaskStatus.CANCELED
    assert world.goal().accepted  # the next one is welcome


def test_a_goal_is_refused_at_once_while_a_stop_is_engaged(world: World) -> None:
    beats: list[Any] = []
    world._listen(topics.HEARTBEATS["behavior_synthesizer"], beats.append)

    def becomes(state: InjectorState, reason: str) -> None:
        """Let the injector go to a state, and wait until the synthesizer has heard of it."""
        world.injector, world.reason, world.epoch = state, reason, world.epoch + 1
        world.until("the news", lambda: beats and beats[-1].epoch == world.epoch)

    becomes(InjectorState.STOPPED, "stop by operator: button")
    begin = time.monotonic()
    answer = world.result(world.goal())
    assert time.monotonic() - begin < 8.0  # not the stage's time-out, whatever the machine does
    assert answer.status == GoalStatus.STATUS_ABORTED
    assert answer.result.error_code == TaskTransitionError.error_code
    assert "a stop is engaged, stop by operator: button" in answer.result.error_msg
    assert "actuator_injector/release_stop" in answer.result.error_msg
    assert all(state.status == TaskStatus.IDLE for state in world.states)  # nothing was begun
    becomes(InjectorState.HOLD, "")
    assert world.goal().accepted
    world.until("motion after the release", world.moving)


def test_speed_is_limited_and_lifted_by_service(world: World) -> None:
    answer = world.call(topics.LIMIT_SPEED, source="test", scale=0.01, reason="too slow")
    assert not answer.success
    assert "scale must be from 0.05 to 1" in answer.message
    answer = world.call(topics.LIMIT_SPEED, source="test", scale=0.3, reason="a child is near")
    assert (answer.success, answer.scale) == (True, 0.3)
    assert "test 0.3 (a child is near)" in answer.message
    assert world.result(world.goal()).result.success  # slowly
    answer = world.call(topics.LIMIT_SPEED, source="test", scale=1.0)
    assert (answer.success, answer.scale) == (True, 1.0)


def test_interrupt_stops_and_resume_goes_on_in_the_same_stage(world: World) -> None:
    handle = world.goal()
    world.until("motion", world.moving)
    refused = world.call(topics.INTERRUPT, source="test", reason="")
    assert not refused.success
    assert "reason must not be empty" in refused.message
    answer = world.call(topics.INTERRUPT, source="test", reason="a child is near")
    assert answer.success
    assert (answer.task, answer.stage) == ("touch_target", "approach")
    world.until("rest", lambda: world.status() == TaskStatus.INTERRUPTED and not world.moving())
    assert not world.call(topics.RESUME, source="somebody else").success
    asked = world.states[-1].decision.decision_id
    assert world.call(topics.RESUME, source="test").success
    world.until("decision", lambda: world.states[-1].decision.decision_id > asked)
    assert world.states[-1].decision_reason == DecisionReason.RESUMED
    assert world.result(handle).result.success
    stages = [state.stage_index for state in world.states if state.status == TaskStatus.RUNNING]
    assert stages == sorted(stages)  # no finished stage starts over
    assert not world.call(topics.RESUME, source="test").success


def test_interrupt_inserts_a_sequence_and_feedback_tells_of_it(world: World) -> None:
    handle = world.goal()
    world.until("motion", world.moving)
    refused = world.call(topics.INTERRUPT, source="test", reason="near", sequence="back_of")
    assert not refused.success
    assert "'back_of'" in refused.message
    answer = world.call(
        topics.INTERRUPT, source="test", reason="a child is near", sequence="back_off_and_warn"
    )
    assert (answer.success, answer.task, answer.stage) == (True, "back_off_and_warn", "back_off")
    assert "'test' (a child is near) with 'back_off_and_warn'" in answer.message
    world.until(
        "its motion",
        lambda: (
            world.states[-1].task == "back_off_and_warn" and (world.status() == TaskStatus.RUNNING)
        ),
    )
    assert world.call(topics.RESUME, source="test").success
    world.until("the task again", lambda: world.states[-1].task == "touch_target")
    result = world.result(handle).result
    assert result.success
    assert (result.stages_completed, result.interruptions) == (3, 1)


def test_unknown_task_is_answered_with_a_reason(world: World) -> None:
    answer = world.result(world.goal("touch_targt"))
    assert answer.status == GoalStatus.STATUS_ABORTED
    assert answer.result.error_code == 5
    assert "did you mean 'touch_target'" in answer.result.error_msg


def test_old_triggers_make_no_chunk_and_are_counted(world: World) -> None:
    world.trigger_age_ns = 20 * MS
    world.goal()
    dropped = world.until(
        "drop", lambda: [e for e in world.events if "decision dropped" in e.error_msg]
    )
    assert dropped[0].error_code == 300
    assert dropped[0].value > dropped[0].limit == pytest.approx(0.015)
    assert not world.chunks
    world.trigger_age_ns = FRESH_NS
    world.until("the first chunk", lambda: world.chunks)


def test_stopped_injector_gets_a_fresh_decision_after_its_release(world: World) -> None:
    handle = world.goal()
    world.until("motion", world.moving)
    first = world.states[-1].decision.decision_id
    world.injector, world.chunk, world.epoch = InjectorState.STOPPED, None, world.epoch + 1
    world.velocity = np.zeros(6)
    standing = world.position.copy()
    seen = len(world.states) + 3
    world.until("some time", lambda: len(world.states) > seen)
    assert world.chunks[-1].decision.epoch < world.epoch
    world.injector = InjectorState.HOLD
    world.until("a fresh decision", lambda: world.states[-1].decision.decision_id > first)
    fresh = world.until(
        "its chunk", lambda: [c for c in world.chunks if c.decision.epoch == world.epoch]
    )
    assert fresh[0].kind == ChunkKind.DECISION
    assert np.allclose(fresh[0].samples[0, :6], standing, atol=1e-6)
    assert world.result(handle).result.success


def test_late_joiner_learns_the_task_state_at_once(world: World, ros: Any) -> None:
    world.monitored = False
    world.goal()
    world.until("the decision", lambda: world.chunks)
    late: list[Any] = []
    topic = topics.TASK_STATE
    world.node.create_subscription(topic.type, topic.name, late.append, topic.profile())
    world.until("the latched state", lambda: late)
    state = task_state_from_msg(late[0])
    assert (state.task, state.stage, state.subtask) == (
        "touch_target",
        "approach",
        "touch_approach_v1",
    )
    assert state.intent.size == 128
    assert state.needs_image


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_in_motion_stops_first_and_ends_cleanly(
    process: Any, world: World, number: signal.Signals
) -> None:
    world.goal()
    world.until("motion", world.moving)
    begun = time.monotonic()
    process.send(number)
    world.until("the stop", lambda: any(stop.engaged for stop in world.stops))
    assert process.wait(10.0) == 0
    assert time.monotonic() - begun < 5.0
    assert "Traceback" not in process.output()
    assert world.stops[-1].source == "behavior_synthesizer"


def test_bad_parameter_fails_configure_by_name_and_can_be_mended(
    spawn: Callable[..., Any], ros: Any, model: RobotModel, patient_task: str
) -> None:
    process = spawn(
        "kv_action_router.synthesis.node", "--ros-args",
        "-p", "autostart:=true", "-p", "velocity_share:=3.0",
    )  # fmt: skip
    world = World(ros, model, patient_task)
    change = world.node.create_client(ChangeState, "behavior_synthesizer/change_state")
    parameters = AsyncParameterClient(world.node, "behavior_synthesizer")
    try:
        text = "velocity_share must be at most 1.0, got 3.0"
        world.until("the reason", lambda: text in process.output())
        world.until(
            "services", lambda: change.service_is_ready() and parameters.services_are_ready()
        )
        mended = parameters.set_parameters([Parameter("velocity_share", value=0.5)])
        world.until("the parameter", mended.done)
        for transition in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
            done = change.call_async(ChangeState.Request(transition=Transition(id=transition)))
            world.until("the transition", done.done)
            assert done.result().success
        world.connect()
        assert world.goal().accepted
        world.until("a chunk", lambda: world.chunks)
        done = change.call_async(
            ChangeState.Request(transition=Transition(id=Transition.TRANSITION_DEACTIVATE))
        )
        world.until("the transition", done.done)
        world.until("the task's end", lambda: world.status() == TaskStatus.FAILED)
        assert not world.goal().accepted
        assert process.running
    finally:
        world.close()
