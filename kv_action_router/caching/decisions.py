"""Decisions and refreshes: which key answers what the task asks for, and what later keys add."""

from __future__ import annotations

import dataclasses
from collections import deque

import numpy as np

from kv_action_router.caching.config import CachingConfig
from kv_action_router.caching.domains import Domains
from kv_action_router.caching.entries import EntryTable
from kv_action_router.caching.key_index import prepare_key
from kv_action_router.caching.likeness import UNLIKE_ANY, Gauge, Likeness, is_plain_key
from kv_action_router.caching.match import Answer, Matcher, Question
from kv_action_router.caching.outcome import Outcome, describe, match_of
from kv_action_router.caching.statistics import Statistics
from kv_action_router.contracts import (
    KEY_SIZE,
    CacheMatch,
    Float32Array,
    MissReason,
    TaskKey,
    TaskState,
    TaskStatus,
    Trigger,
)
from kv_action_router.errors import KeyInvalidError

__all__ = ["DecisionKeeper", "Outcome", "describe"]

ACTIVE = frozenset({TaskStatus.RUNNING, TaskStatus.INTERRUPTED, TaskStatus.STOPPING})
LOG_LENGTH = 64
DECISIONS_REMEMBERED = 16  # a replan is inserted when its stage has ended, a few decisions later
_NO_TASK = "no task is active"
_NO_TASK_REASON = MissReason.NO_TASK  # looked up once, not at every key


class DecisionKeeper:
    """The data plane of the cache: every key gets a match.

    Invariant: each decision of a task is answered once, by the first key that may; until the next
    is answered, all matches carry its outcome. ``on_key`` belongs to one thread.
    """

    def __init__(
        self,
        config: CachingConfig,
        entries: EntryTable,
        domains: Domains,
        matcher: Matcher,
        statistics: Statistics,
    ) -> None:
        self._config = config
        self._entries = entries
        self._domains = domains
        self._matcher = matcher
        self._statistics = statistics
        self._searcher = entries.tasks.index.searcher()
        self._task: TaskState | None = None
        self._key: TaskKey | None = None  # the newest that is one
        self._outcome: Outcome | None = None
        self._no_task = _NO_TASK  # why no decision can be asked for
        self._gauge = Gauge()
        self._nothing_about = ("", "", "", config.own_domain, "", _NO_TASK_REASON, _NO_TASK)
        self._nothing = self._no_outcome(*self._nothing_about)
        self._waited_for_target = (-1, "")
        self._sequence = 0
        self.removed: dict[int, str] = {}  # entry -> why; the newest, kept by the manager
        self.refused: dict[int, tuple[int, ...]] = {}  # decision -> entries that guards refused
        self.encoder_id: str | None = None  # of the newest key
        self.log: deque[CacheMatch] = deque(maxlen=LOG_LENGTH)  # decisions, for whoever writes logs

    @property
    def task(self) -> TaskState | None:
        """The task under way, or None."""
        return self._task

    @property
    def scene(self) -> str:
        """Scene of the newest key, else the configured one."""
        return self._scene(self._key) if self._key is not None else self._config.scene

    @property
    def entry_in_force(self) -> int:
        """Entry whose behavior is being executed; 0 = none."""
        outcome = self._outcome
        return outcome.answer.entry_id if outcome is not None and outcome.answer.hit else 0

    def on_task_state(self, state: TaskState) -> None:
        """Take the newest task state."""
        self._task = state if state.status in ACTIVE else None
        self._no_task = f"task {state.task} asks for no decision" if self._task else _NO_TASK

    def on_key(self, key: TaskKey) -> CacheMatch:
        """Answer a key: the decision that is asked for, or a refresh of the one in force."""
        self._statistics.keys += 1
        task, vector = self._task, key.vector
        if not is_plain_key(vector):
            try:
                vector = prepare_key(vector)
            except KeyInvalidError as error:
                return self._refuse(key, task, str(error))
        self.encoder_id = key.decision.encoder_id
        self._key = key
        if task is None or task.decision.decision_id == 0:
            self._outcome = None
            return self._without_answer(key, None, _NO_TASK_REASON, self._no_task)
        outcome = self._outcome
        if outcome is not None and outcome.goal_id != task.goal_id:
            outcome = self._outcome = None
        if outcome is None or outcome.decision_id != task.decision.decision_id:
            why_not = self._waits_for(task, key)
            if not why_not:
                return self._decide(task, key, prepare_key(vector))
            if outcome is None:
                return self._without_answer(key, task, MissReason.NO_TARGET, why_not)
        return self._refresh(outcome, key, vector)

    def prepare(self) -> None:
        """Look at what the decision that is asked for will likely find, as the newest key would.

        Changes nothing but what guards remember: the dearest of them has its verdict then when the
        key comes that decides.
        """
        task, key, outcome = self._task, self._key, self._outcome
        if task is None or key is None or task.decision.decision_id == 0:
            return
        asked = task.goal_id, task.decision.decision_id
        if outcome is not None and (outcome.goal_id, outcome.decision_id) == asked:
            return
        if not (task.needs_target and key.target is None):
            self._matcher.match(self._question(task, key, prepare_key(key.vector)), self._searcher)

    # --- inside ---

    def _refuse(self, key: TaskKey, task: TaskState | None, why: str) -> CacheMatch:
        """Answer a key that is none; it goes no further."""
        self._statistics.keys_refused += 1
        if task is not None:
            self._statistics.of_task(self._domain(key)).misses_invalid_key += 1
        key = dataclasses.replace(key, vector=np.zeros(KEY_SIZE, dtype=np.float32))
        return self._without_answer(key, task, MissReason.INVALID_KEY, why)

    def _waits_for(self, task: TaskState, key: TaskKey) -> str:
        """Return what keeps this key from answering the task's decision; empty = nothing."""
        if task.needs_image:
            name = f"decision {task.decision.decision_id}"
            if key.trigger != Trigger.IMAGE:
                return f"{name} waits for a key from an image"
            age = task.requested_monotonic_ns - key.decision.trigger_monotonic_ns
            if age >= 0:
                late = f"{age / 1e6:.1f} ms older"
                return f"{name} waits for an image newer than its request, this one is {late}"
        if task.needs_target and key.target is None:
            if self._waited_for_target != (task.decision.decision_id, task.goal_id):
                self._waited_for_target = (task.decision.decision_id, task.goal_id)
                self._statistics.of_task(self._domain(key)).misses_no_target += 1
            sight = key.target_sight.name.lower().replace("_", " ")
            name = f"decision {task.decision.decision_id}"
            return f"{name} waits for the target to be seen, the newest image says: {sight}"
        return ""

    def _question(self, task: TaskState, key: TaskKey, vector: Float32Array) -> Question:
        return Question(
            vector=vector,
            domain=self._domain(key),
            encoder_id=key.decision.encoder_id,
            intent_id=task.decision.intent_id,
            subtask=task.subtask,
            scene=self._scene(key),
            needs_target=task.needs_target,
            joints=key.joints,
            target=key.target,
            allowed_contact=task.allowed_contact,
        )

    def _decide(self, task: TaskState, key: TaskKey, vector: Float32Array) -> CacheMatch:
        domain = self._domain(key)
        answer = self._matcher.match(self._question(task, key, vector), self._searcher)
        self._entries.decisions += 1
        counters = self._statistics.of_task(domain)
        counters.decisions += 1
        if answer.hit:
            counters.hits += 1
            self._entries.touch(answer.slot)
            self._statistics.of_behavior(domain).decisions += 1
        else:
            counters.count_miss(answer.miss_reason)
        outcome = Outcome(
            task.goal_id,
            task.decision.decision_id,
            domain,
            task.decision.intent_id,
            task.subtask,
            answer,
        )
        self._outcome = outcome
        if answer.refused:
            self.refused[outcome.decision_id] = answer.refused
            if len(self.refused) > DECISIONS_REMEMBERED:
                del self.refused[next(iter(self.refused))]
        likeness = Likeness(
            answer.similarity,
            answer.target_similarity,
            answer.worst_slice,
            answer.worst_slice_similarity,
        )
        match = self._match(outcome, key, likeness, is_decision=True)
        self.log.append(match)
        return match

    def _refresh(self, outcome: Outcome, key: TaskKey, vector: Float32Array) -> CacheMatch:
        """Return the outcome in force with the present similarity to its entry."""
        answer = outcome.answer
        self._statistics.of_task(outcome.domain).refreshes += 1
        likeness = UNLIKE_ANY
        if answer.entry_key is not None:
            likeness = self._gauge.compare(vector, answer.entry_key)
        lost = self._withdrawn(outcome) if answer.hit else ""
        return self._match(outcome, key, likeness, lost=lost)

    def _withdrawn(self, outcome: Outcome) -> str:
        """Return why the entry in force may no longer be used; empty = it may."""
        answer = outcome.answer
        if not self._domains.may_read(outcome.domain, answer.source_domain):
            return f"domain {answer.source_domain!r} is no longer shared with {outcome.domain!r}"
        if not self._entries.alive(answer.entry_id):
            why = self.removed.get(answer.entry_id, "removed")
            return f"entry {answer.entry_id} was thrown away: {why}"
        return ""

    def _match(
        self,
        outcome: Outcome,
        key: TaskKey,
        likeness: Likeness,
        *,
        is_decision: bool = False,
        lost: str = "",
    ) -> CacheMatch:
        self._sequence += 1
        return match_of(outcome, key, likeness, self._sequence, self._scene(key), is_decision, lost)

    def _without_answer(
        self, key: TaskKey, task: TaskState | None, reason: MissReason, why: str
    ) -> CacheMatch:
        """Return a match that says why there is no outcome to carry."""
        about = (
            task.goal_id if task else "",
            task.decision.intent_id if task else "",
            task.subtask if task else "",
            self._domain(key),
            self._scene(key),
            reason,
            why,
        )
        if about != self._nothing_about:
            self._nothing_about, self._nothing = about, self._no_outcome(*about)
        return self._match(self._nothing, key, UNLIKE_ANY)

    def _no_outcome(
        self,
        goal_id: str,
        intent_id: str,
        subtask: str,
        domain: str,
        scene: str,
        reason: MissReason,
        why: str,
    ) -> Outcome:
        answer = Answer(
            hit=False,
            miss_reason=reason,
            reason=why,
            threshold=self._config.threshold_of(scene),
            target_minimum=self._config.target_minimum,
        )
        return Outcome(goal_id, 0, domain, intent_id, subtask, answer)

    def _domain(self, key: TaskKey) -> str:
        return key.decision.domain or self._config.own_domain

    def _scene(self, key: TaskKey) -> str:
        return key.decision.scene or self._config.scene
