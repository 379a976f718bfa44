"""The real node process over DDS, against synthetic joint states."""

from __future__ import annotations

import math
import re
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from injection_rig import MS, Rig, holding, swinging

from kv_action_router.contracts import TRIGGER_DEADLINE_NS, ChunkKind
from kv_action_router.msg import DriveState, ExecutionFeedback
from kv_action_router.ros import topics

pytestmark = pytest.mark.dds

F = ExecutionFeedback
# A machine that runs other things too holds up these processes by more than the 20 ms of a robot.
PATIENT = (
    "scheduling_priority:=20",
    "joint_state_timeout:=0.2",
    "heartbeat_timeout:=0.8",
    "overrun_limit:=0.5",
    "grace:=20.0",
)


def arguments(*parameters: str) -> list[str]:
    listed = ["--ros-args"]
    for parameter in parameters:
        listed += ["-p", parameter]
    return listed


@pytest.fixture
def rig(ros: Any) -> Iterator[Rig]:
    rig = Rig(ros)
    yield rig
    rig.close()


@pytest.fixture
def injector(spawn: Callable[..., Any], rig: Rig) -> Any:
    """An active injector that holds the rig's arm."""
    process = spawn("kv_action_router.injection.node", *arguments("autostart:=true", *PATIENT))
    assert rig.until(lambda: rig.state == F.STATE_HOLD, 50.0), process.output()
    return process


def test_activation_holds_the_measured_state_and_feedback_tells_it(injector: Any, rig: Rig) -> None:
    home = rig.q.copy()
    rig.feedback.clear()
    rig.commands = 0
    rig.run(1.0)
    assert rig.commands > 100
    assert len(rig.feedback) > 30
    assert rig.q == pytest.approx(home, abs=2e-3)
    last = rig.last
    assert list(last.joint) == rig.names
    assert list(last.position) == pytest.approx(home, abs=2e-3)
    assert last.command_interface == "effort"
    assert last.late_commands_sent == 0
    assert list(last.confident) == [True] * 6


def test_chunks_are_followed_and_the_decision_comes_back(injector: Any, rig: Rig) -> None:
    home = rig.q.copy()
    rig.stream(swinging(home, time.monotonic()), 1.0, kind=ChunkKind.DECISION)
    adopted = rig.events(F.EVENT_CHUNK_ADOPTED)
    assert len(adopted) >= 10
    # Where real-time scheduling is not permitted, the process may be held up while it publishes.
    slack_ns = 0 if rig.last.realtime else 50 * MS
    for message in adopted:
        command_ns = int(message.decision.stage_monotonic_ns[4])
        trigger_ns = message.decision.trigger_monotonic_ns
        assert 0 < command_ns - trigger_ns <= TRIGGER_DEADLINE_NS + slack_ns
        assert message.decision.trace_id == message.decision.sequence
    assert np.abs(rig.q - home).max() > 0.03
    tracked = [m for m in rig.feedback if m.state == F.STATE_FOLLOW]
    errors = [np.abs(np.array(m.setpoint_position) - np.array(m.position)).max() for m in tracked]
    assert max(errors) < 0.05  # the rig may fall behind real time, the set-point does not
    assert rig.last.late_commands_sent == 0 or not rig.last.realtime
    # then silence: it comes to rest by itself and says so
    assert rig.until(lambda: rig.state == F.STATE_HOLD, 3.0)
    assert rig.events(F.EVENT_STARVED)


def test_chunks_that_come_20_ms_late_make_no_command(injector: Any, rig: Rig) -> None:
    home = rig.q.copy()
    before = rig.last.chunks_late
    held = np.array(rig.last.setpoint_position)
    heard = len(rig.feedback)  # the first of all was sent before a sample had come
    first = rig.sequence + 1
    rig.stream(swinging(home, time.monotonic()), 0.6, kind=ChunkKind.DECISION, delay_ns=20 * MS)
    rig.run(0.2)
    sent = rig.sequence - first + 1
    assert rig.last.chunks_late - before == sent
    assert rig.last.chunks_adopted == 0
    assert rig.last.late_commands_sent == 0
    assert rig.last.state == F.STATE_HOLD
    assert rig.q == pytest.approx(home, abs=2e-3)
    setpoints = np.array([m.setpoint_position for m in rig.feedback[heard:]])
    assert np.abs(setpoints - held).max() == 0.0
    late = rig.events(F.EVENT_CHUNK_LATE)
    assert late
    assert "15 ms old" in late[-1].reason
    assert any(f.error_code == 401 for f in rig.failures)
    # the next fresh one is followed
    assert rig.decide(holding(rig.last.setpoint_position))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_garbage_is_refused_and_the_node_lives(injector: Any, rig: Rig, bad: float) -> None:
    home = rig.q.copy()
    here = np.array(rig.last.setpoint_position)
    refused = rig.last.chunks_refused
    rig.send_chunk(holding(here), kind=ChunkKind.DECISION, spoil=bad)
    assert rig.until(lambda: rig.last.chunks_refused == refused + 1, 3.0)
    assert "must be finite" in rig.events(F.EVENT_CHUNK_INVALID)[-1].reason
    samples = rig.last.samples_refused
    broken = rig.q.copy()
    broken[2] = bad
    rig.publishes_joints = False  # the next good sample would take its place at once
    rig.publish_joints(broken, rig.v)
    assert rig.until(lambda: rig.last.samples_refused > samples, 0.15)
    rig.publishes_joints = True
    rig.publish_joints(rig.q, [bad] * 6)  # velocities that are not measured
    rig.run(0.2)
    assert all(map(math.isfinite, rig.last.command))
    assert rig.q == pytest.approx(home, abs=2e-3)
    assert rig.decide(holding(here))
    assert injector.running


def test_stop_wins_until_it_is_released(injector: Any, rig: Rig) -> None:
    path = swinging(rig.q.copy(), time.monotonic())
    rig.stream(path, 0.5, kind=ChunkKind.DECISION)
    epoch = rig.epoch
    rig.send_stop(engaged=True)
    assert rig.until(lambda: rig.state == F.STATE_STOPPED, 2.0)
    assert rig.epoch == epoch + 1
    rig.stream(path, 0.3, kind=ChunkKind.DECISION)
    rig.send_stop(engaged=False)
    rig.run(0.3)
    assert rig.state == F.STATE_STOPPED
    assert np.abs(rig.v).max() <= 0.01
    rested = rig.q.copy()

    answer = rig.release()
    assert answer.success, answer.message
    assert rig.until(lambda: rig.state == F.STATE_HOLD, 2.0)
    rig.stream(holding(rig.q), 0.1)  # continuations only: not enough
    assert rig.state == F.STATE_HOLD
    assert rig.q == pytest.approx(rested, abs=3e-3)
    assert rig.decide(holding(rig.q))
    assert rig.events(F.EVENT_CHUNK_ADOPTED)[-1].epoch == epoch + 1


def test_joint_states_freeze_and_come_back(injector: Any, rig: Rig) -> None:
    path = swinging(rig.q.copy(), time.monotonic())
    rig.stream(path, 0.5, kind=ChunkKind.DECISION)
    epoch = rig.epoch
    rig.publishes_joints = False
    rig.stream(path, 2.0)
    assert rig.state == F.STATE_FAIL_SAFE
    assert rig.epoch == epoch + 1
    assert rig.braked  # commands have ended, the drive's own time-out has braked
    rig.publishes_joints = True
    before = rig.q.copy()
    rig.stream(path, 0.5)
    assert all(m.epoch == epoch for m in rig.events(F.EVENT_CHUNK_ADOPTED))  # no catch-up
    assert rig.q == pytest.approx(before, abs=5e-3)
    assert not rig.braked
    assert any("joint_states" in f.source for f in rig.failures)
    assert rig.until(lambda: rig.events(F.EVENT_RELEASED), 3.0)
    assert rig.decide(holding(rig.q))
    assert rig.epoch == epoch + 1


def test_lost_node_is_named_and_the_arm_rests(injector: Any, rig: Rig) -> None:
    path = swinging(rig.q.copy(), time.monotonic())
    rig.stream(path, 0.4, kind=ChunkKind.DECISION)
    rig.silent_nodes.add("failure_monitor")
    rig.stream(path, 1.5)
    assert rig.state == F.STATE_FAIL_SAFE
    assert rig.until(lambda: np.abs(rig.v).max() <= 0.01, 1.0)
    event = rig.events(F.EVENT_FAIL_SAFE)[-1]
    assert event.reason.startswith("failure_monitor not heard of")
    assert any(f.source == "failure_monitor" for f in rig.failures)


def test_drives_that_stopped_by_themselves_are_given_a_pause(injector: Any, rig: Rig) -> None:
    topic = topics.DRIVE_STATE
    publisher = rig.node.create_publisher(topic.type, topic.name, topic.profile())
    told = DriveState(name=rig.names, braked=[True] * 6)

    def hears() -> None:
        publisher.publish(told)

    def noticed() -> bool:
        hears()
        return any("stopped by themselves" in m.reason for m in rig.events(F.EVENT_FAIL_SAFE))

    assert rig.until(noticed, 20.0)
    assert rig.until(lambda: hears() or rig.braked, 10.0), "commands went on"
    told.braked = [False] * 6
    assert rig.until(lambda: hears() or rig.state == F.STATE_HOLD, 20.0)
    assert not rig.braked
    assert any(failure.source == "drives" for failure in rig.failures)


def test_foreign_publisher_on_the_command_topic_stops_the_arm(injector: Any, rig: Rig) -> None:
    from kv_action_router.ros import topics

    topic = topics.EFFORT_COMMAND
    foreign = rig.node.create_publisher(topic.type, topic.name, topic.profile())
    assert rig.until(lambda: rig.state == F.STATE_STOPPED, 5.0)
    assert any(f.source == "/rig" and f.error_code == 402 for f in rig.failures)
    rig.node.destroy_publisher(foreign)


@pytest.mark.parametrize("numbers", [[signal.SIGTERM], [signal.SIGINT, signal.SIGINT]])
def test_a_signal_while_moving_rests_first_and_ends_cleanly(
    injector: Any, rig: Rig, numbers: list[signal.Signals]
) -> None:
    path = swinging(rig.q.copy(), time.monotonic())
    rig.stream(path, 0.5, kind=ChunkKind.DECISION)
    assert rig.state == F.STATE_FOLLOW
    begin = time.monotonic()
    for number in numbers:
        injector.send(number)
    assert rig.until(lambda: not injector.running, 5.0), injector.output()
    assert time.monotonic() - begin < 5.0
    assert injector.wait(1.0) == 0
    assert "Traceback" not in injector.output()
    rig.run(0.1)
    moving = [m for m in rig.feedback if m.state == F.STATE_RAMP]
    assert moving
    assert rig.last.state == F.STATE_INACTIVE
    assert np.abs(np.array(rig.last.velocity)).max() <= 0.01


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ("rate:=5000.0", r"rate must be at most 1000\.0 Hz, got 5000\.0"),
        ("blend_time:='short'", "blend_time must be of type float, got 'short'"),
        ("robot:=ur99", "no robot 'ur99'"),
        ("drive_timeout:=0.0", r"drive_timeout must be above 0 s"),
        ("execution_values:=/nowhere.yaml", "execution_values must be an existing YAML file"),
    ],
)
def test_bad_parameters_are_named_and_the_node_lives(
    spawn: Callable[..., Any], wait_until: Callable[..., Any], parameter: str, message: str
) -> None:
    process = spawn("kv_action_router.injection.node", *arguments("autostart:=true", parameter))
    wait_until(lambda: re.search(message, process.output()), 50.0, f"an error with {message!r}")
    assert process.running
    process.send(signal.SIGTERM)
    assert process.wait(5.0) == 0
