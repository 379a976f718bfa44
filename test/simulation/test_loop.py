"""The physics loop as a thread, without ROS."""

from __future__ import annotations

import threading
from typing import Any

from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.loop import PhysicsLoop
from kv_action_router.simulation.plant import Plant


class Counter:
    """Outputs that count their calls and can fail."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.enough = threading.Event()
        self.failing = False

    def __getattr__(self, name: str) -> Any:
        def count(*_: Any) -> None:
            self.counts[name] = self.counts.get(name, 0) + 1
            if self.counts.get("joints", 0) >= 100:
                self.enough.set()
            if self.failing and name == "joints":
                raise ValueError("broken output")

        return count

    def stamp_ns(self) -> int:
        return 0


def run_loop(robot: RobotModel, outputs: Counter, errors: list[Exception]) -> PhysicsLoop:
    config = SimulationConfig()
    plant = Plant(config, robot.home, robot.velocity_limit)
    loop = PhysicsLoop(plant, config, outputs, errors.append)
    loop.start()
    return loop


def test_streams_come_in_proportion(robot: RobotModel) -> None:
    outputs, errors = Counter(), []
    loop = run_loop(robot, outputs, errors)
    assert outputs.enough.wait(20.0)
    loop.stop()
    counts = outputs.counts
    assert not errors
    assert counts["poll_commands"] in (counts["joints"], counts["joints"] + 1)
    assert abs(counts["wrench"] - 0.5 * counts["joints"]) <= 1.0
    assert abs(counts["imu"] - 0.2 * counts["joints"]) <= 1.0
    assert abs(counts["drives"] - 0.1 * counts["joints"]) <= 1.0
    assert abs(counts["scene"] - 0.06 * counts["joints"]) <= 1.0


def test_a_failing_output_is_reported_and_the_loop_goes_on(robot: RobotModel) -> None:
    outputs, errors = Counter(), []
    outputs.failing = True
    loop = run_loop(robot, outputs, errors)
    assert outputs.enough.wait(20.0)
    loop.stop()
    assert len(errors) >= 99
    assert str(errors[0]) == "broken output"


def test_calls_run_on_the_loop_and_are_given_up_when_it_does_not_answer(robot: RobotModel) -> None:
    outputs, errors = Counter(), []
    loop = run_loop(robot, outputs, errors)
    names: list[str] = []
    assert loop.call(lambda: names.append(threading.current_thread().name), timeout=20.0)
    assert names == ["physics"]
    loop.stop()
    assert not loop.call(lambda: names.append("late"), timeout=0.01)
    assert names == ["physics"]
