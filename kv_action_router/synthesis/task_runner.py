"""The course of a task: stages, interruptions, ends; and what the cache learns from each stage."""

from __future__ import annotations

import math
from collections import deque
from itertools import pairwise
from typing import NamedTuple

from kv_action_router.contracts import (
    Decision,
    EntryUpdate,
    FloatArray,
    Pose,
    StageCondition,
    TaskState,
    TaskStatus,
)
from kv_action_router.errors import SynthesisError, TaskDefinitionError
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.execution import (
    Execution,
    failure_update,
    result_error,
    success_update,
)
from kv_action_router.synthesis.found import FoundPlaces
from kv_action_router.synthesis.motion_in_force import MotionInForce
from kv_action_router.synthesis.stage_values import StageValues
from kv_action_router.synthesis.suspended import Suspended, SuspendedMotions
from kv_action_router.synthesis.tracking import Tracking
from kv_action_router.tasks.stack import TaskStack
from kv_action_router.tasks.stages import PressGoal, SearchGoal, TaskDefinition, TipGoal


class Report(NamedTuple):
    """Something that people and the monitor should hear of."""

    error_code: int
    message: str
    value: float = math.nan
    limit: float = math.nan


class TaskRunner:
    """Moves the task stack on, and the motion in force with it. Not thread safe.

    Invariant: an execution exists exactly while the stage under way has a motion that answers its
    decision (also while it is interrupted).

    Attributes:
        stack: of tasks.
        execution: decision under way; None = none, or it is awaited.
        updates: for the cache, oldest first; the owner takes them out.
        reports: for people, oldest first; the owner takes them out.
        task: name of the newest task.
        suspended: motions of the tasks beneath an inserted sequence.
    """

    def __init__(
        self,
        model: RobotModel,
        config: SynthesisConfig,
        tracking: Tracking,
        motion: MotionInForce,
        first_decision: int,
    ) -> None:
        self.stack = TaskStack(first_decision=first_decision)
        self.execution: Execution | None = None
        self.updates: deque[EntryUpdate] = deque()
        self.reports: deque[Report] = deque(maxlen=100)
        self.task = ""
        self.suspended = SuspendedMotions()
        self._model = model
        self._config = config
        self._tracking = tracking
        self._motion = motion
        self._values = StageValues(model.joint_names)
        self._found = FoundPlaces(model)
        self._stopping_ns = 0

    # --- from outside -------------------------------------------------------------------------

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
        """
        self.stack.start(definition, goal_id, now_ns, domain=domain, scene=scene, timeout=timeout)
        self.execution = None
        self.suspended.clear()
        self._found.forget()
        self.task = definition.name

    def interrupt(
        self, source: str, reason: str, now_ns: int, sequence: TaskDefinition | None = None
    ) -> None:
        """Stop on the path; stage and phase are kept.

        Args:
            source: who asks.
            reason: for people.
            now_ns: CLOCK_MONOTONIC [ns].
            sequence: to be run, from rest, before the task goes on; None = it waits for a resume.

        Raises:
            TaskTransitionError: no task is running.
        """
        if not self.stack.interrupt(source, reason, now_ns, sequence):
            return
        if self.execution is not None:
            self.execution.interrupt(now_ns)
        self._motion.brake(now_ns)

    def resume(self, source: str, now_ns: int) -> bool:
        """Go on at the same stage and phase once a fresh decision is there.

        Returns:
            Whether nobody holds the task any more.

        Raises:
            TaskTransitionError: it is not interrupted, or not by this source.
        """
        depth = len(self.stack.frames)
        free = self.stack.resume(source, now_ns)
        if len(self.stack.frames) < depth:
            self._uncover(now_ns)
        return free

    def cancel(self, reason: str, now_ns: int) -> None:
        """Stop on the path; the task ends when the robot is at rest.

        Raises:
            TaskTransitionError: no task is under way.
        """
        self.stack.cancel(now_ns, reason)
        self._stopping_ns = now_ns
        self._motion.brake(now_ns)

    def invalidate(self, reason: str, now_ns: int, *, blames_entry: bool) -> None:
        """Throw the decision in force away, stop on the path and ask for a fresh one.

        Args:
            reason: for people.
            now_ns: CLOCK_MONOTONIC [ns].
            blames_entry: the entry that was reused has failed; false where it was not tried, was
                taken away, or its chunks came too late.
        """
        if self.stack.status != TaskStatus.RUNNING or self.stack.awaiting:
            return
        self._end_execution(reason if blames_entry else "")
        self._motion.brake(now_ns)
        self.stack.invalidate(now_ns)

    def fail(self, error_code: int, message: str, now_ns: int, *, blames_entry: bool) -> None:
        """Stop on the path; end the task as failed, once it has let go where it says so."""
        self._end_execution(message if blames_entry else "")
        self._motion.brake(now_ns)
        # Behind a stop nothing moves before somebody acts.
        if self._tracking.stopped() or not self.stack.recover(error_code, message, now_ns):
            self.stack.fail(error_code, message)
            return
        text = f"{message}; {self.stack.frame.definition.name!r} is run first"
        self.reports.append(Report(error_code, text))

    def give_up(self, error_code: int, message: str, now_ns: int) -> None:
        """End the task as failed where it is: nobody goes on."""
        self._end_execution("")
        self._motion.brake(now_ns)
        self.stack.fail(error_code, message)

    def on_condition(self, condition: StageCondition, now_ns: int) -> bool:
        """Take a physical condition; return whether it was meant for the stage and true."""
        execution = self.execution
        if execution is None or not self._concerns(condition, execution, now_ns):
            return False
        if condition.is_failure:
            text = (
                f"stage {condition.stage!r}: {condition.condition}: {condition.signal}"
                f" {condition.value:.4g} (limit {condition.limit:.4g})"
            )
            self.fail(SynthesisError.error_code, text, now_ns, blames_entry=True)
            return True
        error = math.nan
        if self._tracking.joints is not None:
            error = result_error(execution, self._model, self._tracking.measured().position)
        self._learn(success_update(execution, self._model.joint_names, error))
        stage, after = execution.stage, self.stack.frame.next_stage
        if error > stage.tolerance and after is not None and isinstance(after.goal, TipGoal):
            text = (
                f"stage {stage.name!r} ended {error * 1e3:.1f} mm from its goal, above"
                f" {stage.tolerance * 1e3:g} mm: {after.name!r} cannot begin there"
            )
            self.fail(SynthesisError.error_code, text, now_ns, blames_entry=False)
            return True
        if self._tracking.joints is not None:
            self._learn(self._found.learn(execution, self._tracking.measured().position))
        self.execution = None
        self._motion.brake(now_ns)
        depth = len(self.stack.frames)
        if self.stack.complete_stage(now_ns) and len(self.stack.frames) < depth:
            self._uncover(now_ns)
        return True

    # --- with time ----------------------------------------------------------------------------

    def watch(self, now_ns: int) -> None:
        """React to what the injector and the time say."""
        stack = self.stack
        self._ask_for_values(now_ns)
        if self._motion.lost_by_injector():
            self._motion.drop()
            self._end_execution("")  # a stop or a fail-safe says nothing about the entry
        if not stack.frames:
            return
        if stack.status == TaskStatus.RUNNING:
            self._watch_path()
            if reason := stack.expired(now_ns):
                in_force = self._motion.in_force
                self.fail(SynthesisError.error_code, reason, now_ns, blames_entry=in_force)
            elif (
                self._motion.reference is None
                and not stack.awaiting
                and self._tracking.may_move(now_ns)
            ):
                stack.invalidate(now_ns)
        elif stack.status == TaskStatus.STOPPING:
            self._settle(now_ns)
        elif stack.pending and self._motion.at_rest(now_ns):
            self._begin_sequence(now_ns)

    def _watch_path(self) -> None:
        execution = self.execution
        if execution is None or execution.stage.path_tolerance == math.inf:
            return
        led = self._tracking.led(execution.begun_ns)
        if led is not None:
            beside = execution.path.beside(*led, execution.stage.path_tolerance)
            execution.strayed = max(execution.strayed, beside)

    def _ask_for_values(self, now_ns: int) -> None:
        """Tell the cache which execution values the stage under way asks for."""
        stack = self.stack
        if not stack.frames:
            return  # what has failed in contact must not be pressed on with more
        stage = stack.stage
        try:
            self._learn(
                self._values.update(stage, Decision(domain=stack.domain or self._config.domain))
            )
        except TaskDefinitionError as error:
            self.fail(error.error_code, str(error), now_ns, blames_entry=False)

    def _begin_sequence(self, now_ns: int) -> None:
        """Lay the motion under way aside and begin what was inserted."""
        kept = None
        if self.execution is not None and self._motion.reference is not None:
            kept = Suspended(self.execution, self._motion.reference)
        self.suspended.lay_aside(kept, [frame.begun for frame in self.stack.frames])
        self.execution = None
        self.stack.begin_sequence(now_ns)
        self.task = self.stack.frame.definition.name

    def _uncover(self, now_ns: int) -> None:
        """Take up the motion of the task that lies on top again; one that is retried has none."""
        self._found.forget()
        self._motion.brake(now_ns)
        kept = self.suspended.take_up(len(self.stack.frames))
        self.execution = None if kept is None else kept.execution
        self.task = self.stack.frame.definition.name

    def _settle(self, now_ns: int) -> None:
        waited = (now_ns - self._stopping_ns) * 1.0e-9
        if self._motion.at_rest(now_ns) and self._tracking.at_rest(now_ns):
            self.execution = None
            self.stack.settled()
        elif waited > self._config.settle_timeout:
            self.execution = None
            self.stack.outcome.message += f" (not seen at rest within {waited:.1f} s)"
            self.stack.settled()

    def give_up_suspended(self) -> None:
        """Forget the motion that was taken up: a fresh decision answers its stage."""
        self.suspended.taken_up = None
        self.execution = None

    def origin_of(self, start: FloatArray) -> Pose | None:
        """Return where the tip was when the stage began; the first asking, at ``start`` (n,), says.

        For a search it is where the stage before has sent the tip, from which it may have slid.
        None for a goal that doesn't count from there.
        """
        frame = self.stack.frame
        goal = frame.stage.goal
        if frame.origin is None and isinstance(goal, TipGoal):
            # A set-point that presses is not where the tip is.
            if isinstance(goal, PressGoal) and self._tracking.joints is not None:
                start = self._tracking.measured().position
            sent = self._found.sent if isinstance(goal, SearchGoal) else None
            frame.origin = Pose(self._model.forward(start)[0] if sent is None else sent)
        return frame.origin

    # --- what is shown ------------------------------------------------------------------------

    def phase(self, now_ns: int) -> float:
        """Return the share of the stage's motion that is done; 0 while its decision is awaited."""
        if self.execution is None:
            return 0.0
        kept = self.suspended.taken_up
        return self._motion.phase(now_ns) if kept is None else kept.reference.phase(now_ns)

    def interrupted(self, now_ns: int) -> list[str]:
        """Describe the tasks beneath a sequence, outermost first, for people."""
        frames = self.stack.frames
        described = []
        for index, (frame, above) in enumerate(pairwise(frames)):
            phase = self.suspended.phase(index, now_ns)
            if phase is None and not frames[-1].begun:  # its motion still comes to rest
                phase = self.phase(now_ns)
            described.append(
                f"{frame.definition.name}/{frame.stage.name} at {phase or 0.0:.2f},"
                f" by {above.inserted_by!r}: {above.reason}"
            )
        return described

    def state(self, now_ns: int, sequence: int) -> TaskState:
        """Return the task's state as it is published."""
        stack, config = self.stack, self._config
        domain = stack.domain or config.domain
        header = Decision(
            sequence=sequence,
            epoch=self._tracking.epoch,
            decision_id=stack.decision_id,
            domain=domain,
            source_domain=domain,
            robot_id=config.robot_id,
            scene=stack.scene or config.scene,
            intent_id=stack.frame.definition.intent_id if stack.frames else "",
        )
        return stack.state(self.phase(now_ns), header)

    # --- inside -------------------------------------------------------------------------------

    def _concerns(self, condition: StageCondition, execution: Execution, now_ns: int) -> bool:
        """Say whether a condition is of the decision under way, and not of a moment before it."""
        stack = self.stack
        if stack.status != TaskStatus.RUNNING or stack.awaiting:
            return False
        if (condition.goal_id, condition.stage, condition.decision_id) != (
            stack.goal_id,
            stack.stage.name,
            stack.decision_id,
        ):
            return False
        definition = stack.stage.condition(condition.condition)
        if definition is None or condition.monotonic_ns < execution.begun_ns:
            return False
        # The phase that the monitor saw may still be that of the motion before.
        phase = self.phase(now_ns)
        return all(
            predicate.holds(phase)
            for predicate in definition.predicates
            if predicate.signal == "motion_phase"
        )

    def _end_execution(self, reason: str) -> None:
        """Forget the execution; a reason says that it went wrong."""
        if self.execution is not None and reason:
            self._learn(failure_update(self.execution, reason))
        self.execution = None
        self.suspended.taken_up = None

    def _learn(self, update: EntryUpdate | None) -> None:
        if update is not None:
            self.updates.append(update)
