"""The action ``execute_task``: one goal at a time, answered when its task has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.node import Node

from kv_action_router.action import ExecuteTask
from kv_action_router.contracts import TaskStatus
from kv_action_router.errors import RouterError, TaskTransitionError
from kv_action_router.msg import FailureEvent
from kv_action_router.ros.steady import steady_timer
from kv_action_router.ros.topics import EXECUTE_TASK, RELEASE_STOP
from kv_action_router.tasks.definition import load_task
from kv_action_router.tasks.stack import ACTIVE
from kv_action_router.tasks.stages import TaskDefinition

if TYPE_CHECKING:
    from kv_action_router.synthesis.synthesizer import BehaviorSynthesizer

POLL_PERIOD_S = 0.05
FEEDBACK_EVERY = 2  # polls


class _PatientActionServer(ActionServer):
    """An action server whose goals are begun at once and answered later.

    A coroutine that waits for the end would do, but the events executor polls those without pause.
    """

    begin: Callable[[ServerGoalHandle], None]

    def notify_execute(self, goal_handle: ServerGoalHandle, execute_callback: Any) -> None:
        """Begin a goal that was accepted; with a callback, answer it."""
        if execute_callback is None:
            self.begin(goal_handle)
        else:
            super().notify_execute(goal_handle, execute_callback)


class TaskServer:
    """Hands goals to the owner of the task stack, and its course back to the client.

    Invariant: at most one goal is under way; it is answered only when the stack is no longer
    active, so a cancel is answered at rest.
    """

    def __init__(
        self,
        node: Node,
        do: Callable[[Callable[[BehaviorSynthesizer, int], Any]], Any],
        refusal: Callable[[], str],
    ) -> None:
        """Offer the action.

        Args:
            node: that serves it.
            do: runs ``action(synthesizer, now_ns)`` where the synthesizer lives.
            refusal: why a goal can't be taken now; empty = it can.
        """
        self._node = node
        self._do = do
        self._refusal = refusal
        self._handle: ServerGoalHandle | None = None
        self._begun_ns = 0
        self._polls = 0
        self._timer: Any = None
        self._server = _PatientActionServer(
            node,
            EXECUTE_TASK.type,
            EXECUTE_TASK.name,
            self._begin,
            goal_callback=self._on_goal,
            cancel_callback=self._on_cancel,
        )
        self._server.begin = self._begin

    def destroy(self) -> None:
        """Withdraw the action."""
        self._stop_polling()
        self._server.destroy()

    # --- callbacks --------------------------------------------------------------------------

    def _on_goal(self, request: ExecuteTask.Goal) -> GoalResponse:
        reason = "another goal is under way" if self._handle is not None else self._refusal()
        if not reason:
            return GoalResponse.ACCEPT
        self._node.report(  # type: ignore[attr-defined]
            TaskTransitionError.error_code,
            f"goal {request.task!r} is rejected: {reason}",
            severity=FailureEvent.SEVERITY_WARNING,
            detector="execute_task",
        )
        return GoalResponse.REJECT

    def _on_cancel(self, _: ServerGoalHandle) -> CancelResponse:
        try:
            self._do(lambda owner, now_ns: owner.tasks.cancel("canceled by the client", now_ns))
        except RouterError as error:
            self._node.get_logger().info(f"nothing to cancel: {error}")
            return CancelResponse.REJECT
        return CancelResponse.ACCEPT

    def _begin(self, handle: ServerGoalHandle) -> None:
        try:
            definition = load_task(handle.request.task)
            self._begun_ns = self._do(
                lambda owner, now_ns: _start(owner, now_ns, definition, handle)
            )
        except RouterError as error:
            result = ExecuteTask.Result(error_code=error.error_code, error_msg=str(error))
            self._answer(handle, handle.abort, result)
            return
        self._handle = handle
        self._timer = steady_timer(self._node, POLL_PERIOD_S, self._poll)

    def _answer(
        self, handle: ServerGoalHandle, end: Callable[[], None], result: ExecuteTask.Result
    ) -> None:
        def answer(_: ServerGoalHandle) -> ExecuteTask.Result:
            end()
            return result

        self._server.notify_execute(handle, answer)

    def _poll(self) -> None:
        try:
            self.tell(self._do(course_of))
        except RouterError:
            return  # deactivated: the owner tells the end itself

    # --- course -----------------------------------------------------------------------------

    def tell(self, course: Course) -> None:
        """Publish feedback, or end the goal when its task has ended. Executor's thread only."""
        handle = self._handle
        if handle is None:
            return
        if course.status in ACTIVE:
            self._polls += 1
            if self._polls % FEEDBACK_EVERY == 0:
                handle.publish_feedback(course.feedback)
            return
        end = handle.abort
        if course.status == TaskStatus.SUCCEEDED:
            end = handle.succeed
        elif course.status == TaskStatus.CANCELED and handle.is_cancel_requested:
            end = handle.canceled
        course.result.duration = (course.now_ns - self._begun_ns) * 1.0e-9
        self._handle = None
        self._stop_polling()
        self._answer(handle, end, course.result)

    def _stop_polling(self) -> None:
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
            self._timer = None


class Course(NamedTuple):
    """A task at one moment, as the action tells it."""

    now_ns: int
    status: TaskStatus
    feedback: ExecuteTask.Feedback
    result: ExecuteTask.Result


def course_of(owner: BehaviorSynthesizer, now_ns: int) -> Course:
    """Look at the task; called where the synthesizer lives."""
    tasks = owner.tasks
    stack = tasks.stack
    feedback = ExecuteTask.Feedback(
        status=int(stack.status),
        phase=float(tasks.phase(now_ns)),
        decision_id=stack.decision_id,
        hit=owner.hit,
        message=stack.holders() if stack.interrupted else "",
        interrupted=tasks.interrupted(now_ns),
    )
    if stack.frames:
        frame = stack.frame
        feedback.task = frame.definition.name
        feedback.stage, feedback.stage_index = frame.stage.name, frame.stage_index
        feedback.stage_count = len(frame.definition.stages)
    counters, outcome = stack.counters, stack.outcome
    result = ExecuteTask.Result(
        success=outcome.success,
        error_code=outcome.error_code,
        error_msg=outcome.message,
        stages_completed=counters.stages_completed,
        decisions=counters.decisions,
        task_hits=counters.task_hits,
        behavior_hits=counters.behavior_hits,
        interruptions=counters.interruptions,
    )
    return Course(now_ns, stack.status, feedback, result)


def _start(
    owner: BehaviorSynthesizer, now_ns: int, definition: TaskDefinition, handle: ServerGoalHandle
) -> int:
    goal = handle.request
    if reason := owner.tracking.stopped():
        raise TaskTransitionError(
            f"task {definition.name!r} is refused: {reason} ({RELEASE_STOP.name} clears a stop)"
        )
    owner.tasks.start(
        definition,
        bytes(handle.goal_id.uuid).hex(),
        now_ns,
        domain=goal.domain,
        scene=goal.scene,
        timeout=goal.timeout,
    )
    return now_ns
