"""Responses that last as long as their condition: a lower speed, and an interruption."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kv_action_router.contracts import TaskState, TaskStatus
from kv_action_router.monitoring.detectors.held import HeldThreshold
from kv_action_router.tasks.rules import Response, Rule

_RENEW_NS = 1_000_000_000  # a lower speed is asked for again, should the first request be lost


@dataclass(frozen=True, slots=True)
class Request:
    """What the synthesizer is asked for.

    Attributes:
        response: ``SLOW`` or ``INTERRUPT``.
        rule: that asks.
        begins: ask for it; false = it is over.
        scale: share of the planned speed; 1 = as planned.
        reason: for people.
    """

    response: Response
    rule: Rule
    begins: bool
    scale: float = 1.0
    reason: str = ""


class _Row:
    """One row that lasts, and what it has asked for."""

    __slots__ = ("held", "renew_ns", "rule", "slowed", "watch")

    def __init__(self, rule: Rule, watch: HeldThreshold) -> None:
        self.rule = rule
        self.watch = watch
        self.reset()

    def reset(self) -> None:
        self.slowed = True  # maybe, by an earlier life of this node: it is lifted at first
        self.renew_ns = 0
        self.held: tuple[str, int] | None = None  # goal and decision that it has interrupted

    def reason(self) -> str:
        """Return why the row holds, for people."""
        first = next(iter(self.watch.active.values()))
        return self.rule.describe(first.source, first.value)


class LastingResponses:
    """Asks for what the rows want while they hold, and takes it back when they no longer do.

    A lower speed is in force exactly while its row holds. An interruption is asked for once for
    each decision of a task that runs while the row holds, so that a task that is begun, or resumed
    by somebody, while the cause is still there does not run on. It is taken back when the row
    clears, if the row says that it resumes; else a person resumes.

    Attributes:
        outstanding: something is to be taken back once its row clears.
    """

    def __init__(self, watches: Iterable[tuple[Rule, HeldThreshold]]) -> None:
        self._rows = [_Row(rule, watch) for rule, watch in watches if rule.lasts]
        self.reset()

    def reset(self) -> None:
        """Forget what was asked for; lower speeds are lifted at the next update."""
        for row in self._rows:
            row.reset()
        self.outstanding = bool(self._rows)

    def update(self, state: TaskState | None, now_ns: int) -> list[Request]:
        """Return what must be asked for now.

        Args:
            state: of the task; None = never heard.
            now_ns: CLOCK_MONOTONIC [ns].
        """
        requests: list[Request] = []
        outstanding = False
        for row in self._rows:
            self._slow(row, now_ns, requests)
            if Response.INTERRUPT in row.rule.responses:
                self._interrupt(row, state, requests)
            outstanding = outstanding or row.slowed or row.held is not None
        self.outstanding = outstanding
        return requests

    @staticmethod
    def _slow(row: _Row, now_ns: int, requests: list[Request]) -> None:
        rule, active = row.rule, bool(row.watch.active)
        if Response.SLOW not in rule.responses:
            row.slowed = False
        elif active and (not row.slowed or now_ns >= row.renew_ns):
            row.slowed, row.renew_ns = True, now_ns + _RENEW_NS
            requests.append(Request(Response.SLOW, rule, True, rule.speed_scale, row.reason()))
        elif row.slowed and not active:
            row.slowed = False
            requests.append(Request(Response.SLOW, rule, False))

    @staticmethod
    def _interrupt(row: _Row, state: TaskState | None, requests: list[Request]) -> None:
        present = None if state is None else (state.goal_id, state.decision.decision_id)
        if row.watch.active:
            running = state is not None and state.status == TaskStatus.RUNNING
            if state is not None and state.task == row.rule.inserts:
                running = False  # its own sequence is under way
            if running and row.held != present:
                row.held = present
                requests.append(Request(Response.INTERRUPT, row.rule, True, reason=row.reason()))
        elif row.held is not None:
            same_goal = present is not None and present[0] == row.held[0]
            row.held = None
            if row.rule.resumes and same_goal:
                requests.append(Request(Response.INTERRUPT, row.rule, False))
