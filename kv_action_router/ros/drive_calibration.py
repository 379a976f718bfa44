"""Calibrates the drives now and then, and when somebody asks for it; the fits are pure modules."""

from __future__ import annotations

import math
import time

import numpy as np
from std_srvs.srv import Trigger

from kv_action_router.contracts import (
    KEY_SIZE,
    Decision,
    EntryUpdate,
    ExecutionValue,
    UpdateOperation,
)
from kv_action_router.errors import CalibrationError, RouterError
from kv_action_router.monitoring.calibration.calibration import CalibrationReport, DriveCalibration
from kv_action_router.monitoring.calibration.collector import NoLoadCollector
from kv_action_router.monitoring.config import MonitorConfig
from kv_action_router.msg import FailureEvent
from kv_action_router.robots.execution_values import load_execution_value
from kv_action_router.robots.model import RobotModel
from kv_action_router.ros import topics
from kv_action_router.ros.conversions import entry_update_to_msg, execution_value_from_msg
from kv_action_router.ros.lifecycle import StageNode
from kv_action_router.ros.steady import steady_timer

_LOOK_S = 1.0  # how often somebody looks whether a calibration is due
_ANSWER_S = 2.0  # within which the cache has taken a new value, or has not


class CalibratingDrives:
    """Offers ``~/calibrate_drives`` and calibrates by itself. Belongs to the executor's thread.

    A new value is made from the one that the cache keeps, provided that the injector has it in
    force, and goes the way of all that execution teaches: an ``entry_update``, compare-and-set on
    the version; the cache publishes what it has taken.

    Invariant: what is refused, here or by the cache, has changed nothing.
    """

    def __init__(
        self, node: StageNode[MonitorConfig], robot: RobotModel, collector: NoLoadCollector
    ) -> None:
        """Create service, timer, publisher and reader; the reader goes with the data plane.

        Args:
            node: that calibrates.
            robot: model of the arm, for this object alone.
            collector: of rows without load.

        Raises:
            ConfigError, InputError: the drives' data sheet is missing, or lacks a joint.
        """
        config = node.config
        self._node = node
        self._collector = collector
        sheet = load_execution_value(
            config.execution_values or config.robot, prefix=config.joint_prefix
        )
        self._calibration = DriveCalibration(robot, sheet)
        self._period = config.calibration_period
        self._due = time.monotonic() + self._period
        self._kept: ExecutionValue | None = None
        self._values = node.plane.reader(topics.EXECUTION_VALUE)
        update, service = topics.ENTRY_UPDATE, topics.CALIBRATE_DRIVES
        self._updates = node.create_publisher(update.type, update.name, update.profile())
        self._service = node.create_service(service.type, service.name, self._on_request)
        self._timer = None
        if self._period:
            self._timer = steady_timer(node, _LOOK_S, self._on_timer)

    def destroy(self) -> None:
        """Destroy what was created."""
        self._node.destroy_service(self._service)
        self._node.destroy_publisher(self._updates)
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
            self._timer = None

    # --- inside -------------------------------------------------------------------------------

    def _on_timer(self) -> None:
        if self._timer is None or not self._node.is_active or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + self._period
        try:
            self._calibrate()
        except RouterError as error:
            self._tell(str(error))

    def _on_request(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        try:
            if not self._node.is_active:
                raise CalibrationError(f"{self._node.get_name()} is not active: activate it first")
            response.message = self._calibrate()
            response.success = True
        except RouterError as error:
            response.message = str(error)
        return response

    def _calibrate(self) -> str:
        """Fit, send, wait for the cache's answer; return what was done, for people.

        Raises:
            RouterError: nothing was changed.
        """
        value = self._value_in_force()
        report = self._calibration.fit(self._collector.rows(), value)
        if not report.fitted:
            raise CalibrationError(f"{report.rows} rows fit no drive: {report}")
        self._collector.clear()
        if report.value is None:
            self._tell_refusals(report)
            return f"{report.fitted} drives fitted, nothing is new: {report}"
        self._updates.publish(entry_update_to_msg(self._update(report.value)))
        self._await(report.value)
        self._tell_refusals(report)
        done = f"{report.fitted} drives fitted, execution value {report.value.version}: {report}"
        self._node.get_logger().info(done)
        return done

    def _value_in_force(self) -> ExecutionValue:
        value = self._newest()
        if value is None:
            raise CalibrationError("execution_value must have come from cache_manager, got none")
        told = self._collector.execution_version
        if told != value.version:
            raise CalibrationError(
                f"execution_version must be {value.version}, which the cache keeps, while the"
                f" injector has {told} in force"
            )
        return value

    def _await(self, sent: ExecutionValue) -> None:
        until = time.monotonic() + _ANSWER_S
        while time.monotonic() < until:
            kept = self._newest()
            if kept is not None and kept.version >= sent.version:
                if kept.provenance == sent.provenance:
                    return
                break
            time.sleep(0.01)
        version = 0 if self._kept is None else self._kept.version
        raise CalibrationError(
            f"execution value {sent.version}, made from {sent.base_version}, was not taken by the"
            f" cache within {_ANSWER_S:g} s: it keeps {version}"
        )

    def _newest(self) -> ExecutionValue | None:
        taken = self._values.take_newest()
        if taken is not None:
            self._kept = execution_value_from_msg(taken.message)
        return self._kept

    def _update(self, value: ExecutionValue) -> EntryUpdate:
        return EntryUpdate(
            decision=Decision(),
            operation=UpdateOperation.EXECUTION,
            entry_id=0,
            entry_version=value.base_version,
            vector=np.zeros(KEY_SIZE, dtype=np.float32),
            behavior=None,
            execution=value,
            error=math.nan,
            false_hit=False,
            reason=value.provenance,
        )

    def _tell_refusals(self, report: CalibrationReport) -> None:
        refused = [str(fit) for fit in report.fits if fit.refusals]
        if refused:
            self._tell("; ".join(refused))

    def _tell(self, message: str) -> None:
        self._node.report(
            CalibrationError.error_code,
            message,
            severity=FailureEvent.SEVERITY_INFO,
            detector="calibration",
        )
