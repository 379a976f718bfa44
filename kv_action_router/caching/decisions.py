"""Decisions and refreshes: which key answers what the task asks for, and what later keys add."""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from kv_action_router.caching.config import CachingConfig
from kv_action_router.caching.domains import Domains
from kv_action_router.caching.entries import EntryTable
from kv_action_router.caching.key_index import prepare_key, slice_similarities, worst_slice
from kv_action_router.caching.match import Answer, Matcher, Question, similarity_to
from kv_action_router.caching.statistics import Statistics
from kv_action_router.contracts import (
    KEY_SIZE,
    SUMMED_SLICE,
    CacheMatch,
    Float32Array,
    MissReason,
    TaskKey,
    TaskState,
    TaskStatus,
    Trigger,
)
from kv_action_router.errors import KeyInvalidError

ACTIVE = frozenset({TaskStatus.RUNNING, TaskStatus.INTERRUPTED, TaskStatus.STOPPING})
LOG_LENGTH = 64


@dataclass(frozen=True, slots=True)
class Outcome:
    """A decision that was answered, and what it was asked for."""

    goal_id: str
    decision_id: int
    domain: str
    intent_id: str
    subtask: str
    answer: Answer


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
        self._buffers = entries.tasks.index.buffers()
        self._task: TaskState | None = None
        self._outcome: Outcome | None = None
        self._waited_for_target = (-1, "")
        self._sequence = 0
        self.removed: dict[int, str] = {}  # entry -> why; the newest, kept by the manager
        self.encoder_id: str | None = None  # of the newest key
        self.log: deque[CacheMatch] = deque(maxlen=LOG_LENGTH)  # decisions, for whoever writes logs

    @property
    def task(self) -> TaskState | None:
        """The task under way, or None."""
        task = self._task
        return task if task is not None and task.status in ACTIVE else None

    @property
    def entry_in_force(self) -> int:
        """Entry whose behavior is being executed; 0 = none."""
        outcome = self._outcome
        return outcome.answer.entry_id if outcome is not None and outcome.answer.hit else 0

    def on_task_state(self, state: TaskState) -> None:
        """Take the newest task state."""
        self._task = state

    def on_key(self, key: TaskKey) -> CacheMatch:
        """Answer a key: the decision that is asked for, or a refresh of the one in force."""
        self._statistics.keys += 1
        task = self.task
        try:
            vector = prepare_key(key.vector)
        except KeyInvalidError as error:
            self._statistics.keys_refused += 1
            if task is not None:
                self._statistics.of_task(self._domain(key)).misses_invalid_key += 1
            return self._without_answer(key, task, MissReason.INVALID_KEY, str(error), None)
        self.encoder_id = key.decision.encoder_id
        if task is None or task.decision.decision_id == 0:
            self._outcome = None
            why = "no task is active" if task is None else f"task {task.task} asks for no decision"
            return self._without_answer(key, None, MissReason.NO_TASK, why, vector)
        outcome = self._outcome
        if outcome is not None and outcome.goal_id != task.goal_id:
            outcome = self._outcome = None
        if outcome is None or outcome.decision_id != task.decision.decision_id:
            why_not = self._waits_for(task, key)
            if not why_not:
                return self._decide(task, key, vector)
            if outcome is None:
                return self._without_answer(key, task, MissReason.NO_TARGET, why_not, vector)
        return self._refresh(outcome, key, vector)

    # --- inside ---

    def _waits_for(self, task: TaskState, key: TaskKey) -> str:
        """Return what keeps this key from answering the task's decision; empty = nothing."""
        name = f"decision {task.decision.decision_id}"
        if task.needs_image:
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
            return f"{name} waits for the target to be seen"
        return ""

    def _decide(self, task: TaskState, key: TaskKey, vector: Float32Array) -> CacheMatch:
        domain = self._domain(key)
        answer = self._matcher.match(
            Question(
                vector=vector,
                domain=domain,
                encoder_id=key.decision.encoder_id,
                intent_id=task.decision.intent_id,
                subtask=task.subtask,
                scene=self._scene(key),
                needs_target=task.needs_target,
                joints=key.joints,
                target=key.target,
            ),
            self._buffers,
        )
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
        match = self._from_answer(outcome, answer, key, is_decision=True)
        self.log.append(match)
        return match

    def _refresh(self, outcome: Outcome, key: TaskKey, vector: Float32Array) -> CacheMatch:
        """Return the outcome in force with the present similarity to its entry."""
        answer = outcome.answer
        self._statistics.of_task(outcome.domain).refreshes += 1
        if answer.entry_key is not None:
            slices = slice_similarities(vector[SUMMED_SLICE], answer.entry_key)
            worst, worst_similarity = worst_slice(slices)
            answer = dataclasses.replace(
                answer,
                similarity=similarity_to(vector, answer.entry_key),
                target_similarity=slices["target"],
                worst_slice=worst,
                worst_slice_similarity=worst_similarity,
            )
        if answer.hit and (why := self._withdrawn(outcome)):
            answer = dataclasses.replace(
                answer, hit=False, miss_reason=MissReason.EMPTY, reason=why, behavior=None
            )
        return self._from_answer(outcome, answer, key, is_decision=False)

    def _withdrawn(self, outcome: Outcome) -> str:
        """Return why the entry in force may no longer be used; empty = it may."""
        answer = outcome.answer
        if not self._domains.may_read(outcome.domain, answer.source_domain):
            return f"domain {answer.source_domain!r} is no longer shared with {outcome.domain!r}"
        if not self._entries.alive(answer.entry_id):
            why = self.removed.get(answer.entry_id, "removed")
            return f"entry {answer.entry_id} was thrown away: {why}"
        return ""

    def _from_answer(
        self, outcome: Outcome, answer: Answer, key: TaskKey, *, is_decision: bool
    ) -> CacheMatch:
        self._sequence += 1
        decision = dataclasses.replace(
            key.decision,
            sequence=self._sequence,
            decision_id=outcome.decision_id,
            domain=outcome.domain,
            source_domain=answer.source_domain or outcome.domain,
            scene=self._scene(key),
            intent_id=outcome.intent_id,
        )
        return CacheMatch(
            decision=decision,
            trigger=key.trigger,
            hit=answer.hit,
            is_decision=is_decision,
            miss_reason=answer.miss_reason,
            reason=answer.reason,
            similarity=answer.similarity,
            threshold=answer.threshold,
            margin=answer.margin,
            target_similarity=answer.target_similarity,
            target_minimum=answer.target_minimum,
            worst_slice=answer.worst_slice,
            worst_slice_similarity=answer.worst_slice_similarity,
            guard=answer.guard,
            entry_id=answer.entry_id,
            entry_version=answer.entry_version,
            subtask=outcome.subtask,
            behavior=answer.behavior,
            target=key.target,
            target_age=key.target_age,
            vector=key.vector,
            joints=key.joints,
        )

    def _without_answer(
        self,
        key: TaskKey,
        task: TaskState | None,
        reason: MissReason,
        why: str,
        vector: Float32Array | None,
    ) -> CacheMatch:
        """Return a match that says why there is no outcome to carry."""
        answer = Answer(
            hit=False,
            miss_reason=reason,
            reason=why,
            threshold=self._config.threshold_of(self._scene(key)),
            target_minimum=self._config.target_minimum,
        )
        outcome = Outcome(
            goal_id=task.goal_id if task else "",
            decision_id=0,
            domain=self._domain(key),
            intent_id=task.decision.intent_id if task else "",
            subtask=task.subtask if task else "",
            answer=answer,
        )
        if vector is None:  # a bad key goes no further
            key = dataclasses.replace(key, vector=np.zeros(KEY_SIZE, dtype=np.float32))
        return self._from_answer(outcome, answer, key, is_decision=False)

    def _domain(self, key: TaskKey) -> str:
        return key.decision.domain or self._config.own_domain

    def _scene(self, key: TaskKey) -> str:
        return key.decision.scene or self._config.scene


def describe(match: CacheMatch) -> str:
    """Return one line that tells a decision with its why."""
    verdict = "hit" if match.hit else f"miss ({match.miss_reason.name.lower()})"
    text = f"decision {match.decision.decision_id} {match.subtask}: {verdict}, {match.reason}"
    if not math.isnan(match.margin):
        text += f", margin {match.margin:.3f}"
    if match.worst_slice:
        text += f", worst slice {match.worst_slice} {match.worst_slice_similarity:.3f}"
    return text
