"""The node ``failure_monitor``: a lifecycle shell around the failure monitor.

Subscriptions (polled): ``execution_feedback``, ``wrench``, ``drive_state``, ``task_state``,
``stop``, ``heartbeat/<node>`` of the other nodes; now and then ``task_key``, ``cache_match``,
``obstacle_spheres`` and ``cache_manager/statistics``.
DDS events: deadline, liveliness and incompatible profiles of these and of ``trajectory_chunk``.
Publishers: ``failure_event``, ``condition``, ``stop`` (engages only), ``/diagnostics`` at 1 Hz.
Service: ``~/calibrate_drives`` (``ros/drive_calibration.py``, with the timer, ``execution_value``
and ``entry_update``).
Clients: ``cache_manager/invalidate``, ``behavior_synthesizer/interrupt``, ``resume`` and
``limit_speed``; called without waiting.
Parameters: ``monitoring/config.py``.
"""

from __future__ import annotations

import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from threadpoolctl import threadpool_limits

from kv_action_router.errors import ResponseError
from kv_action_router.monitoring.calibration.collector import (
    SHORTEST_WINDOW,
    WINDOW,
    NoLoadCollector,
)
from kv_action_router.monitoring.catalog import StageCatalog
from kv_action_router.monitoring.config import MonitorConfig
from kv_action_router.monitoring.detectors.proximity import ArmOutline
from kv_action_router.monitoring.expectation import PRODUCERS
from kv_action_router.monitoring.monitor import FailureMonitor
from kv_action_router.robots.model import RobotModel
from kv_action_router.ros import topics
from kv_action_router.ros.conversions import condition_to_msg
from kv_action_router.ros.conversions.failure import report_to_msg
from kv_action_router.ros.diagnostics import signals, statuses
from kv_action_router.ros.drive_calibration import CalibratingDrives
from kv_action_router.ros.lifecycle import StageNode
from kv_action_router.ros.monitor_streams import MonitorStreams
from kv_action_router.ros.periodic import PeriodicThread
from kv_action_router.ros.process import run
from kv_action_router.ros.responses import Responder
from kv_action_router.ros.topics import Topic
from kv_action_router.tasks.rule_file import default_table, load_rules
from kv_action_router.tasks.rules import Severity

NAME = "failure_monitor"
WATCHED_NODES = tuple(node for node in topics.NODES if node != NAME)

_DIAGNOSTICS_PERIOD_NS = 1_000_000_000


class FailureMonitorNode(StageNode[MonitorConfig]):
    """Threads: the data loop owns the monitor and all that it reads; the executor has the rest."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(NAME, MonitorConfig, **arguments)
        self._monitor: FailureMonitor | None = None
        self._responder: Responder | None = None
        self._collector: NoLoadCollector | None = None
        self._calibrating: CalibratingDrives | None = None
        self._publishers_made: list[Any] = []
        self._streams: MonitorStreams | None = None
        self._diagnostics_due_ns = 0

    # --- transitions --------------------------------------------------------------------------

    def configure_stage(self) -> None:
        """Read the response table, load the robot, subscribe to everything."""
        threadpool_limits(1)  # more BLAS threads turn small products into spikes of milliseconds
        rules = load_rules(self.config.conditions_file or default_table())
        leases = {topics.HEARTBEATS[node].name: (node,) for node in WATCHED_NODES}
        self._streams = streams = MonitorStreams(self.plane, WATCHED_NODES, self.loop_failed)
        self._monitor = FailureMonitor(
            rules,
            StageCatalog(self.loop_failed).find,
            nodes=WATCHED_NODES,
            config=self.config,
            producers={**PRODUCERS, **leases},
            topics=streams.watched,
            arm=_outline(self.config),
            tool=_robot(self.config),
        )
        self._condition = self._publisher(topics.CONDITION)
        self._diagnostics = self._publisher(topics.DIAGNOSTICS)
        self._responder = Responder(
            self,
            rules=rules,
            timeout_s=self.config.response_timeout,
            entry_in_force=streams.entry_in_force,
            on_failure=self._response_failed,
        )
        if (robot := _robot(self.config)) is not None:
            window = max(self.config.calibration_period or WINDOW, SHORTEST_WINDOW)
            self._collector = NoLoadCollector(robot.joint_names, self.config.contact_force, window)
            self._calibrating = CalibratingDrives(self, robot, self._collector)

    def activate_stage(self) -> None:
        """Begin to watch; nothing is known of the time before but what is latched."""
        assert self._monitor is not None
        assert self._streams is not None
        self._monitor.reset()
        if self._collector is not None:
            self._collector.reset()
        self._streams.restart()
        self._diagnostics_due_ns = 0
        self.start_beating_loop(
            PeriodicThread(self.config.poll_period, self._on_wake, self.loop_failed, name="monitor")
        )

    def cleanup_stage(self) -> None:
        """Destroy publishers and clients; the readers go with the data plane."""
        if self._streams is not None:
            self._streams.destroy()
        if self._responder is not None:
            self._responder.destroy()
            self._responder = None
        if self._calibrating is not None:
            self._calibrating.destroy()
            self._calibrating = None
        for publisher in self._publishers_made:
            self.destroy_publisher(publisher)
        self._publishers_made.clear()
        self._streams = self._monitor = self._collector = None

    def _publisher(self, topic: Topic) -> Any:
        publisher = self.create_publisher(topic.type, topic.name, topic.profile())
        self._publishers_made.append(publisher)
        return publisher

    # --- data loop ------------------------------------------------------------------------------

    def _on_wake(self) -> None:
        assert self._monitor is not None
        assert self._streams is not None
        assert self._responder is not None
        now_ns = time.monotonic_ns()
        samples = self._streams.take(now_ns)
        now_ns = time.monotonic_ns()  # no sample that was taken is of the future
        verdict = self._monitor.update(now_ns, samples)
        if self._collector is not None:
            self._collector.take(samples, self._monitor.table.value("wrench_force", now_ns))
        for report in verdict.responses:
            self._responder.respond(report)
        for request in verdict.requests:
            self._responder.request(request)
        for condition in verdict.conditions:
            message = condition_to_msg(condition)
            message.header.stamp = self.get_clock().now().to_msg()
            self._condition.publish(message)
        for report in verdict.reports:
            self._failure_publisher.publish(report_to_msg(report))
            self._say(report.severity, report.error_code, report.message)
        self._responder.poll(now_ns)
        if now_ns >= self._diagnostics_due_ns:
            self._diagnostics_due_ns = now_ns + _DIAGNOSTICS_PERIOD_NS
            self._publish_diagnostics(now_ns)

    def _publish_diagnostics(self, now_ns: int) -> None:
        assert self._monitor is not None
        array = DiagnosticArray()
        array.header.stamp = self.get_clock().now().to_msg()
        name = self.get_fully_qualified_name()
        array.status = [
            *statuses(self._monitor.status(), name),
            signals(self._monitor.values(now_ns), self._monitor.stages.describe(), name),
        ]
        self._diagnostics.publish(array)

    def _response_failed(self, message: str) -> None:
        code = ResponseError.error_code
        self.report(code, message, severity=Severity.ERROR, detector="response")

    def _say(self, severity: Severity, code: int, message: str) -> None:
        logger = self.get_logger()
        text = f"[{code}] {message}"
        if severity >= Severity.ERROR:
            logger.error(text)
        elif severity == Severity.WARNING:
            logger.warning(text)
        else:
            logger.info(text)


def _outline(config: MonitorConfig) -> ArmOutline | None:
    """Return the arm whose distance from obstacles is judged; None = none."""
    model = _robot(config)
    return None if model is None else ArmOutline.of(model, config.tool_links)


def _robot(config: MonitorConfig) -> RobotModel | None:
    """Return a model of the robot; None = it is not told."""
    if not config.robot:
        return None
    return RobotModel.load(config.robot, prefix=config.joint_prefix)


def main(arguments: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM."""
    return run(lambda: [FailureMonitorNode()], arguments)
