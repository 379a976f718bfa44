"""The node ``actuator_injector``: a lifecycle shell around the injection controller.

Subscriptions (polled by the control loop): ``joint_states``, ``trajectory_chunk``, ``stop``,
``drive_state``, ``imu``, ``execution_value``, ``heartbeat/<node>`` of the other nodes.
Publishers: the output's command topic, ``execution_feedback`` at 100 Hz and on events, ``horn``,
``entry_update`` (execution values that the drives' feedback changed), ``stop``, ``failure_event``,
``actuator_injector/loop_statistics`` at 2 Hz.
Service: ``~/release_stop``. Parameters: ``injection/config.py``.
"""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from std_msgs.msg import Bool
from std_srvs.srv import Trigger

from kv_action_router import realtime
from kv_action_router.contracts import InjectorEvent, InjectorState
from kv_action_router.errors import OutputError
from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.controller import InjectionController
from kv_action_router.injection.events import Event
from kv_action_router.injection.feedback import FeedbackTeller
from kv_action_router.injection.loop import DeadlineLoop
from kv_action_router.injection.signals import Command
from kv_action_router.injection.stop_latch import StopRequest
from kv_action_router.injection.warm_up import warm_up
from kv_action_router.msg import FailureEvent, Stop
from kv_action_router.robots.execution_values import load_execution_value
from kv_action_router.robots.model import RobotModel
from kv_action_router.ros import parameters, topics
from kv_action_router.ros.injector_commands import CommandSender
from kv_action_router.ros.injector_feedback import FeedbackPublisher
from kv_action_router.ros.injector_inputs import InjectorInputs
from kv_action_router.ros.injector_reports import InjectorReports
from kv_action_router.ros.lifecycle import NodeConfig, StageNode
from kv_action_router.ros.periodic import PeriodicThread
from kv_action_router.ros.process import run
from kv_action_router.tasks.rule_file import default_table, load_rules
from kv_action_router.tasks.rules import execution_rules

NAME = "actuator_injector"
_FEEDBACK_PERIOD_NS = 10_000_000
_REPORT_PERIOD_S = 0.02
_WATCH_ROUNDS = 3
_STATISTICS_ROUNDS = 25
_REST_S = 1.0  # longest wait for the arm to come to rest before commands end
_ANSWER_S = 0.2  # longest wait for the control loop to answer a service


class ActuatorInjectorNode(StageNode[InjectionConfig]):
    """Threads: the control loop owns the controller; the executor serves everything slow.

    They share no lock: events go out through a deque, stops and requests come in through another or
    a flag. Invariant: commands are published by the control loop only, and only while the node is
    active.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(NAME, InjectionConfig, **arguments)
        self._controller: InjectionController | None = None
        self._loop: DeadlineLoop | None = None
        self._closing: list[Callable[[], Any]] = []
        self._reports: InjectorReports | None = None
        self._told: deque[Event] = deque(maxlen=512)
        self._unreadable: deque[tuple[str, str]] = deque(maxlen=64)
        self._own_stops: deque[StopRequest] = deque(maxlen=8)
        self._feedback_due_ns = 0

    @property
    def epoch(self) -> int:
        """The epoch in force."""
        return 0 if self._controller is None else self._controller.epoch

    # --- transitions ---------------------------------------------------------------------------

    def configure_stage(self) -> None:
        """Load the robot, make the controller, subscribe, prepare all messages."""
        config = self.config
        if self.get_parameter("use_sim_time").value:
            # Stamps of a simulation that runs slower than time fall behind without any delay.
            config = dataclasses.replace(config, joint_state_delay=0.0)
        model = RobotModel.load(config.robot, prefix=config.joint_prefix)
        values = load_execution_value(
            config.execution_values or config.robot, prefix=config.joint_prefix
        )
        warm_up(model, config, values)
        # Epochs of an earlier process are lower, so that none of its chunks can come back to life.
        self._controller = InjectionController(
            model,
            config,
            values,
            epoch=time.monotonic_ns() // 100_000_000,
            rules=execution_rules(load_rules(config.conditions_file or default_table())),
        )
        self._inputs = InjectorInputs(self.plane, [name for name in config.watched_nodes if name])
        self._sender = CommandSender(self, config, model.joint_names)
        self._closing.append(self._sender.destroy)
        self._warned = ""
        self._feedback = FeedbackPublisher(self)
        self._closing.append(self._feedback.close)
        self._horn = self._make_publisher(topics.HORN)
        self._stop = self._make_publisher(topics.STOP)
        self._teller = FeedbackTeller(self._controller, config.robot_id)
        service = self.create_service(Trigger, "~/release_stop", self._on_release)
        self._closing.append(lambda: self.destroy_service(service))
        self._reports = InjectorReports(self)
        self._closing.append(self._reports.destroy)
        self._go_realtime()
        if config.dry_run:
            self.get_logger().warning("dry run: everything is computed, no command is published")

    def activate_stage(self) -> None:
        """Start the control loop: it holds what it measures."""
        config = self.config
        controller = self._active_controller()
        priority = parameters.load(self, NodeConfig).scheduling_priority
        self._loop = loop = DeadlineLoop(
            config.period_ns,
            self._tick,
            self._tick_failed,
            priority=priority + config.loop_priority if priority else 0,
            before_stop=self._come_to_rest,
        )
        realtime.rest_garbage()
        controller.activate(time.monotonic_ns())
        self._feedback_due_ns = 0
        self.start_loop(loop)
        self._rounds = 0
        self.start_beating_loop(
            PeriodicThread(_REPORT_PERIOD_S, self._keep_house, self._tick_failed, name="reports")
        )

    def deactivate_stage(self) -> None:
        """The arm rests and commands have ended: tell the last events."""
        self._report_events()
        if self._loop is not None and self._controller is not None:
            self._controller.modes.state = InjectorState.INACTIVE
            now = time.monotonic_ns()
            self._feedback.publish(self._teller.periodic(now, self._loop.meter))
            self._report_lateness()
            self._loop = None
        realtime.resume_garbage()

    def cleanup_stage(self) -> None:
        """Destroy publishers and service; readers go with the plane."""
        for close in reversed(self._closing):
            close()
        self._closing.clear()
        self._reports = self._controller = None

    # --- control loop --------------------------------------------------------------------------

    def _tick(self, now_ns: int) -> None:
        controller, loop = self._active_controller(), self._loop
        assert loop is not None
        inputs = self._inputs.poll(now_ns)
        while self._own_stops:
            inputs.stops.append(self._own_stops.popleft())
        if self._inputs.malformed:
            self._pass_on_malformed(controller, now_ns)
        command = controller.tick(now_ns, inputs)
        if command.send:
            self._send(command, controller)
        for output in command.auxiliary:
            if output.name == "horn":
                self._horn.publish(Bool(data=output.value > 0.5))
            else:
                self._unreadable.append(("auxiliary", f"no output {output.name!r}; there is horn"))
        events = controller.modes.events
        while events:
            event = events.popleft()
            self._feedback.publish(self._teller.event(event, loop.meter))
            if event.kind is InjectorEvent.CHUNK_ADOPTED:  # tells all that a periodic one would
                self._feedback_due_ns = now_ns + _FEEDBACK_PERIOD_NS
            self._told.append(event)
        if now_ns >= self._feedback_due_ns:
            due = max(self._feedback_due_ns, now_ns - _FEEDBACK_PERIOD_NS)
            self._feedback_due_ns = due + _FEEDBACK_PERIOD_NS
            self._feedback.publish(self._teller.periodic(now_ns, loop.meter))

    def _send(self, command: Command, controller: InjectionController) -> None:
        now = time.monotonic_ns()
        if command.adopting is not None and now > command.publish_before_ns:
            command = controller.withdraw(now)
            if not command.send:
                return
        if not self.config.dry_run:
            controller.sent(self._sender.send(command.values))

    def _pass_on_malformed(self, controller: InjectionController, now_ns: int) -> None:
        for topic, why in self._inputs.malformed:
            if topic == topics.TRAJECTORY_CHUNK.name:
                controller.malformed(why, now_ns)
            else:
                self._unreadable.append((topic, why))
        self._inputs.malformed.clear()

    def _tick_failed(self, error: Exception) -> None:
        """No command went out in this tick; if that goes on, the drives brake by themselves."""
        self._unreadable.append(("tick", f"{type(error).__name__}: {error}"))

    # --- beside the loop -------------------------------------------------------------------------

    def _keep_house(self) -> None:
        self._rounds += 1
        self._report_events()
        if self._rounds % _WATCH_ROUNDS == 0:
            self._watch_commands()
        if self._rounds % _STATISTICS_ROUNDS == 0:
            self._report_lateness()

    def _report_events(self) -> None:
        while self._reports is not None and self._told:
            self._reports.tell(self._told.popleft())
        while self._reports is not None and self._unreadable:
            self._reports.malformed([self._unreadable.popleft()])

    def _report_lateness(self) -> None:
        if self._reports is not None and self._loop is not None and self._controller is not None:
            self._reports.lateness(self._loop.meter, self._controller.counters.ticks)

    def _watch_commands(self) -> None:
        finding = self._sender.watch.look()
        if finding.foreign and not self._active_controller().modes.stop.engaged:
            reason = f"{finding.foreign} publishes on {self._sender.topic} too"
            now = time.monotonic_ns()
            self._own_stops.append(StopRequest(True, NAME, reason, now))
            self._publish_stop(engaged=True, reason=reason, now_ns=now)
            self.report(
                OutputError.error_code,
                reason,
                severity=FailureEvent.SEVERITY_FATAL,
                source=finding.foreign,
                detector="foreign_publisher",
                response="brake",
            )
        trouble = "" if self.config.dry_run else finding.trouble
        if trouble and trouble != self._warned:
            self.report(OutputError.error_code, trouble, detector="command_subscriber")
        self._warned = trouble

    def _publish_stop(self, *, engaged: bool, reason: str, now_ns: int) -> None:
        message = Stop(engaged=engaged, source=NAME, reason=reason, monotonic_ns=now_ns)
        message.header.stamp = self.get_clock().now().to_msg()
        self._stop.publish(message)

    def _on_release(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if not self.is_active or self._loop is None:
            response.message = f"{NAME} is not active: activate it first"
            return response
        modes = self._active_controller().modes
        engaged = modes.stop.engaged
        modes.ask_release()
        until = time.monotonic() + _ANSWER_S
        while modes.release_answer is None and time.monotonic() < until:
            time.sleep(0.001)
        silence = (False, "the control loop did not answer")
        response.success, response.message = modes.release_answer or silence
        if response.success and engaged:
            self._publish_stop(engaged=False, reason="released", now_ns=time.monotonic_ns())
        return response

    def _come_to_rest(self) -> None:
        """Brake before commands end."""
        controller, loop = self._active_controller(), self._loop
        controller.modes.come_to_rest()
        until = time.monotonic() + _REST_S
        ticks = controller.counters.ticks
        while time.monotonic() < until and loop is not None and loop.alive(time.monotonic_ns()):
            if controller.counters.ticks > ticks and controller.modes.resting:
                return
            time.sleep(0.01)
        self.get_logger().warning(f"the arm did not come to rest within {_REST_S} s")

    def _go_realtime(self) -> None:
        config = self.config
        priority = parameters.load(self, NodeConfig).scheduling_priority
        lines = [realtime.set_affinity(config.cpu_affinity)]
        if priority and config.lock_memory:
            lines.append(realtime.lock_memory())
        for line in filter(None, lines):
            self.get_logger().warning(line)

    def _make_publisher(self, topic: topics.Topic) -> Any:
        publisher = self.create_publisher(topic.type, topic.name, topic.profile())
        self._closing.append(lambda: self.destroy_publisher(publisher))
        return publisher

    def _active_controller(self) -> InjectionController:
        if self._controller is None:
            raise OutputError(f"{NAME} is not configured")
        return self._controller


def main(arguments: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM; return the exit code."""
    return run(lambda: [ActuatorInjectorNode()], arguments)


if __name__ == "__main__":
    raise SystemExit(main())
