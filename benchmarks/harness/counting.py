"""Counts the decisions of one phase. No ROS: fed by the driver, from two threads."""

from __future__ import annotations

import re
import time
from collections import Counter

from harness.phases import SETTLED, Phase, PhaseRecord

_KEPT = 4096
_NUMBER = re.compile(r"\d+(\.\d+)?")
_LONGEST_TEXT = 120
_FAILED_TASKS = 30  # in a row


class PhaseCount:
    """Decisions, counters and failures of a phase.

    Invariant: each decision is counted once, when the injector adopts it; what comes before the end
    of the warm-up, or among the first of a task, counts nowhere.

    Attributes:
        rows: stage times of the passages that count.
        counters: newest of the injector.
        in_force: decision that was adopted last; 0 = none in this task.
        invalidated_ns: when the entry in force was thrown away [ns]; 0 = it was not.
        ended: somebody has enough.
        trouble: why the phase must end; empty = it need not.
    """

    def __init__(self, phase: Phase) -> None:
        self.phase = phase
        self.rows: list[tuple[int, ...]] = []
        self.counters: dict[str, int] = {}
        self.in_force = 0
        self.invalidated_ns = 0
        self.ended = False
        self.trouble = ""
        self._entries: dict[int, int] = {}  # trace -> entry; 0 = replanned
        self._entry = 0  # behind the motion in force
        self._seen = 0
        self._seen_in_task = 0
        self._decisions: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._dropped = self._late = 0
        self._reactions: list[float] = []
        self._stops: list[str] = []
        self._early_stops = 0
        self._failed_tasks = 0
        self._begin_ns = self._end_ns = 0
        self._begin_counters: dict[str, int] = {}

    @property
    def done(self) -> bool:
        """Whether enough was counted."""
        return self.ended or len(self.rows) >= self.phase.cycles

    def begin_task(self) -> None:
        """Begin another task: its first decisions do not count."""
        self._seen_in_task = 0
        self.in_force = 0
        self.invalidated_ns = 0

    def on_chunk(self, trace_id: int, entry_id: int) -> None:
        """Note what a decision's chunk was made of."""
        self._entries[trace_id] = entry_id
        if len(self._entries) > _KEPT:
            del self._entries[next(iter(self._entries))]

    def on_adopted(self, decision_id: int, trace_id: int, times: tuple[int, ...]) -> bool:
        """Take a chunk that the injector follows; return whether a new decision is in force.

        Where a decision's own chunk was late, a continuation brings it into force: it was dropped.
        """
        entry = self._entries.pop(trace_id, None)
        if self.done or (entry is None and decision_id == self.in_force):
            return False
        invalidated_ns, self.invalidated_ns = self.invalidated_ns, 0
        self.in_force, self._entry = decision_id, entry or 0
        self._failed_tasks = 0
        self._seen += 1
        self._seen_in_task += 1
        if self._seen_in_task <= SETTLED or self._seen <= self.phase.warm_up:
            return True
        if not self._begin_ns:
            self._begin_ns, self._begin_counters = time.monotonic_ns(), dict(self.counters)
            return True
        if entry is not None and all(times):
            self._passed("hit" if entry else "miss", times, invalidated_ns)
        return True

    def on_late(self, trace_id: int) -> None:
        """Take a chunk that the injector dropped as late; a continuation's is no decision's."""
        if self._entries.pop(trace_id, None) is not None and self._begin_ns and not self.done:
            self._late += 1

    def _passed(self, kind: str, times: tuple[int, ...], invalidated_ns: int) -> None:
        self._decisions[kind] += 1
        if kind == self.phase.kind and (invalidated_ns > 0 or not self.phase.invalidates):
            self.rows.append(tuple(int(value) for value in times))
            if invalidated_ns:
                self._reactions.append((times[-1] - invalidated_ns) / 1e6)
        if self.done:
            self._end_ns = time.monotonic_ns()

    def entry_to_invalidate(self) -> int:
        """Return the entry that is to be thrown away now; 0 = none."""
        return self._entry if self.phase.invalidates and not self.invalidated_ns else 0

    def on_failure(self, source: str, text: str) -> None:
        """Take a failure event."""
        if not self._begin_ns or self.done:
            return
        if text.startswith("decision dropped"):
            self._dropped += 1
        self._failures[f"{source}: {_NUMBER.sub('#', text)[:_LONGEST_TEXT]}"] += 1

    def on_stop(self, reason: str) -> None:
        """Take a stop; the decisions after it are warm-up again."""
        if self._begin_ns:
            self._stops.append(reason)
        else:
            self._early_stops += 1
        self._seen_in_task = 0
        self.in_force = 0

    def on_task_failed(self, reason: str) -> None:
        """Take the failure of a task: after a stop another one begins, a few times."""
        self._failed_tasks += 1
        if self._failed_tasks > _FAILED_TASKS:
            self.trouble = f"{self._failed_tasks} tasks in a row failed, the last one: {reason}"

    def record(self) -> PhaseRecord:
        """Return what came of it."""
        return PhaseRecord(
            phase=self.phase.name,
            begin_ns=self._begin_ns or time.monotonic_ns(),
            end_ns=self._end_ns or time.monotonic_ns(),
            decisions_in_all=self._seen,
            decisions=dict(self._decisions),
            decisions_dropped=self._dropped,
            decisions_late=self._late,
            counters={
                name: value - self._begin_counters.get(name, 0)
                for name, value in self.counters.items()
            },
            reactions_ms=self._reactions,
            stops=self._stops,
            stops_in_warm_up=self._early_stops,
            failures=dict(self._failures.most_common(10)),
            trouble=self.trouble,
        )
