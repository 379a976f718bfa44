"""Match: which entry answers a key, and why it does or does not."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np

from kv_action_router.caching.config import CachingConfig
from kv_action_router.caching.domains import Domains, near
from kv_action_router.caching.entries import EntryTable
from kv_action_router.caching.guards import Candidate, Guard, ask
from kv_action_router.caching.index.base import FREE, Searcher
from kv_action_router.caching.key_index import SliceSimilarities
from kv_action_router.caching.layers.task import NO_BEHAVIOR, TaskEntry
from kv_action_router.caching.partitions import ROBOT_TOLERANCE
from kv_action_router.contracts import (
    ROBOT_SLICE,
    SUMMED_SLICE,
    TARGET_SLICE,
    BehaviorValue,
    Float32Array,
    JointSample,
    MissReason,
    TargetEstimate,
)

QUESTIONS_KEPT = 64  # kinds of question whose partitions are remembered


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the cache; ``None`` = any.

    Attributes:
        vector: prepared key (64,).
        domain: that asks.
        encoder_id: that made the key.
        intent_id: what is meant.
        subtask: name and version.
        scene: whose threshold applies.
        needs_target: the target slice must reach its own minimum; None = if the entry has a target.
        joints: measured start state for the guards; None = not asked.
        target: that the key holds.
        allowed_contact: what the stage may touch; empty = nothing.
    """

    vector: Float32Array
    domain: str
    encoder_id: str | None
    intent_id: str | None
    subtask: str | None
    scene: str
    needs_target: bool | None
    joints: JointSample | None = None
    target: TargetEstimate | None = None
    allowed_contact: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A hit or a miss, with its reasons; NaN = no candidate.

    Attributes:
        margin: similarity minus the one of the runner-up that holds another behavior.
        entry_key: summed part of the entry's key (56,) that was compared; None = no candidate.
        behavior: on a hit.
        refused: entries that a guard refused on the way to this answer.
        (others as in ``CacheMatch``)
    """

    hit: bool
    miss_reason: MissReason
    reason: str
    threshold: float
    target_minimum: float
    similarity: float = math.nan
    margin: float = math.nan
    target_similarity: float = math.nan
    worst_slice: str = ""
    worst_slice_similarity: float = math.nan
    guard: str = ""
    entry_id: int = 0
    entry_version: int = 0
    source_domain: str = ""
    subtask: str = ""
    slot: int = -1
    entry_key: Float32Array | None = None
    behavior: BehaviorValue | None = None
    refused: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Partitions that a question may be answered from, and what that was found out from."""

    partitions: int
    grants: Set[tuple[str, str]]
    numbers: tuple[int, ...]


class Matcher:
    """Answers questions from the entry table, on any thread that brings its own searcher."""

    def __init__(
        self, config: CachingConfig, entries: EntryTable, domains: Domains, guards: Sequence[Guard]
    ) -> None:
        self._config = config
        self._entries = entries
        self._domains = domains
        self._guards = tuple(guards)
        self._asked: dict[tuple[object, ...], _Candidates] = {}

    def match(self, question: Question, searcher: Searcher) -> Answer:
        """Return the answer; changes nothing. Looks again when an entry it used was replaced."""
        while True:
            since = self._entries.stamps()
            used: list[TaskEntry] = []
            answer = self._answer(question, searcher, used)
            if all(self._entries.intact(entry, since) for entry in used):
                return answer
            searcher.renew()

    def partitions(self, question: Question) -> Sequence[int]:
        """Return the partitions whose entries are candidates.

        The robot's identity must agree in the own domain and is waived in shared ones.
        """
        table, grants = self._entries.partitions, self._domains.grants
        count = table.count
        asked = (
            question.domain,
            question.encoder_id,
            question.intent_id,
            question.subtask,
            question.vector[ROBOT_SLICE].tobytes(),
        )
        known = self._asked.get(asked)
        # Partitions are only ever added, grants are swapped: while neither changed, the same holds.
        if known is not None and known.partitions == count and known.grants is grants:
            return known.numbers
        own_robot = table.robot(question.vector)
        numbers: list[int] = []
        for owner in self._domains.readable(question.domain):
            robot = own_robot if owner == question.domain else None
            numbers += table.find(
                owner, question.encoder_id, question.intent_id, question.subtask, robot
            )
        if len(self._asked) >= QUESTIONS_KEPT:
            self._asked.clear()
        self._asked[asked] = _Candidates(count, grants, tuple(numbers))
        return numbers

    def _answer(self, question: Question, searcher: Searcher, used: list[TaskEntry]) -> Answer:
        tasks = self._entries.tasks
        slot, similarity = searcher.search(question.vector, self.partitions(question))
        if slot < 0:
            return self._miss(question, MissReason.EMPTY, self._why_empty(question))
        first: Answer | None = None
        refused: tuple[int, ...] = ()
        summed, threshold = question.vector[SUMMED_SLICE], self._config.threshold_of(question.scene)
        entry = tasks.read(slot)
        used.append(entry)
        for _ in range(self._config.candidates):
            next_slot, next_similarity = searcher.next_best(entry.slot, tasks.behavior)
            if next_slot >= 0:
                used.append(tasks.read(next_slot))
            best_other = next_similarity if first is None else first.similarity
            key = tasks.key(entry.slot)
            slices, margin = searcher.slices.compare(summed, key), similarity - best_other
            answer = self._judge(question, entry, key, similarity, margin, slices)
            if answer.hit:
                return dataclasses.replace(answer, refused=refused) if refused else answer
            if answer.guard:
                refused += (answer.entry_id,)
            first = first or answer
            if next_slot < 0 or next_similarity <= threshold:
                break
            entry, similarity = used[-1], next_similarity
        assert first is not None
        return dataclasses.replace(first, refused=refused) if refused else first

    def _judge(
        self,
        question: Question,
        entry: TaskEntry,
        key: Float32Array,
        similarity: float,
        margin: float,
        slices: SliceSimilarities,
    ) -> Answer:
        """Return the answer that one candidate gives: hit, or the first reason against it."""
        partition = self._entries.partitions[entry.partition]
        behavior = None
        if entry.behavior != NO_BEHAVIOR:
            behavior = self._entries.behaviors.read(entry.behavior)
        reason, why, guard = self._refusal(question, entry, similarity, slices.target, behavior)
        threshold = self._config.threshold_of(question.scene)
        return Answer(
            hit=reason == MissReason.NONE,
            miss_reason=reason,
            reason=f"entry {entry.entry_id}: {why}",
            threshold=threshold,
            target_minimum=self._config.target_minimum,
            similarity=similarity,
            margin=margin,
            target_similarity=slices.target,
            worst_slice=slices.worst_slice,
            worst_slice_similarity=slices.worst,
            guard=guard,
            entry_id=entry.entry_id,
            entry_version=entry.version,
            source_domain=partition.domain,
            subtask=partition.subtask,
            slot=entry.slot,
            entry_key=key,
            behavior=behavior if reason == MissReason.NONE else None,
        )

    def _refusal(
        self,
        question: Question,
        entry: TaskEntry,
        similarity: float,
        target_similarity: float,
        behavior: BehaviorValue | None,
    ) -> tuple[MissReason, str, str]:
        """Return the first reason against a candidate, for people too, and the guard's name."""
        threshold, minimum = self._config.threshold_of(question.scene), self._config.target_minimum
        needs_target = question.needs_target
        if needs_target is None:
            needs_target = behavior is not None and behavior.target is not None
        if not similarity > threshold:
            if needs_target and not question.vector[TARGET_SLICE].any():
                return MissReason.TARGET, "the motion acts on a target, the key holds none", ""
            where = f"scene {question.scene!r}"
            why = f"similarity {similarity:.3f} is not above {threshold:.3f} ({where})"
            return MissReason.SIMILARITY, why, ""
        if needs_target and not target_similarity >= minimum:
            why = f"target similarity {target_similarity:.3f} is below {minimum:.3f}"
            return MissReason.TARGET, why, ""
        if behavior is None:
            return MissReason.EMPTY, "its behavior value was thrown away", ""
        if not entry.confident:
            why = (
                f"not confident after {entry.failures_in_row} failures in a row, "
                f"limit {self._config.failure_limit}"
            )
            return MissReason.CONFIDENCE, why, ""
        partition = self._entries.partitions[entry.partition]
        candidate = Candidate(
            question.domain,
            entry.entry_id,
            entry.version,
            partition.domain,
            partition.subtask,
            similarity,
            target_similarity,
            question.target,
            question.allowed_contact,
        )
        guard, why = ask(self._guards, candidate, question.joints, behavior)
        if guard:
            return MissReason.GUARD, f"refused by guard {guard}: {why}", guard
        return MissReason.NONE, f"similarity {similarity:.3f} is above {threshold:.3f}", ""

    def _miss(self, question: Question, reason: MissReason, why: str) -> Answer:
        return Answer(
            hit=False,
            miss_reason=reason,
            reason=why,
            threshold=self._config.threshold_of(question.scene),
            target_minimum=self._config.target_minimum,
            subtask=question.subtask or "",
        )

    def _why_empty(self, question: Question) -> str:
        """Say which of domain, encoder, intent, subtask and robot left no candidate."""
        table = self._entries.partitions
        index = self._entries.tasks.index
        counts = np.bincount(index.partitions[: index.end] - FREE)[1:]  # without the free slots
        filled = [table[int(number)] for number in np.flatnonzero(counts)]
        left = [p for p in filled if self._domains.may_read(question.domain, p.domain)]
        if not left:
            return f"no entry in domain {question.domain!r}"
        for field in ("encoder_id", "intent_id", "subtask"):
            wanted = getattr(question, field)
            agreeing = [p for p in left if wanted is None or getattr(p, field) == wanted]
            if not agreeing:
                names = {getattr(p, field) for p in left}
                return f"no entry of {field} {wanted!r} ({near(wanted, names)})"
            left = agreeing
        identity = question.vector[ROBOT_SLICE]
        distance = min(float(np.abs(table.robot_slice(p.robot) - identity).max()) for p in left)
        return (
            f"no entry of this robot in domain {question.domain!r} "
            f"(robot slice differs by {distance:.3g}, limit {ROBOT_TOLERANCE:g})"
        )
