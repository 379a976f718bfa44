"""The node ``cache_manager``: a lifecycle shell around the cache manager.

Subscriptions: ``task_key``, ``task_state`` (wake the data loop), ``execution_feedback`` and
``/diagnostics`` (polled), ``obstacle_spheres`` (polled, by decisions alone), ``entry_update``
(executor).
Publishers: ``cache_match`` for every key, ``execution_value`` (latched, at activation and when it
changes), ``~/statistics`` (latched, 2 Hz), ``/diagnostics`` (1 Hz), ``failure_event``.
Services: ``ros/cache_services.py``.
Parameters: ``caching/config.py``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kv_action_router import contracts
from kv_action_router.caching.collision_guard import CollisionGuard
from kv_action_router.caching.config import CachingConfig
from kv_action_router.caching.decision_log import DecisionLog
from kv_action_router.caching.decisions import describe
from kv_action_router.caching.manager import CacheManager
from kv_action_router.caching.warmup import warm_up
from kv_action_router.errors import CachingError, RouterError, StaleVersionError
from kv_action_router.msg import EntryUpdate, FailureEvent
from kv_action_router.robots.execution_values import load_execution_value
from kv_action_router.robots.model import RobotModel
from kv_action_router.ros import topics
from kv_action_router.ros.bytes_publisher import BytesPublisher
from kv_action_router.ros.cache_reports import STATISTICS_PERIOD_S, CacheReports
from kv_action_router.ros.cache_services import CacheServices
from kv_action_router.ros.cache_store import StoredCache
from kv_action_router.ros.conversions import (
    entry_update_from_msg,
    execution_value_to_msg,
    task_state_from_msg,
)
from kv_action_router.ros.lifecycle import StageNode
from kv_action_router.ros.process import run
from kv_action_router.ros.steady import steady_timer
from kv_action_router.ros.streams import DataLoop
from kv_action_router.ros.wire import FeedbackGlance, KeyReader, MatchWriter, ObstacleReader

NAME = "cache_manager"
LOG_PERIOD_S = 0.2
LOG_LINES = 5  # decisions told in one period; more are only counted
FEEDBACK_PERIOD_NS = 50_000_000  # the injector's counters add up: reading them now and then will do
SWITCH_INTERVAL_S = 0.0005


class CacheManagerNode(StageNode[CachingConfig]):
    """Threads: the data loop answers keys; the executor serves updates, services and statistics.

    The two share no lock (see ``layers/slots.py``), so no service call stands before a decision.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(NAME, CachingConfig, **arguments)
        self._manager: CacheManager | None = None
        self._made: list[tuple[Callable[[Any], Any], Any]] = []
        self._key_reader, self._match_writer = KeyReader(), MatchWriter()
        self._feedback_reader = FeedbackGlance.reader()
        self._obstacle_reader = ObstacleReader()
        self._feedback_due_ns = 0
        self._epoch = 0

    @property
    def manager(self) -> CacheManager:
        """The cache; exists from configure to clean-up."""
        if self._manager is None:
            raise CachingError(f"{NAME} is not configured: there is no cache yet")
        return self._manager

    @property
    def epoch(self) -> int:
        """The injector's epoch that its newest feedback told."""
        return self._epoch

    # --- transitions ---

    def configure_stage(self) -> None:
        """Load the robot and what the cache held, subscribe, offer the services."""
        config = self.config
        model = RobotModel.load(config.robot, prefix=config.joint_prefix)
        execution = load_execution_value(
            config.execution_values or config.robot, prefix=config.joint_prefix
        )
        self._obstacles = self.plane.reader(topics.OBSTACLE_SPHERES, raw=True)
        guard = CollisionGuard(model, config, self._look_for_obstacles, time.monotonic_ns)
        self._manager = CacheManager(config, model, execution, [guard])
        size = self._manager.entries.largest_entry
        self.get_logger().info(
            f"room for {config.capacity} entries of at most {size} bytes: "
            f"at most {config.capacity * size / 1e6:.1f} MB"
        )
        self._stored = StoredCache(self, self._manager, config.store_path, config.robot_id)
        self._keep(StoredCache.close, self._stored)
        guard.warm_up()
        for match in warm_up(config, model):
            self._match_writer.write(match, 0)
        self._keys = self.plane.reader(topics.TASK_KEY, raw=True)
        self._tasks = self.plane.reader(topics.TASK_STATE)
        self._feedback = self.plane.reader(topics.EXECUTION_FEEDBACK, raw=True)
        self._matches = BytesPublisher(self, topics.CACHE_MATCH)
        self._keep(BytesPublisher.close, self._matches)
        self._execution_values = self._publisher(topics.EXECUTION_VALUE)
        self._reports = CacheReports(self, self._manager)
        self._keep(CacheReports.destroy, self._reports)
        updates = topics.ENTRY_UPDATE
        self._keep(
            self.destroy_subscription,
            self.create_subscription(
                updates.type, updates.name, self._on_update, updates.profile()
            ),
        )
        self._decision_log: DecisionLog | None = None
        if config.decision_log:
            self._decision_log = DecisionLog(Path(config.decision_log).expanduser())
            self._keep(DecisionLog.close, self._decision_log)
        services = CacheServices(self, self._manager, self._publish_execution_value)
        self._keep(CacheServices.destroy, services)

    def activate_stage(self) -> None:
        """Begin to answer keys."""
        self._feedback_due_ns = 0
        self._publish_execution_value()
        self._reports.publish()
        self._statistics_timer = steady_timer(self, STATISTICS_PERIOD_S, self._tell_statistics)
        self._log_timer = steady_timer(self, LOG_PERIOD_S, self._tell_decisions)
        self.start_beating_loop(
            DataLoop(
                self.plane, [self._keys, self._tasks], self._on_wake, self.loop_failed, name="keys"
            )
        )

    def deactivate_stage(self) -> None:
        """Stop telling; what was learned stays, and is written."""
        for name in ("_statistics_timer", "_log_timer"):
            timer = self.__dict__.pop(name, None)
            if timer is not None:
                self.destroy_timer(timer)
        self._stored.flush()

    def cleanup_stage(self) -> None:
        """Destroy what was made, and the cache; the readers go with the data plane."""
        for destroy, thing in reversed(self._made):
            destroy(thing)
        self._made.clear()
        self._manager = None

    def _publisher(self, topic: topics.Topic) -> Any:
        publisher = self.create_publisher(topic.type, topic.name, topic.profile())
        self._keep(self.destroy_publisher, publisher)
        return publisher

    def _keep(self, destroy: Callable[[Any], Any], thing: Any) -> None:
        self._made.append((destroy, thing))

    # --- data plane ---

    def _on_wake(self, now_ns: int) -> None:
        manager = self.manager
        if (state := self._tasks.take_newest()) is not None:
            manager.on_task_state(task_state_from_msg(state.message))
        if (sample := self._keys.take()) is not None:
            taken_ns = time.monotonic_ns()
            match = manager.on_key(self._key_reader.read(sample.message))
            self._matches.publish(self._match_writer.write(match, time.monotonic_ns()))
            manager.record_match_time(taken_ns, time.monotonic_ns())
        if state is not None:
            manager.prepare()
        if now_ns >= self._feedback_due_ns and (told := self._feedback.take()) is not None:
            self._feedback_due_ns = now_ns + FEEDBACK_PERIOD_NS
            glance = self._feedback_reader.read(told.message)
            assert glance is not None  # a feedback holds no sequence of messages
            self._epoch, ticks, confident = glance
            manager.on_execution(ticks, confident)

    def _look_for_obstacles(self) -> contracts.SeenObstacles | None:
        taken = self._obstacles.take()
        return None if taken is None else self._obstacle_reader.read(taken.message)

    # --- control plane ---

    def _on_update(self, message: EntryUpdate) -> None:
        try:
            update = entry_update_from_msg(message)
            self._log_decisions([], update)
            applied = self.manager.apply(update)
        except RouterError as error:
            stale = isinstance(error, StaleVersionError)
            self.report(
                error.error_code,
                f"entry update refused: {error}",
                severity=FailureEvent.SEVERITY_INFO if stale else FailureEvent.SEVERITY_WARNING,
                detector="entry_update",
                decision=message.decision,
            )
            return
        self.get_logger().info(applied.message)
        if applied.execution_changed:
            self._publish_execution_value()

    def _publish_execution_value(self) -> None:
        value = self.manager.execution_value()
        if value is not None:
            self._execution_values.publish(execution_value_to_msg(value))

    # The events executor still calls a timer that was destroyed while its event was queued: both
    # of its callbacks may come after the clean-up.

    def _tell_statistics(self) -> None:
        if self._manager is not None:
            self._reports.publish()
            self._stored.watch()

    def _tell_decisions(self) -> None:
        if self._manager is None:
            return
        decisions = self._manager.decisions()
        self._log_decisions(decisions)
        for match in decisions[-LOG_LINES:]:
            self.get_logger().info(describe(match))
        if len(decisions) > LOG_LINES:
            self.get_logger().info(f"and {len(decisions) - LOG_LINES} decisions before these")

    def _log_decisions(
        self, matches: Sequence[contracts.CacheMatch], update: contracts.EntryUpdate | None = None
    ) -> None:
        """Append to the decision log; the executor's work, far from the data plane."""
        log = self._decision_log
        if log is None:
            return
        try:
            for match in matches:
                log.note(match)
            if update is not None:
                log.end(update)
        except OSError as error:
            self.get_logger().warning(f"decisions are not logged any more: {error}")


def main() -> int:
    """Run the node as a process of its own."""
    # A key must not wait the default 5 ms for a service call that computes.
    return run(
        lambda: [CacheManagerNode()], prepare=lambda: sys.setswitchinterval(SWITCH_INTERVAL_S)
    )


if __name__ == "__main__":
    raise SystemExit(main())
