"""What lies on the task stack: a task under way, who holds it, what it needed, how it ended."""

from __future__ import annotations

from dataclasses import dataclass

from kv_action_router.contracts import Pose
from kv_action_router.tasks.stages import StageDefinition, TaskDefinition


@dataclass(frozen=True, slots=True)
class Interruption:
    """Who holds the task, and why."""

    source: str
    reason: str


@dataclass(slots=True)
class Frame:
    """One task on the stack.

    Attributes:
        definition: of the task.
        inserted_by: whose interruption put it on another task; None = it is the goal's own.
        reason: of that interruption.
        begun: it has asked for a decision; one that was inserted waits until the arm rests.
        origin: where the tip was when the stage began; None = not needed, or not yet known.
        failed: why the stage under way has failed, while the sequence that lies on the task lets go
            and withdraws; None = it has not.
        retries: how often the task went back to an earlier stage after a failure.
        stage_index: of the stage under way, from 0.
        stage_ns: running time spent in the stage [ns].
        task_ns: running time spent in the task [ns].
    """

    definition: TaskDefinition
    inserted_by: str | None = None
    reason: str = ""
    begun: bool = True
    origin: Pose | None = None
    failed: Outcome | None = None
    retries: int = 0
    stage_index: int = 0
    stage_ns: int = 0
    task_ns: int = 0

    @property
    def stage(self) -> StageDefinition:
        """The stage under way."""
        return self.definition.stages[self.stage_index]

    @property
    def next_stage(self) -> StageDefinition | None:
        """The stage after the one under way; None = that is the last."""
        stages = self.definition.stages
        return stages[self.stage_index + 1] if self.stage_index + 1 < len(stages) else None

    @property
    def recovery(self) -> TaskDefinition | None:
        """What is run when the stage under way fails; None = nothing."""
        on_failure = self.definition.on_failure
        if on_failure is None or not self.stage.allowed_contact:
            return None
        return on_failure.sequence

    def begin_stage(self, index: int) -> None:
        """Go on at a stage."""
        self.stage_index = index
        self.stage_ns = 0
        self.origin = None

    def retry(self) -> bool:
        """Go back to where a retry begins; return whether the failed stage may be retried."""
        on_failure = self.definition.on_failure
        if on_failure is None or self.retries >= on_failure.retries:
            return False
        if self.stage.name not in on_failure.retried:
            return False
        self.retries += 1
        self.failed = None
        names = [stage.name for stage in self.definition.stages]
        self.begin_stage(names.index(on_failure.retry_from))
        return True


@dataclass(slots=True)
class Outcome:
    """How the last task ended.

    Attributes:
        success: it reached its end.
        error_code: of a failure; 0 = none.
        message: why it failed or was canceled.
    """

    success: bool = False
    error_code: int = 0
    message: str = ""


@dataclass(slots=True)
class Counters:
    """What a task has needed so far."""

    stages_completed: int = 0
    decisions: int = 0
    task_hits: int = 0
    behavior_hits: int = 0
    interruptions: int = 0  # with a sequence inserted
