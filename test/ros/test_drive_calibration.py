"""Calibration on demand by the real monitor's node, with the cache's answer over DDS."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402

from kv_action_router.caching.layers.execution import ExecutionLayer  # noqa: E402
from kv_action_router.contracts import (  # noqa: E402
    SLOT,
    DriveSample,
    ExecutionFeedback,
    FloatArray,
)
from kv_action_router.errors import StaleVersionError  # noqa: E402
from kv_action_router.monitoring.calibration.rows import Column  # noqa: E402
from kv_action_router.monitoring.node import FailureMonitorNode  # noqa: E402
from kv_action_router.robots.execution_values import load_execution_value  # noqa: E402
from kv_action_router.robots.model import RobotModel  # noqa: E402
from kv_action_router.ros import topics  # noqa: E402
from kv_action_router.ros.conversions import (  # noqa: E402
    entry_update_from_msg,
    execution_value_to_msg,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "monitoring"))
from calibration_builders import Truth, make_rows  # noqa: E402
from monitoring_builders import feedback  # noqa: E402

pytestmark = [pytest.mark.dds, pytest.mark.timeout(120)]

VALUE = load_execution_value("ur5e")
EMPTY = np.zeros(0)
MS = 1_000_000


class Cache:
    """Keeps the execution value as ``cache_manager`` does, and asks for calibrations."""

    def __init__(self, context: Any) -> None:
        self.node = rclpy.create_node("cache_manager", context=context)
        self.layer = ExecutionLayer()
        self.layer.begin("robot", VALUE)
        self.deaf = False
        out, updates = topics.EXECUTION_VALUE, topics.ENTRY_UPDATE
        self._out = self.node.create_publisher(out.type, out.name, out.profile())
        self.node.create_subscription(
            updates.type, updates.name, self._on_update, updates.profile()
        )
        service = topics.CALIBRATE_DRIVES
        self.client = self.node.create_client(service.type, service.name)

    @property
    def value(self) -> Any:
        return self.layer.value("robot")

    def publish(self) -> None:
        self._out.publish(execution_value_to_msg(self.value))

    def _on_update(self, message: Any) -> None:
        if self.deaf:
            return
        try:
            self.layer.replace("robot", entry_update_from_msg(message).execution)
        except StaleVersionError:
            return
        self.publish()


class Setting:
    """The monitor's node and the cache, each on an executor and thread of its own."""

    def __init__(self, context: Any, period: float) -> None:
        self.cache = Cache(context)
        self.monitor = FailureMonitorNode(
            context=context,
            parameter_overrides=[Parameter("calibration_period", value=period)],
        )
        self._executors, self._threads = [], []
        for node in (self.cache.node, self.monitor):
            executor = SingleThreadedExecutor(context=context)
            executor.add_node(node)
            self._executors.append(executor)
            self._threads.append(threading.Thread(target=executor.spin, daemon=True))
            self._threads[-1].start()

    def close(self) -> None:
        for executor in self._executors:  # nothing is destroyed that one of them still waits for
            executor.shutdown()
        for thread in self._threads:
            thread.join()
        self.monitor.shut_down("test ends")
        self.monitor.destroy_node()
        self.cache.node.destroy_node()

    def collect(self, rows: FloatArray, version: int) -> None:
        """Let the node see the motions that rows are made of; it is not active meanwhile."""
        collector, joints = self.monitor._collector, RobotModel.load("ur5e").joint_names
        assert collector is not None
        for number, row in enumerate(rows):
            at = 1000 * (number + 1)
            for moment in range(4):
                back = (10 * moment - 15) * 1e-3  # [s] before the drives' sample
                collector.take([self._motion(row, joints, version, at + 10 * moment, back)], 0.0)
                if moment == 1:
                    collector.take([self._drives(row, joints, at + 15)], 0.0)

    @staticmethod
    def _motion(
        row: FloatArray, joints: tuple[str, ...], version: int, ms: int, back: float
    ) -> ExecutionFeedback:
        told = feedback(ms)
        velocity = row[Column.VELOCITY] + back * row[Column.ACCELERATION]
        fields = {name: getattr(told, name) for name in told.__dataclass_fields__}
        fields.update(
            joints=joints,
            position=row[Column.POSITION] + back * row[Column.VELOCITY],
            velocity=velocity,
            execution_version=version,
        )
        return ExecutionFeedback(**fields)

    @staticmethod
    def _drives(row: FloatArray, joints: tuple[str, ...], ms: int) -> DriveSample:
        return DriveSample(
            joints, row[Column.TEMPERATURE], row[Column.CURRENT], EMPTY, EMPTY, EMPTY,
            np.zeros(len(joints), dtype=np.bool_), ms * MS, row[Column.VOLTAGE],
        )  # fmt: skip

    def ask(self, wait_until: Any) -> Any:
        assert self.cache.client.wait_for_service(timeout_sec=30.0)
        future = self.cache.client.call_async(topics.CALIBRATE_DRIVES.type.Request())
        wait_until(future.done, 30.0, "the answer")
        return future.result()


@pytest.fixture
def setting(ros: Any, request: pytest.FixtureRequest) -> Iterator[Setting]:
    setting = Setting(ros, request.param)
    yield setting
    setting.close()


@pytest.mark.parametrize("setting", [0.5], indirect=True)
def test_the_node_calibrates_by_itself(setting, wait_until):
    monitor, cache = setting.monitor, setting.cache
    monitor.trigger_configure()
    setting.collect(make_rows(RobotModel.load("ur5e"), VALUE, Truth(constant=0.9), 200), version=1)
    cache.publish()
    monitor.trigger_activate()
    wait_until(lambda: cache.value.version == 2, 30.0, "a calibration")
    assert cache.value.provenance.startswith("calibration: ")


@pytest.mark.parametrize("setting", [0.0], indirect=True)
def test_a_calibration_on_demand_from_refusals_to_a_value_that_the_cache_has(setting, wait_until):
    monitor, cache = setting.monitor, setting.cache
    monitor.trigger_configure()
    answer = setting.ask(wait_until)
    assert (answer.success, answer.message) == (
        False, "failure_monitor is not active: activate it first",
    )  # fmt: skip

    robot = RobotModel.load("ur5e")
    rows = make_rows(robot, VALUE, Truth(constant=0.9), count=300)
    setting.collect(rows, version=1)
    monitor.trigger_activate()
    answer = setting.ask(wait_until)
    assert not answer.success
    assert answer.message == "execution_value must have come from cache_manager, got none"

    cache.deaf = True
    cache.publish()
    refused = []

    def not_taken() -> bool:  # the value is on its way until it is not "none" any more
        refused[:] = [setting.ask(wait_until)]
        return "got none" not in refused[0].message

    wait_until(not_taken, 30.0, "the value's arrival")
    assert not refused[0].success
    assert "execution value 2, made from 1, was not taken by the cache within" in refused[0].message
    assert cache.value is VALUE

    # What was fitted is used up: the same motions once more, by an injector that has it in force.
    monitor.trigger_deactivate()
    setting.collect(rows, version=1)
    monitor.trigger_activate()
    cache.deaf = False
    answer = setting.ask(wait_until)
    assert answer.success, answer.message
    assert "execution value 2" in answer.message
    assert cache.value.version == 2
    assert cache.value.provenance.startswith("calibration: ")
    constant = cache.value.slots[:6, SLOT["torque_constant"]]
    np.testing.assert_allclose(constant, 0.9 * VALUE.slots[:6, SLOT["torque_constant"]], rtol=0.01)

    monitor.trigger_deactivate()
    setting.collect(rows[:20], version=1)
    monitor.trigger_activate()
    answer = setting.ask(wait_until)
    assert not answer.success
    assert "execution_version must be 2, which the cache keeps, while the injector has 1" in (
        answer.message
    )
    assert cache.value.version == 2

    monitor.trigger_deactivate()
    setting.collect(rows[:20], version=2)
    monitor.trigger_activate()
    answer = setting.ask(wait_until)
    assert not answer.success
    assert "40 rows fit no drive" in answer.message
    assert "(limit: at least 100)" in answer.message
    assert cache.value.version == 2
