"""The start of a system that a program looks at: nodes active, no stop, an injector that holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lifecycle_msgs.msg import State
from rclpy.node import Node

from kv_action_router.errors import RouterError
from kv_action_router.reporting.records import RunRecord
from kv_action_router.ros.observer import RunObserver
from kv_action_router.ros.readiness import StoppedError, wait_until_ready
from kv_action_router.ros.supervisor import Supervisor
from kv_action_router.ros.task_client import TaskClient

_STARTS = 3
_NODES_S = 60.0


class SystemStart:
    """Waits for a system, and helps it over the stops of a start on a busy machine."""

    def __init__(self, node: Node, client: TaskClient, supervisor: Supervisor) -> None:
        self._node = node
        self._client = client
        self._supervisor = supervisor

    def wait_until_ready(self) -> list[str]:
        """Wait until the system can run a task; return why stops had to be released for that.

        Raises:
            RouterError: a process died, something did not happen in time, or the stop was engaged
                again and again.
        """
        released: list[str] = []
        while True:
            try:
                with self._observing() as observer:
                    wait_until_ready(observer, self._client, self._none_has_died)
                return released
            except StoppedError as error:
                if len(released) == _STARTS - 1:
                    raise
                released.append(str(error))
                self._client.release_stop()

    def wait_for_nodes(self) -> None:
        """Wait until all five nodes are active.

        Raises:
            TimeOutError: naming those that are not.
        """
        active = State.PRIMARY_STATE_ACTIVE
        with self._observing() as observer:
            self._client.wait(
                lambda: not observer.missing(active),
                _NODES_S,
                lambda: f"{', '.join(observer.missing(active))} to be active",
            )

    @contextmanager
    def _observing(self) -> Iterator[RunObserver]:
        observer = RunObserver(self._node, RunRecord())
        observer.start()
        try:
            yield observer
        finally:
            observer.stop()

    def _none_has_died(self) -> None:
        for death in self._supervisor.deaths():
            raise RouterError(str(death))
