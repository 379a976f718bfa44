"""Two robots on one machine, each in its namespace: what one does reaches nothing of the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from injection_rig import Rig, swinging

from kv_action_router.contracts import ChunkKind
from kv_action_router.msg import ExecutionFeedback
from kv_action_router.ros import topics

pytestmark = [pytest.mark.dds, pytest.mark.timeout(150)]

PREFIX = "second_"  # of the joints of the robot that stands still
OF_ALL_ROBOTS = ("/diagnostics", "/parameter_events", "/rosout")
# A machine that runs other things too holds up these processes by more than the 20 ms of a robot.
PATIENT = (
    "joint_state_timeout:=0.2",
    "heartbeat_timeout:=0.8",
    "overrun_limit:=0.5",
    "grace:=20.0",
)
STILL = 2e-3  # [rad]
MOVED = 0.03  # [rad]


@pytest.fixture
def rigs(ros: Any) -> Iterator[tuple[Rig, Rig]]:
    both = Rig(ros, "first"), Rig(ros, "second", PREFIX)
    yield both
    for rig in both:
        rig.close()


def until_both(rigs: tuple[Rig, Rig], condition: Callable[[], bool], seconds: float) -> bool:
    """Let both robots be alive until something is true; return whether it became true in time."""
    first, second = rigs
    return first.until(lambda: second.step() or condition(), seconds)


def test_what_one_robot_is_sent_reaches_nothing_of_the_other(
    spawn: Callable[..., Any], rigs: tuple[Rig, Rig]
) -> None:
    first, second = rigs
    for namespace, prefix in (("first", ""), ("second", PREFIX)):
        values = ("autostart:=true", f"joint_prefix:='{prefix}'", *PATIENT)
        given = [text for value in values for text in ("-p", value)]
        spawn("kv_action_router.injection.node", "--ros-args", "-r", f"__ns:=/{namespace}", *given)
    held = ExecutionFeedback.STATE_HOLD
    assert until_both(rigs, lambda: first.state == held and second.state == held, 60.0)
    home, still, sent = first.q.copy(), second.q.copy(), second.commands

    path = swinging(home, time.monotonic())
    due = time.monotonic()

    def moved() -> bool:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + 0.02
            first.send_chunk(path, kind=ChunkKind.DECISION)
        return float(np.abs(first.q - home).max()) > MOVED

    assert until_both(rigs, moved, 20.0)
    assert second.state == held
    assert second.last.chunks_adopted == second.last.chunks_refused == second.last.chunks_late == 0
    assert second.commands > sent
    assert second.q == pytest.approx(still, abs=STILL)
    assert list(second.last.joint) == [f"{PREFIX}{name}" for name in first.names]

    first.send_stop(engaged=True)
    stopped = ExecutionFeedback.STATE_STOPPED
    assert until_both(rigs, lambda: first.state == stopped, 10.0)
    assert second.state == held

    names = {name for name, _ in first.node.get_topic_names_and_types()}
    assert f"/second/{topics.EFFORT_COMMAND.name}" in names
    assert not [n for n in names if not n.startswith(("/first/", "/second/", *OF_ALL_ROBOTS))]
