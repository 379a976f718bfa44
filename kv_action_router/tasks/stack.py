"""The task stack: which task and stage are under way, and which decision is asked for.

An interruption holds the innermost task, or puts another one on it: a sequence such as backing off,
warning and waiting, which is run to its own end before the task beneath goes on at the same stage.
That may be interrupted in turn. A stage that fails while it may touch something puts the task's
``on_failure`` on the stack in the same way; when that has ended, the task answers with the failure,
or goes back to an earlier stage.

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
DEEPEST = 5  # tasks on one another
ON_FAILURE = "on_failure"  # who inserts what a task does when it has failed
_NO_INTENT: Float32Array = np.zeros(0, dtype=np.float32)


@dataclass(slots=True)
class TaskStack:
    """The tasks under way, the innermost last.

    Invariant: frames is empty exactly when the status is none of ``ACTIVE``; decision ids rise; a
    decision is awaited from when it is asked for until :meth:`answer`, and only while RUNNING. No
    stage that was completed is begun again, but by a retry. While RUNNING nobody holds the
    innermost task, and it has begun. A task that has failed is never the innermost one.

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

    @property
    def target(self) -> str:
        """Which target is acted on: a sequence that names none keeps the one beneath it."""
        names = (frame.definition.target for frame in reversed(self.frames))
        return next((name for name in names if name), "")

    @property
    def interrupted(self) -> bool:
        """Whether somebody holds a task, or has inserted a sequence."""
        return bool(self.interruptions) or len(self.frames) > 1

    @property
    def pending(self) -> bool:
        """Whether a sequence was inserted that may begin as soon as the arm is at rest."""
        waits = self.status == TaskStatus.INTERRUPTED and not self.interruptions
        return waits and not self.frame.begun

    def expired(self, now_ns: int) -> str:
        """Return why the task has run out of time, or an empty text."""
        if self.status != TaskStatus.RUNNING:
            return ""
        self._run(now_ns)
        frame = self.frames[-1]
        stage = frame.stage
        if frame.stage_ns > stage.timeout * 1e9:
            return f"stage {stage.name!r} did not end within {stage.timeout:g} s"
        limit = frame.definition.timeout
        if len(self.frames) == 1:
            limit = self.timeout or limit
        if limit and frame.task_ns > limit * 1e9:
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
        """Go on to the next stage, or to the task beneath, where that was interrupted.

        Returns:
            Whether anything is left to do; else the task has ended.

        Raises:
            TaskTransitionError: no task is running.
        """
        self._need(TaskStatus.RUNNING, "complete a stage")
        self._run(now_ns)
        frame = self.frame
        self.counters.stages_completed += frame.inserted_by is None
        if frame.stage_index + 1 < len(frame.definition.stages):
            frame.begin_stage(frame.stage_index + 1)
            self._ask(DecisionReason.STAGE_ENTRY, now_ns)
            return True
        if len(self.frames) > 1:
            self._uncover(now_ns)
            return self.active
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

    def interrupt(
        self, source: str, reason: str, now_ns: int, sequence: TaskDefinition | None = None
    ) -> bool:
        """Hold the innermost task, or put a sequence on it; several sources may do so.

        A sequence begins by :meth:`begin_sequence`. A source whose sequence is on the stack already
        only tells another reason.

        Args:
            source: who asks.
            reason: for people, not empty.
            now_ns: CLOCK_MONOTONIC [ns].
            sequence: to be run before the task goes on; None = it waits for :meth:`resume`.

        Returns:
            Whether what is under way must come to rest.

        Raises:
            TaskTransitionError: no task is running or interrupted, no reason is given, or too many
                sequences lie on one another.
        """
        if not reason.strip():
            raise TaskTransitionError("reason must not be empty")
        if self.status not in (TaskStatus.RUNNING, TaskStatus.INTERRUPTED):
            raise TaskTransitionError(f"nothing to interrupt: status is {self.status.name}")
        own = None if sequence is None else self._inserted_by(source)
        if own is not None:
            own.reason = reason
            self.version += 1
            return False
        if sequence is not None and len(self.frames) >= DEEPEST:
            raise TaskTransitionError(
                f"at most {DEEPEST - 1} sequences may be inserted, got {sequence.name!r} as well"
            )
        if self.status == TaskStatus.RUNNING:
            self._run(now_ns)
        if sequence is None:
            self.interruptions = [item for item in self.interruptions if item.source != source]
            self.interruptions.append(Interruption(source, reason))
        else:
            self.frames.append(Frame(sequence, source, reason, begun=False))
            self.counters.interruptions += 1
        self.status = TaskStatus.INTERRUPTED
        self.awaiting = False
        self.version += 1
        return True

    def begin_sequence(self, now_ns: int) -> None:
        """Begin the sequence that was inserted: the arm is at rest.

        Raises:
            TaskTransitionError: none is pending.
        """
        if not self.pending:
            raise TaskTransitionError(f"no sequence is pending: status is {self.status.name}")
        self.frame.begun = True
        self._go_on(DecisionReason.STAGE_ENTRY, now_ns)

    def resume(self, source: str, now_ns: int) -> bool:
        """Let go of the innermost task, or end the sequence that this source has inserted.

        Args:
            source: who lets go; empty = for everybody who holds it, sequences go on.
            now_ns: CLOCK_MONOTONIC [ns].

        Returns:
            Whether nobody holds the task any more.

        Raises:
            TaskTransitionError: it is not interrupted, or not by this source; or the source's
                sequence is itself interrupted by another one.
        """
        left = [item for item in self.interruptions if source and item.source != source]
        lets_go = len(left) < len(self.interruptions)
        own = self._inserted_by(source) if source else None
        if not lets_go and own is None:
            if self.status != TaskStatus.INTERRUPTED:
                raise TaskTransitionError(f"cannot resume: status is {self.status.name}")
            raise TaskTransitionError(
                f"{source!r} does not hold the task; held by {self.holders()}"
            )
        if own is not None and not lets_go:
            if own is not self.frame:
                raise TaskTransitionError(
                    f"the sequence of {source!r} is interrupted itself: {self.holders()}"
                )
            if self.status == TaskStatus.STOPPING:
                raise TaskTransitionError(f"cannot resume: status is {self.status.name}")
            if self.status == TaskStatus.RUNNING:
                self._run(now_ns)
            if left:
                self.frames.pop()
                self.version += 1
                return False
            self._uncover(now_ns)
            return True
        self.interruptions = left
        self.version += 1
        if left:
            return False
        if self.frame.begun:
            self._go_on(DecisionReason.RESUMED, now_ns)
        return True

    def holders(self) -> str:
        """Return who holds the task or has inserted a sequence, for people."""
        sequences = [
            f"{frame.inserted_by!r} ({frame.reason}) with {frame.definition.name!r}"
            for frame in self.frames
            if frame.inserted_by is not None
        ]
        holds = [f"{item.source!r} ({item.reason})" for item in self.interruptions]
        return ", ".join((*sequences, *holds)) or "none"

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
        self.outcome = self._beside_failure(Outcome(message=reason))
        self.version += 1

    def settled(self) -> None:
        """End a canceled task: the robot is at rest.

        Raises:
            TaskTransitionError: no task is stopping.
        """
        self._need(TaskStatus.STOPPING, "settle")
        self._end(TaskStatus.CANCELED, self.outcome)

    def recover(self, error_code: int, message: str, now_ns: int) -> bool:
        """Put what the task does on a failure on it: the stage under way can't reach its goal.

        The sequence begins by :meth:`begin_sequence`.

        Returns:
            Whether there is something to be done; else nothing has changed, and :meth:`fail` ends
            the task.
        """
        if self.status not in (TaskStatus.RUNNING, TaskStatus.INTERRUPTED):
            return False
        frame = self.frame
        if frame.recovery is None or not frame.begun or len(self.frames) >= DEEPEST:
            return False
        if self.status == TaskStatus.RUNNING:
            self._run(now_ns)
        frame.failed = Outcome(error_code=error_code, message=message)
        self.frames.append(Frame(frame.recovery, ON_FAILURE, message, begun=False))
        self.status = TaskStatus.INTERRUPTED
        self.awaiting = False
        self.version += 1
        return True

    def fail(self, error_code: int, message: str) -> None:
        """End the task: it can't reach its goal. A failure before this one is told first.

        Raises:
            TaskTransitionError: no task is under way.
        """
        if not self.active:
            raise TaskTransitionError(f"nothing to fail: status is {self.status.name}")
        outcome = Outcome(error_code=error_code, message=message)
        self._end(TaskStatus.FAILED, self._beside_failure(outcome))

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
                self.requested_ns, stage.allowed_contact, self.target, stage.needs_sharpness,
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

    def _go_on(self, reason: DecisionReason, now_ns: int) -> None:
        """Run again; time counts from now on."""
        self.status = TaskStatus.RUNNING
        self._clock_ns = now_ns
        self._ask(reason, now_ns)

    def _uncover(self, now_ns: int) -> None:
        """Take the innermost sequence off; the task beneath goes on, begins, or has failed."""
        self.frames.pop()
        failed = self.frame.failed
        if failed is not None:
            if self.frame.retry():
                self.counters.stages_completed = self.frames[0].stage_index
                self._go_on(DecisionReason.STAGE_ENTRY, now_ns)
            else:
                self._end(TaskStatus.FAILED, failed)
            return
        reason = DecisionReason.RESUMED if self.frame.begun else DecisionReason.STAGE_ENTRY
        self.frame.begun = True
        self._go_on(reason, now_ns)

    def _inserted_by(self, source: str) -> Frame | None:
        if source == ON_FAILURE:
            return None  # nobody's but the task's own
        return next((frame for frame in self.frames if frame.inserted_by == source), None)

    def _beside_failure(self, outcome: Outcome) -> Outcome:
        """Return an outcome of what was run on a failure, with that failure first."""
        failed = next((frame.failed for frame in self.frames if frame.failed is not None), None)
        if failed is None:
            return outcome
        message = f"{failed.message}; then {self.frame.definition.name!r}: {outcome.message}"
        return Outcome(error_code=failed.error_code, message=message)

    def _run(self, now_ns: int) -> None:
        """Count running time of the innermost task up to now: what is beneath is interrupted."""
        spent = max(0, now_ns - self._clock_ns)
        self._clock_ns = now_ns
        frame = self.frames[-1]
        frame.task_ns += spent
        frame.stage_ns += spent

    def _need(self, status: TaskStatus, what: str) -> None:
        if self.status != status:
            raise TaskTransitionError(f"cannot {what}: status is {self.status.name}")

    def _end(self, status: TaskStatus, outcome: Outcome) -> None:
        frame = self.frames[0]
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
