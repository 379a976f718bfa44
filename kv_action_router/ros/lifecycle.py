"""Base of the five managed nodes: parameters, autostart, heartbeat, failure reports, loops.

A stage's ``node.py`` overrides four hooks. What ``configure_stage`` creates, ``cleanup_stage``
destroys; what ``activate_stage`` starts, ``deactivate_stage`` stops. An exception in a hook is
logged with its traceback, the transition fails, and the node lives in the state that it came from.
"""

from __future__ import annotations

import gc
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from lifecycle_msgs.msg import State
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn

from kv_action_router import realtime
from kv_action_router.configuration import Configuration, parameter
from kv_action_router.errors import ConfigError, RouterError
from kv_action_router.msg import DecisionHeader, FailureEvent
from kv_action_router.ros import parameters
from kv_action_router.ros.heartbeat import Heartbeat
from kv_action_router.ros.robot_identity import identified
from kv_action_router.ros.steady import steady_timer
from kv_action_router.ros.streams import DataPlane
from kv_action_router.ros.topics import FAILURE_EVENT, HEARTBEATS

C = TypeVar("C", bound=Configuration)

_SEVERITIES = {
    FailureEvent.SEVERITY_INFO: "info",
    FailureEvent.SEVERITY_WARNING: "warning",
    FailureEvent.SEVERITY_ERROR: "error",
    FailureEvent.SEVERITY_FATAL: "fatal",
}


class Loop(Protocol):
    """A thread that a stage runs while it is active."""

    def start(self) -> None:
        """Start the thread."""

    def stop(self) -> None:
        """Stop and join it."""

    def alive(self, now_ns: int) -> bool:
        """Return whether it has come round lately."""


class BeatingLoop(Loop, Protocol):
    """A loop that can do something small behind each of its rounds."""

    on_round: Callable[[int], None] | None


@dataclass(frozen=True)
class NodeConfig(Configuration):
    """Parameters that every managed node has."""

    autostart: bool = parameter(
        False, "configure and activate at start, without a lifecycle manager"
    )
    scheduling_priority: int = parameter(
        0, "SCHED_FIFO priority of the whole process; 0 = normal", minimum=0, maximum=98
    )
    heartbeat_priority: int = parameter(
        0, "SCHED_FIFO priority of the heartbeat's thread; 0 = the process's", minimum=0, maximum=98
    )


class StageNode(LifecycleNode, Generic[C]):
    """A managed node of the suite.

    Parameters: those of :class:`NodeConfig` and of the stage's own configuration.
    Publishers: ``heartbeat/<node>`` every 20 ms from configure on, ``failure_event``.

    Invariant: a data loop runs only while the node is active or on its way there or back.
    """

    def __init__(self, name: str, configuration: type[C], **arguments: Any) -> None:
        super().__init__(name, **arguments)
        self._configuration = configuration
        parameters.declare(self, NodeConfig)
        parameters.declare(self, configuration)
        parameters.guard_changes(self, configuration, lambda: self._plane is not None)
        self.config: C
        self._plane: DataPlane | None = None
        self._loops: list[Loop] = []
        self._heartbeat: Heartbeat | None = None
        self._state_id = State.PRIMARY_STATE_UNCONFIGURED
        self._counts: dict[tuple[int, str], int] = {}
        self._failure_publisher = self.create_publisher(
            FAILURE_EVENT.type, FAILURE_EVENT.name, FAILURE_EVENT.profile()
        )
        self._autostart_timer = steady_timer(self, 0.0, self._autostart)

    # --- hooks of a stage ----------------------------------------------------------------

    def configure_stage(self) -> None:
        """Create what the stage needs; raise to refuse."""

    def activate_stage(self) -> None:
        """Start working; raise to refuse."""

    def deactivate_stage(self) -> None:
        """Stop working. Data loops are stopped already."""

    def cleanup_stage(self) -> None:
        """Destroy what ``configure_stage`` created; must cope with half of it."""

    @property
    def epoch(self) -> int:
        """The injector's epoch that this node knows; goes out with the heartbeat."""
        return 0

    # --- services to a stage --------------------------------------------------------------

    @property
    def plane(self) -> DataPlane:
        """The polled subscriptions; exists from configure to clean-up."""
        if self._plane is None:
            raise RuntimeError(f"{self.get_name()} has no data plane before configure")
        return self._plane

    @property
    def is_active(self) -> bool:
        """Whether the node is in the primary state *active*."""
        return bool(self._state_id == State.PRIMARY_STATE_ACTIVE)

    def start_loop(self, loop: Loop) -> None:
        """Start a loop; it is stopped before ``deactivate_stage`` and watched by the heartbeat."""
        self._loops.append(loop)
        loop.start()

    def start_beating_loop(self, loop: BeatingLoop) -> None:
        """Start a loop that comes round every 20 ms at least, and sends the heartbeats too."""
        if self._heartbeat is not None:
            loop.on_round = self._heartbeat.beat
        self.start_loop(loop)

    def loop_failed(self, error: Exception) -> None:
        """``on_error`` of a data loop: say what happened and go on."""
        code = error.error_code if isinstance(error, RouterError) else 1
        self.report(code, f"{type(error).__name__}: {error}", detector="data_loop")
        if not isinstance(error, RouterError):
            self.get_logger().error(
                "".join(traceback.format_exception(error)), throttle_duration_sec=5.0
            )

    def report(
        self,
        error_code: int,
        message: str,
        *,
        severity: int = FailureEvent.SEVERITY_WARNING,
        source: str = "",
        detector: str = "",
        signal: str = "",
        value: float = float("nan"),
        limit: float = float("nan"),
        held: float = 0.0,
        response: str = "none",
        decision: DecisionHeader | None = None,
    ) -> None:
        """Publish a failure event, and log it at most once a second for each kind.

        Every call is published with its running count; repeats are only left out of the log.
        """
        key = (error_code, detector)
        self._counts[key] = self._counts.get(key, 0) + 1
        event = FailureEvent(
            error_code=error_code,
            error_msg=message,
            severity=severity,
            source=source or self.get_name(),
            detector=detector or self.get_name(),
            signal=signal,
            value=float(value),
            limit=float(limit),
            held=float(held),
            response=response,
            monotonic_ns=time.monotonic_ns(),
            count=self._counts[key],
        )
        if decision is not None:
            event.decision = decision
        event.decision.header.stamp = self.get_clock().now().to_msg()
        self._failure_publisher.publish(event)
        text = f"[{error_code}] {message} ({_SEVERITIES[severity]}, {event.count} so far)"
        logger = self.get_logger()
        if severity >= FailureEvent.SEVERITY_ERROR:
            logger.error(text, throttle_duration_sec=1.0)
        elif severity == FailureEvent.SEVERITY_WARNING:
            logger.warning(text, throttle_duration_sec=1.0)
        else:
            logger.info(text, throttle_duration_sec=1.0)

    # --- transitions ------------------------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load parameters, create the data plane and the stage."""
        return self._transition("configure", self._configure, State.PRIMARY_STATE_INACTIVE)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start the stage."""
        done = self._transition("activate", self._activate, State.PRIMARY_STATE_ACTIVE)
        if done != TransitionCallbackReturn.SUCCESS:
            return done
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop the stage."""
        done = self._transition("deactivate", self._deactivate, State.PRIMARY_STATE_INACTIVE)
        if done != TransitionCallbackReturn.SUCCESS:
            return done
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Destroy the stage and the data plane."""
        return self._transition("clean up", self._cleanup, State.PRIMARY_STATE_UNCONFIGURED)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Bring everything to an end from any state."""
        return self._transition("shut down", self._shut_down, State.PRIMARY_STATE_FINALIZED)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Go back to unconfigured, with nothing left over."""
        return self._transition("recover", self._shut_down, State.PRIMARY_STATE_UNCONFIGURED)

    def shut_down(self, reason: str) -> None:
        """End of the process: stop, leave the threads, destroy. Never raises."""
        self.get_logger().info(f"ends: {reason}")
        self._transition("shut down", self._shut_down, State.PRIMARY_STATE_FINALIZED)

    # --- inside -------------------------------------------------------------------------------

    def _transition(self, what: str, action: Any, target: int) -> TransitionCallbackReturn:
        try:
            action()
        except Exception as error:
            self.get_logger().error(f"cannot {what}: {error}\n{traceback.format_exc()}")
            code = error.error_code if isinstance(error, RouterError) else 1
            self.report(
                code,
                f"cannot {what}: {error}",
                severity=FailureEvent.SEVERITY_ERROR,
                detector="lifecycle",
            )
            return TransitionCallbackReturn.FAILURE
        self._state_id = target
        return TransitionCallbackReturn.SUCCESS

    def _configure(self) -> None:
        self.config = identified(self, parameters.load(self, self._configuration))
        refusal = realtime.schedule_process(parameters.load(self, NodeConfig).scheduling_priority)
        if refusal:
            self.get_logger().warning(refusal)
        self._plane = DataPlane(self)
        try:
            self.configure_stage()
        except Exception:
            self._cleanup()
            raise
        topic = HEARTBEATS.get(self.get_name())
        if topic is not None:
            self._heartbeat = Heartbeat(
                self,
                topic,
                state=lambda: (self._state_id, self.epoch),
                has_loops=lambda: bool(self._loops),
                hangs=self._hangs,
                on_error=self.loop_failed,
                priority=parameters.load(self, NodeConfig).heartbeat_priority,
            )
        effective = ", ".join(
            f"{name}={getattr(self.config, name)!r}" for name in self._configuration.parameters()
        )
        self.get_logger().info(f"configured: {effective}")

    def _activate(self) -> None:
        try:
            self.activate_stage()
        except Exception:
            self._deactivate()
            raise
        # What exists by now stays: no later collection has to walk through it.
        gc.collect()
        gc.freeze()

    def _deactivate(self) -> None:
        for loop in self._loops:
            loop.stop()
        self._loops.clear()
        self.deactivate_stage()

    def _cleanup(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.stop()
            self._heartbeat = None
        self.cleanup_stage()
        if self._plane is not None:
            self._plane.destroy()
            self._plane = None

    def _shut_down(self) -> None:
        if self._state_id == State.PRIMARY_STATE_ACTIVE:
            self._deactivate()
        if self._plane is not None:
            self._cleanup()

    def _hangs(self, now_ns: int) -> bool:
        return any(not loop.alive(now_ns) for loop in self._loops)

    def _autostart(self) -> None:
        self._autostart_timer.cancel()
        if self._state_id == State.PRIMARY_STATE_FINALIZED:
            return  # asked to end before it began
        try:
            wanted = parameters.load(self, NodeConfig).autostart
        except ConfigError as error:
            self.get_logger().error(f"does not start by itself: {error}")
            return
        if wanted and self.trigger_configure() == TransitionCallbackReturn.SUCCESS:
            self.trigger_activate()
