"""Stage conditions: has the stage under way reached its goal, or can it no longer do so?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from kv_action_router.contracts import (
    ExecutionFeedback,
    InjectorEvent,
    InjectorState,
    StageCondition,
    TaskState,
    TaskStatus,
)
from kv_action_router.monitoring.bands import quiet_band
from kv_action_router.monitoring.detectors.base import Detection
from kv_action_router.monitoring.signals import NEVER, NO_SOURCE, SignalTable, SignalView
from kv_action_router.tasks.conditions import Condition, HeldCondition

REFUSED = frozenset(
    {
        InjectorEvent.CHUNK_LATE,
        InjectorEvent.CHUNK_EPOCH,
        InjectorEvent.CHUNK_ORDER,
        InjectorEvent.CHUNK_INVALID,
    }
)  # these feedbacks carry the decision of a chunk that is not in force
AGAIN_NS = 300_000_000  # the owner of the task has refused, or not heard, what is told again then
_MOVING = frozenset({InjectorState.FOLLOW, InjectorState.RAMP, InjectorState.HOLD})


class Stage(Protocol):
    """What is read of a stage's definition."""

    @property
    def end(self) -> Sequence[Condition]:
        """Any of them ends the stage."""

    @property
    def failure(self) -> Sequence[Condition]:
        """Any of them fails the stage."""


class _Watched:
    """One condition of a stage, and what follows from it alone."""

    __slots__ = ("alone", "held", "is_failure", "signals")

    def __init__(self, condition: Condition, *, is_failure: bool) -> None:
        self.held = HeldCondition(condition)
        self.is_failure = is_failure
        self.signals = condition.signals
        self.alone = quiet_band(condition) is not None


class StageWatch:
    """Judges the conditions of the stage under way.

    Invariant: at most one condition is handed out for each decision of a goal, again only if it
    still comes true ``AGAIN_NS`` later and nobody has acted on it; only samples count that were
    received after the injector took over the decision's motion, without a break.

    Attributes:
        conditions: of the stage under way; a new tuple whenever they are begun anew.
        due_ns: from when on :meth:`update` has something to do even if no signal has changed [ns].
    """

    def __init__(self, find_stage: Callable[[str, str], Stage | None]) -> None:
        """Watch stages.

        Args:
            find_stage: definition by task and stage name; None = not known.
        """
        self._find_stage = find_stage
        self._watched: list[_Watched] = []
        self.due_ns = 0
        self.reset()

    def reset(self) -> None:
        """Forget the task."""
        self.state: TaskState | None = None
        self._stage: Stage | None = None
        self._watched = []
        self.conditions: tuple[Condition, ...] = ()
        self._since_ns = -1  # motion in force since; -1 = it is not
        self._again_ns = 0  # what was handed out may be handed out again from then on

    @property
    def running(self) -> bool:
        """Whether a stage is under way and not interrupted."""
        return self.state is not None and self.state.status == TaskStatus.RUNNING

    @property
    def in_force(self) -> bool:
        """Whether the injector follows the motion of the stage's present decision."""
        return self._since_ns >= 0

    def describe(self) -> str:
        """Return the stage under way and whether its own motion is in force, for people."""
        if self.state is None or not self.running:
            return "none"
        motion = "in force" if self.in_force else "awaited"
        decision = self.state.decision.decision_id
        return f"{self.state.task}/{self.state.stage}, decision {decision} {motion}"

    def on_task_state(self, state: TaskState) -> bool:
        """Take the task's state; return whether another stage has begun."""
        before, self.state = self.state, state
        entered = before is None or (
            (before.goal_id, before.task, before.stage_index, before.stage)
            != (state.goal_id, state.task, state.stage_index, state.stage)
        )
        if entered:
            self._stage = self._find_stage(state.task, state.stage) if state.stage else None
        if entered or before is None or before.decision.decision_id != state.decision.decision_id:
            self._begin()
        if not self.running:
            self._suspend()
        return entered

    def on_feedback(self, feedback: ExecutionFeedback) -> bool:
        """Take a feedback; return whether it is the first one of the stage's own motion."""
        if feedback.event in REFUSED or self.state is None or not self.running:
            return False
        wanted = self.state.decision.decision_id
        if feedback.decision.decision_id != wanted or feedback.state not in _MOVING:
            self._suspend()
            return False
        if self._since_ns >= 0 or feedback.state != InjectorState.FOLLOW:
            return False
        self._since_ns = feedback.monotonic_ns
        self.due_ns = 0
        return True

    def update(self, table: SignalTable, view: SignalView) -> StageCondition | None:
        """Judge the newest samples; return what was satisfied just now.

        Args:
            table: of the signals.
            view: of that table, at the present instant; its source is changed here.
        """
        self.due_ns = NEVER
        if self._since_ns < 0:
            return None
        if view.now_ns < self._again_ns:
            self.due_ns = self._again_ns
            return None
        view.source = NO_SOURCE
        view.since_ns = self._since_ns
        try:
            for watched in self._watched:
                held = watched.held
                receipt_ns = table.receipt_ns(watched.signals)
                if receipt_ns >= self._since_ns and held.update(view, receipt_ns):
                    condition = held.condition
                    return self._answer(
                        condition.name,
                        watched.is_failure,
                        condition.signal,
                        held.value,
                        condition.limit,
                        held.held_ns / 1e9,
                        receipt_ns,
                    )
                if not watched.alone:
                    stale_ns = table.turns_stale_ns(watched.signals, view.now_ns)
                    self.due_ns = min(self.due_ns, stale_ns)
                elif held.holding:
                    self.due_ns = 0  # also a sample inside the band counts: it ends the holding
        finally:
            view.since_ns = 0
        return None

    def complete(self, detection: Detection) -> StageCondition | None:
        """Return the end of the stage that a condition of the response table asks for."""
        if self._since_ns < 0 or detection.receipt_ns < max(self._since_ns, self._again_ns):
            return None
        return self._answer(
            detection.condition,
            False,
            detection.signal,
            detection.value,
            detection.limit,
            detection.held,
            detection.receipt_ns,
        )

    def _begin(self) -> None:
        stage = self._stage
        self._again_ns = 0
        self._since_ns = -1
        self._watched = []
        if stage is not None:  # failures first: an end that comes with one is none
            self._watched += [_Watched(item, is_failure=True) for item in stage.failure]
            self._watched += [_Watched(item, is_failure=False) for item in stage.end]
        self.conditions = tuple(watched.held.condition for watched in self._watched)

    def _suspend(self) -> None:
        if self._since_ns >= 0:
            self._since_ns = -1
            for watched in self._watched:
                watched.held.reset()

    def _answer(
        self,
        name: str,
        is_failure: bool,
        signal: str,
        value: float,
        limit: float,
        held: float,
        receipt_ns: int,
    ) -> StageCondition:
        assert self.state is not None
        self._again_ns = receipt_ns + AGAIN_NS
        for watched in self._watched:
            watched.held.reset()
        return StageCondition(
            task=self.state.task,
            goal_id=self.state.goal_id,
            stage=self.state.stage,
            decision_id=self.state.decision.decision_id,
            condition=name,
            is_failure=is_failure,
            signal=signal,
            value=value,
            limit=limit,
            held=held,
            monotonic_ns=receipt_ns,
        )
