"""When each stage of a task was under way, from what the task says of itself. No ROS."""

from __future__ import annotations

from kv_action_router.contracts import TaskStatus
from kv_action_router.reporting.records import StageSpan

_UNDER_WAY = frozenset((TaskStatus.RUNNING, TaskStatus.INTERRUPTED, TaskStatus.STOPPING))


class StageTimeline:
    """Turns task states into spans.

    A sequence that is inserted breaks the stage beneath off; when that goes on, it is a span of its
    own. Invariant: spans follow each other without overlap.

    Attributes:
        spans: that have ended, since :meth:`clear`.
    """

    def __init__(self) -> None:
        self.spans: list[StageSpan] = []
        self._task = self._goal = self._stage = ""
        self._index = -1
        self._begin_ns = 0

    @property
    def under_way(self) -> bool:
        """Whether a stage is."""
        return bool(self._stage)

    def clear(self) -> None:
        """Forget what was; a stage that is under way goes on to be seen."""
        self.spans = []

    def on_state(
        self, status: int, task: str, goal: str, stage: str, index: int, now_ns: int
    ) -> None:
        """Take a task state.

        Args:
            status: ``TaskStatus``.
            task: name of the task on top.
            goal: that it is run for.
            stage, index: that is under way, or was the last one.
            now_ns: CLOCK_MONOTONIC when it was published [ns].
        """
        same = (task, goal) == (self._task, self._goal)
        if status not in _UNDER_WAY:
            self._end(now_ns, completed=same and status == TaskStatus.SUCCEEDED)
            return
        if same and index == self._index and self._stage:
            return
        self._end(now_ns, completed=same and index > self._index)
        self._task, self._goal, self._stage, self._index = task, goal, stage, index
        self._begin_ns = now_ns

    def _end(self, now_ns: int, *, completed: bool) -> None:
        if self._stage:
            end_ns = max(now_ns, self._begin_ns)
            span = StageSpan(self._stage, self._begin_ns, end_ns, completed, self._task)
            self.spans.append(span)
        self._stage = ""
