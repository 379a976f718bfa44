"""The cache manager without ROS: keys in, matches out; updates and questions beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from kv_action_router.caching.config import CachingConfig
from kv_action_router.caching.decisions import DecisionKeeper
from kv_action_router.caching.domains import Domains
from kv_action_router.caching.entries import EntryTable
from kv_action_router.caching.eviction import make_policy
from kv_action_router.caching.guards import (
    EmptyGuard,
    FiniteGuard,
    Guard,
    JointLimitGuard,
    JointModel,
    ReaderTrustGuard,
    StartStateGuard,
)
from kv_action_router.caching.index.choice import index_of
from kv_action_router.caching.inspection import Inspector
from kv_action_router.caching.invalidation import Invalidation, Invalidator
from kv_action_router.caching.key_index import prepare_key
from kv_action_router.caching.layers.behavior import BehaviorSize
from kv_action_router.caching.layers.execution import ExecutionLayer
from kv_action_router.caching.match import Answer, Matcher, Question
from kv_action_router.caching.occupancy import NOTHING
from kv_action_router.caching.statistics import CacheReport, LayerReport, Statistics
from kv_action_router.caching.store.persistence import Persistence
from kv_action_router.caching.updates import Applied, Updates
from kv_action_router.contracts import (
    CacheMatch,
    EntryUpdate,
    ExecutionValue,
    MissReason,
    TaskKey,
    TaskState,
)
from kv_action_router.errors import RouterError

REMEMBERED = 256  # removed entries whose reason is kept


class CacheManager:
    """Owner of the entries, and of the durable copy of execution values.

    Two sides: ``on_task_state``, ``on_key`` and ``on_execution`` belong to one thread, the data
    plane, and take no lock; all else may be called from any thread, one call at a time.
    """

    def __init__(
        self,
        config: CachingConfig,
        model: JointModel,
        execution: ExecutionValue | None = None,
        more_guards: Sequence[Guard] = (),
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Make an empty cache.

        Args:
            config: its parameters.
            model: joints and their limits, for the guards.
            execution: what the drives may do at activation, version 1; None = not known.
            more_guards: asked after the built-in ones (collision).
            clock: CLOCK_MONOTONIC [ns].
        """
        self.config = config
        self.domains = Domains(config.own_domain)
        size = BehaviorSize(
            config.maximum_coefficients,
            config.maximum_knots,
            config.maximum_dimensions,
            config.precision,
        )
        self.entries = EntryTable(
            config.capacity,
            size,
            make_policy(config.eviction),
            config.merge_threshold,
            index_of(config),
        )
        self.execution = ExecutionLayer()
        self.counted = Statistics()
        self.counted.of_task(config.own_domain)
        trust = ReaderTrustGuard(config.failure_limit)
        guards: list[Guard] = [
            EmptyGuard(),
            FiniteGuard(),
            JointLimitGuard(model),
            StartStateGuard(model, config.start_distance),
            trust,
            *more_guards,
        ]
        self._matcher = Matcher(config, self.entries, self.domains, guards)
        self._keeper = DecisionKeeper(
            config, self.entries, self.domains, self._matcher, self.counted
        )
        self._updates = Updates(
            config, self.entries, self.execution, self.domains, trust, self.counted
        )
        self._invalidator = Invalidator(
            self.entries, self.domains, self.counted, self.execution.go_back
        )
        self._searcher = self.entries.tasks.index.searcher()
        self.persistence = Persistence(self.entries, self.domains, self.execution, execution, clock)
        self._control = self.persistence.lock  # never taken by the data plane
        self.inspector = Inspector(self.entries, self.domains, self._control)
        self._clock = clock
        if execution is not None:
            self.execution.begin(config.own_domain, execution)

    # --- data plane: one thread, no lock ---

    def on_task_state(self, state: TaskState) -> None:
        """Take the newest task state."""
        self._keeper.on_task_state(state)

    def prepare(self) -> None:
        """Get ready for the decision that is asked for, if one is; call it when nothing waits."""
        self._keeper.prepare()

    def on_key(self, key: TaskKey) -> CacheMatch:
        """Answer a key; always, so that silence means that the manager is gone."""
        return self._keeper.on_key(key)

    def on_execution(self, ticks: int, confident_ticks: int) -> None:
        """Take the injector's counters from its newest feedback."""
        self.execution.count_ticks(self.config.own_domain, ticks, confident_ticks)

    def record_match_time(self, taken_ns: int, published_ns: int) -> None:
        """Note how long a match took, from the key's taking to its publication."""
        self.counted.match_times.record(published_ns, published_ns - taken_ns)

    # --- control plane ---

    def apply(self, update: EntryUpdate) -> Applied:
        """Apply what execution taught, by compare and set.

        Raises:
            RouterError: it was refused, counted, and has changed nothing else.
        """
        with self._control:
            try:
                refused = self._keeper.refused.get(update.decision.decision_id, ())
                applied = self._updates.apply(update, self._keeper.entry_in_force, refused)
            except RouterError:
                self.counted.updates_refused += 1
                raise
            if applied.evicted:
                self._remember([applied.evicted], "evicted, the cache was full")
            return applied

    @property
    def encoder_id(self) -> str:
        """Encoder of the newest key; empty = no key has come yet."""
        return self._keeper.encoder_id or ""

    def query(
        self,
        key: object,
        domain: str = "",
        intent_id: str = "",
        subtask: str = "",
        scene: str = "",
    ) -> Answer:
        """Return what a key would find, and why; changes and counts nothing.

        Args:
            key: 64 numbers.
            domain: that asks; empty = the robot's own.
            intent_id: empty = the active one.
            subtask: empty = any.
            scene: empty = that of the newest key.

        Raises:
            KeyInvalidError, DomainError: the question cannot be answered.
        """
        with self._control:
            vector = prepare_key(key)
            asker = self.domains.require(domain) if domain else self.domains.own
            task = self._keeper.task
            intent = intent_id or (task.decision.intent_id if task else "")
            scene = scene or self._keeper.scene
            if not intent:
                return Answer(
                    hit=False,
                    miss_reason=MissReason.NO_TASK,
                    reason="no task is active whose intent could be meant: name intent_id",
                    threshold=self.config.threshold_of(scene),
                    target_minimum=self.config.target_minimum,
                )
            question = Question(
                vector=vector,
                domain=asker,
                encoder_id=self._keeper.encoder_id,
                intent_id=intent,
                subtask=subtask or None,
                scene=scene,
                needs_target=None,
            )
            return self._matcher.match(question, self._searcher)

    def invalidate(self, request: Invalidation) -> int:
        """Throw entries away; return how many (of the execution layer: drives).

        Raises:
            InputError, DomainError, EntryNotFoundError: refused, nothing was changed.
        """
        with self._control:
            done = self._invalidator.apply(request)
            if isinstance(done, int):
                return done
            self._remember(done, request.reason.strip())
            return len(done)

    def set_isolation(self, owner: str, reader: str, *, isolated: bool) -> list[str]:
        """Share a domain's entries with a reader, or take that back; return the grants in force.

        Raises:
            DomainError: a name is not one or not known, or there is no such grant.
        """
        with self._control:
            if isolated:
                self.domains.revoke(owner, reader)
            else:
                self.domains.share(owner, reader)
            return self.domains.listed()

    def execution_value(self) -> ExecutionValue | None:
        """Return what the robot's drives may do, as far as is known."""
        return self.execution.value(self.config.own_domain)

    def decisions(self) -> list[CacheMatch]:
        """Return the decisions since the last call, oldest first."""
        log = self._keeper.log
        return [log.popleft() for _ in range(len(log))]

    def statistics(self) -> CacheReport:
        """Return all counters, a report a layer and domain."""
        with self._control:
            capacity = self.entries.tasks.capacity
            occupancy = self.entries.occupancy()
            layers: list[LayerReport] = []
            for domain in sorted({*self.counted.task, *self.domains.known}):
                held = occupancy.get(domain, NOTHING)
                for layer, counters, count, doubtful in (
                    ("task", self.counted.of_task(domain), held.tasks, held.not_confident),
                    ("behavior", self.counted.of_behavior(domain), held.behaviors, 0),
                ):
                    layers.append(
                        LayerReport(layer, domain, count, capacity, doubtful, counters.frozen())
                    )
            layers += [self._execution_report(domain) for domain in self.execution.domains()]
            return CacheReport(
                tuple(layers),
                self.counted.keys,
                self.counted.keys_refused,
                self.counted.updates_refused,
                *self.counted.match_times.summary(self._clock()),
                self.persistence.report(),
            )

    # --- inside ---

    def _execution_report(self, domain: str) -> LayerReport:
        value = self.execution.value(domain)
        ticks = self.execution.ticks(domain)
        counters = self.counted.of_execution(domain).frozen()
        counters.decisions, counters.hits = ticks.ticks, ticks.confident
        return LayerReport(
            "execution",
            domain,
            len(value.drives) if value else 0,
            self.execution.capacity,
            int((~value.confident).sum()) if value else 0,
            counters,
        )

    def _remember(self, entry_ids: Sequence[int], reason: str) -> None:
        removed = self._keeper.removed
        for entry_id in entry_ids[-REMEMBERED:]:
            removed[entry_id] = reason
        while len(removed) > REMEMBERED:
            removed.pop(next(iter(removed)))
