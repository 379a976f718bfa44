"""Runs tasks and places targets from a program; every wait is bounded and names its reason."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient
from rclpy.node import Node

from kv_action_router.action import ExecuteTask
from kv_action_router.errors import RouterError
from kv_action_router.ros.topics import EXECUTE_TASK, PLACE_TARGET, RELEASE_STOP
from kv_action_router.srv import PlaceTarget

_SPIN_S = 0.05


class TimeOutError(RouterError):
    """Something that was waited for did not happen in time."""

    error_code = 7


def wait_until(
    executor: Any,
    done: Callable[[], bool],
    timeout: float,
    what: Callable[[], str],
    tick: Callable[[], None] = lambda: None,
) -> None:
    """Spin an executor until something is so.

    Args:
        executor: to spin.
        done: whether it is so.
        timeout: [s].
        what: names what is waited for.
        tick: called after each spin; may raise to give up.

    Raises:
        TimeOutError: saying what was waited for.
    """
    until = time.monotonic() + timeout
    while not done():
        if time.monotonic() > until:
            raise TimeOutError(f"waited {timeout:g} s for {what()}")
        executor.spin_once(timeout_sec=_SPIN_S)
        tick()


class TaskClient:
    """Client of ``execute_task``, ``simulation/place_target`` and the release of the stop.

    The owner's executor is spun while waiting; callbacks of the same node go on.
    """

    def __init__(self, node: Node, executor: Any) -> None:
        self._executor = executor
        self._action = ActionClient(node, ExecuteTask, EXECUTE_TASK.name)
        self._place = node.create_client(PlaceTarget, PLACE_TARGET.name)
        self._release = node.create_client(RELEASE_STOP.type, RELEASE_STOP.name)

    def close(self) -> None:
        """Let go of the action: its node does not, and the DDS participant would live on."""
        self._action.destroy()

    def wait(
        self,
        done: Callable[[], bool],
        timeout: float,
        what: Callable[[], str],
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        """Wait as :func:`wait_until` does, on the owner's executor."""
        wait_until(self._executor, done, timeout, what, tick)

    def wait_for_servers(self, timeout: float, tick: Callable[[], None] = lambda: None) -> None:
        """Wait until both servers are there."""
        self.wait(
            lambda: self._action.server_is_ready() and self._place.service_is_ready(),
            timeout,
            lambda: f"{EXECUTE_TASK.name} and {PLACE_TARGET.name}",
            tick,
        )

    def place_random_target(self, timeout: float = 5.0) -> PlaceTarget.Response:
        """Put the target on a random place.

        Raises:
            TimeOutError: no answer.
            RouterError: the simulation refused, with its reason.
        """
        return self._place_target(PlaceTarget.Request(random=True), timeout)

    def place_target(self, x: float, y: float, timeout: float = 5.0) -> PlaceTarget.Response:
        """Put the target on the table at x, y [m], base frame.

        Raises:
            TimeOutError: no answer.
            RouterError: the simulation refused, with its reason.
        """
        request = PlaceTarget.Request()
        request.pose.position.x, request.pose.position.y = x, y
        return self._place_target(request, timeout)

    def begin(self, task: str, timeout: float, tick: Callable[[], None] = lambda: None) -> Any:
        """Begin a task and return its goal handle; it is under way when this returns.

        Raises:
            TimeOutError: no answer.
            RouterError: the goal was rejected.
        """
        goal = ExecuteTask.Goal(task=task, timeout=float(timeout))
        sent = self._action.send_goal_async(goal)
        self.wait(sent.done, 5.0, lambda: f"{EXECUTE_TASK.name} to take the goal", tick)
        handle = sent.result()
        if not handle.accepted:
            raise RouterError(f"task {task!r} was rejected")
        return handle

    def release_stop(self, timeout: float = 5.0) -> None:
        """Release the stop.

        Raises:
            TimeOutError: no answer.
            RouterError: the injector refused, with its reason.
        """
        future = self._release.call_async(RELEASE_STOP.type.Request())
        self.wait(future.done, timeout, lambda: f"an answer of {RELEASE_STOP.name}")
        answer = future.result()
        if not answer.success:
            raise RouterError(f"stop not released: {answer.message}")

    def execute(
        self, task: str, timeout: float, tick: Callable[[], None] = lambda: None
    ) -> ExecuteTask.Result:
        """Run a task to its end and return the result, also when it failed.

        Raises:
            TimeOutError: no answer, or no end in time.
            RouterError: the goal was rejected.
        """
        ended = self.begin(task, timeout, tick).get_result_async()
        self.wait(ended.done, timeout + 5.0, lambda: f"the end of task {task!r}", tick)
        answer = ended.result()
        if answer.status not in (GoalStatus.STATUS_SUCCEEDED, GoalStatus.STATUS_ABORTED):
            answer.result.success = False
        return answer.result

    def _place_target(self, request: PlaceTarget.Request, timeout: float) -> PlaceTarget.Response:
        future = self._place.call_async(request)
        self.wait(future.done, timeout, lambda: f"an answer of {PLACE_TARGET.name}")
        answer = future.result()
        if not answer.success:
            raise RouterError(f"target not placed: {answer.message}")
        return answer
