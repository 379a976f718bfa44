"""The task stack: which task and stage are under way, and which decision is asked for.

It knows neither ROS nor motions. Every change raises ``version``: its owner then publishes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from kv_action_router.contracts import (
    Decision,
    DecisionReason,
    Float32Array,
    TaskState,
    TaskStatus,
)
from kv_action_router.errors import InputError, TaskTransitionError
from kv_action_router.tasks.frames import Counters, Frame, Interruption, Outcome
from kv_action_router.tasks.stages import StageDefinition, TaskDefinition

ACTIVE = (TaskStatus.RUNNING, TaskStatus.INTERRUPTED, TaskStatus.STOPPING)
_NO_INTENT: Float32Array = np.zeros(0, dtype=np.float32)


@dataclass(slots=True)
class TaskStack:
    """The tasks under way, the innermost last.

    Invariant: frames is empty exactly when the status is none of ``ACTIVE``; decision ids rise; a
    decision is awaited from when it is asked for until :meth:`answer`, and only while RUNNING.

    Attributes:
        first_decision: id of the first decision, from 1; a restarted process must begin higher.
    """

    first_decision: int = 1
    status: TaskStatus = TaskStatus.IDLE
    goal_id: str = ""
    domain: str = ""
    scene: str = ""
    timeout: float = 0.0
    decision_id: int = 0
    decision_reason: DecisionReason = DecisionReason.NONE
    awaiting: bool = False
    requested_ns: int = 0
    version: int = 0
    counters: Counters = field(default_factory=Counters)
    outcome: Outcome = field(default_factory=Outcome)
    frames: list[Frame] = field(default_factory=list)
    interruptions: list[Interruption] = field(default_factory=list)
    _last: tuple[str, str, int, int] = ("", "", 0, 0)
    _clock_ns: int = 0

    # --- asking ---------------------------------------------------------------------------

    @property
    def active(self) -> bool:
        """Whether a task is under way in any way."""
        return self.status in ACTIVE

    @property
    def frame(self) -> Frame:
        """The innermost task.

        Raises:
            TaskTransitionError: none is under way.
        """
        if not self.frames:
            raise TaskTransitionError(f"no task is under way (status {self.status.name})")
        return self.frames[-1]

    @property
    def stage(self) -> StageDefinition:
        """The stage under way."""
        return self.frame.stage

    def expired(self, now_ns: int) -> str:
        """Return why the task has run out of time, or an empty text."""
        if self.status != TaskStatus.RUNNING:
            return ""
        self._run(now_ns)
        frame = self.frames[-1]
        stage = frame.stage
        if frame.stage_ns > stage.timeout * 1e9:
            return f"stage {stage.name!r} did not end within {stage.timeout:g} s"
        limit = self.timeout or frame.definition.timeout
        if limit and self.frames[0].task_ns > limit * 1e9:
            return f"task {frame.definition.name!r} did not end within {limit:g} s"
        return ""

    # --- transitions ----------------------------------------------------------------------

    def start(
        self,
        definition: TaskDefinition,
        goal_id: str,
        now_ns: int,
        *,
        domain: str = "",
        scene: str = "",
        timeout: float = 0.0,
    ) -> None:
        """Begin a task.

        Raises:
            TaskTransitionError: another one is under way.
            InputError: the timeout is negative or not finite.
        """
        if self.active:
            raise TaskTransitionError(
                f"task {self.frame.definition.name!r} is under way ({self.status.name});"
                " cancel it first"
            )
        if not timeout >= 0.0 or math.isinf(timeout):
            raise InputError("timeout", "at least 0 s and finite", timeout)
        self.frames.append(Frame(definition))
        self.goal_id, self.domain, self.scene, self.timeout = goal_id, domain, scene, timeout
        self.counters, self.outcome = Counters(), Outcome()
        self.interruptions.clear()
        self.status = TaskStatus.RUNNING
        self._clock_ns = now_ns
        self._ask(DecisionReason.STAGE_ENTRY, now_ns)

    def complete_stage(self, now_ns: int) -> bool:
        """Go on to the next stage; return whether there was one, else the task has succeeded.

        Raises:
            TaskTransitionError: no task is running.
        """
        self._need(TaskStatus.RUNNING, "complete a stage")
        self._run(now_ns)
        self.counters.stages_completed += 1
        frame = self.frame
        if frame.stage_index + 1 < len(frame.definition.stages):
            frame.stage_index += 1
            frame.stage_ns = 0
            self._ask(DecisionReason.STAGE_ENTRY, now_ns)
            return True
        self._end(TaskStatus.SUCCEEDED, Outcome(success=True))
        return False

    def answer(self, decision_id: int, *, task_hit: bool, behavior_hit: bool) -> None:
        """Note that the awaited decision has become a motion.

        Raises:
            TaskTransitionError: another decision is awaited, or none.
        """
        if not self.awaiting or decision_id != self.decision_id:
            raise TaskTransitionError(
                f"decision {decision_id} is not awaited (now {self.decision_id})"
            )
        self.awaiting = False
        self.counters.decisions += 1
        self.counters.task_hits += task_hit
        self.counters.behavior_hits += behavior_hit
        self.version += 1

    def invalidate(self, now_ns: int) -> None:
        """Ask for a fresh decision in the same stage: the match in force is not valid any more.

        Raises:
            TaskTransitionError: no task is running.
        """
        self._need(TaskStatus.RUNNING, "ask for a fresh decision")
        self._ask(DecisionReason.INVALIDATED, now_ns)

    def interrupt(self, source: str, reason: str, now_ns: int) -> None:
        """Hold the task; several sources may hold it at once.

        Raises:
            TaskTransitionError: no task is running or interrupted, or no reason is given.
        """
        if not reason.strip():
            raise TaskTransitionError("reason must not be empty")
        if self.status not in (TaskStatus.RUNNING, TaskStatus.INTERRUPTED):
            raise TaskTransitionError(f"nothing to interrupt: status is {self.status.name}")
        self._run(now_ns)
        self.interruptions = [item for item in self.interruptions if item.source != source]
        self.interruptions.append(Interruption(source, reason))
        self.status = TaskStatus.INTERRUPTED
        self.awaiting = False
        self.version += 1

    def resume(self, source: str, now_ns: int) -> bool:
        """Let go of the task; it runs again, in the same stage, when nobody else holds it.

        Args:
            source: who lets go; empty = for everybody who holds it.
            now_ns: CLOCK_MONOTONIC [ns].

        Returns:
            Whether the task runs again.

        Raises:
            TaskTransitionError: it is not interrupted, or not by this source.
        """
        self._need(TaskStatus.INTERRUPTED, "resume")
        left = [item for item in self.interruptions if source and item.source != source]
        if len(left) == len(self.interruptions):
            raise TaskTransitionError(
                f"{source!r} does not hold the task; held by {self.holders()}"
            )
        self.interruptions = left
        self.version += 1
        if left:
            return False
        self.status = TaskStatus.RUNNING
        self._clock_ns = now_ns
        self._ask(DecisionReason.RESUMED, now_ns)
        return True

    def holders(self) -> str:
        """Return who holds the task, for people."""
        return (
            ", ".join(f"{item.source!r} ({item.reason})" for item in self.interruptions) or "none"
        )

    def cancel(self, now_ns: int, reason: str = "canceled") -> None:
        """Begin to stop; :meth:`settled` ends it.

        Raises:
            TaskTransitionError: no task is under way.
        """
        if not self.active:
            raise TaskTransitionError(f"nothing to cancel: status is {self.status.name}")
        if self.status == TaskStatus.RUNNING:
            self._run(now_ns)
        self.status = TaskStatus.STOPPING
        self.awaiting = False
        self.outcome = Outcome(message=reason)
        self.version += 1

    def settled(self) -> None:
        """End a canceled task: the robot is at rest.

        Raises:
            TaskTransitionError: no task is stopping.
        """
        self._need(TaskStatus.STOPPING, "settle")
        self._end(TaskStatus.CANCELED, self.outcome)

    def fail(self, error_code: int, message: str) -> None:
        """End the task: it can't reach its goal.

        Raises:
            TaskTransitionError: no task is under way.
        """
        if not self.active:
            raise TaskTransitionError(f"nothing to fail: status is {self.status.name}")
        self._end(TaskStatus.FAILED, Outcome(error_code=error_code, message=message))

    # --- showing ----------------------------------------------------------------------------

    def state(self, phase: float, header: Decision) -> TaskState:
        """Return what is published; ``header`` carries what the stack doesn't know."""
        if self.frames:
            definition, stage = self.frame.definition, self.frame.stage
            index, count = self.frame.stage_index, len(definition.stages)
            name, intent = definition.name, definition.intent
            return TaskState(
                header, self.status, name, self.goal_id, stage.name, index, count, stage.subtask,
                phase, intent, self.decision_reason, stage.needs_target, stage.needs_image,
                self.requested_ns, stage.allowed_contact,
            )  # fmt: skip
        task, stage_name, index, count = self._last
        return TaskState(
            header, self.status, task, self.goal_id, stage_name, index, count, "", phase,
            _NO_INTENT, DecisionReason.NONE, False, False, self.requested_ns, "",
        )  # fmt: skip

    # --- inside -----------------------------------------------------------------------------

    def _ask(self, reason: DecisionReason, now_ns: int) -> None:
        self.decision_id = max(self.decision_id + 1, self.first_decision)
        self.decision_reason = reason
        self.requested_ns = now_ns
        self.awaiting = True
        self.version += 1

    def _run(self, now_ns: int) -> None:
        """Count running time up to now."""
        spent = max(0, now_ns - self._clock_ns)
        self._clock_ns = now_ns
        for frame in self.frames:
            frame.task_ns += spent
        self.frames[-1].stage_ns += spent

    def _need(self, status: TaskStatus, what: str) -> None:
        if self.status != status:
            raise TaskTransitionError(f"cannot {what}: status is {self.status.name}")

    def _end(self, status: TaskStatus, outcome: Outcome) -> None:
        frame = self.frame
        self._last = (
            frame.definition.name,
            frame.stage.name,
            frame.stage_index,
            len(frame.definition.stages),
        )
        self.frames.clear()
        self.interruptions.clear()
        self.status, self.outcome = status, outcome
        self.awaiting = False
        self.version += 1
