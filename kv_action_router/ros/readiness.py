"""Waits until a system that was started can run a task."""

from __future__ import annotations

import time
from collections.abc import Callable

from lifecycle_msgs.msg import State

from kv_action_router.contracts import InjectorState
from kv_action_router.errors import RouterError
from kv_action_router.ros.observer import RunObserver
from kv_action_router.ros.task_client import TaskClient

_START_S = 60.0
_STEADY_NS = 1_500_000_000


class StoppedError(RouterError):
    """The stop is engaged before anything has begun."""

    error_code = 8


def wait_until_ready(
    observer: RunObserver, client: TaskClient, tick: Callable[[], None] = lambda: None
) -> None:
    """Wait for five active nodes, for the servers, and for an injector that holds still.

    Args:
        observer: started; it hears no more heartbeats afterwards.
        client: whose executor is spun.
        tick: called after each spin; may raise to give up.

    Raises:
        TimeOutError: saying what was waited for.
        StoppedError: the stop is engaged.
    """
    client.wait(
        lambda: not observer.missing(State.PRIMARY_STATE_ACTIVE),
        _START_S,
        lambda: f"{', '.join(observer.missing(State.PRIMARY_STATE_ACTIVE))} to be active",
        tick,
    )
    client.wait_for_servers(_START_S, tick)
    observer.leave_heartbeats()
    client.wait(
        lambda: _holds_still(observer),
        _START_S,
        lambda: f"the injector to hold still, it is {observer.injector_state.name}",
        tick,
    )


def _holds_still(observer: RunObserver) -> bool:
    if observer.injector_state is InjectorState.STOPPED:
        reasons = "; ".join(observer.run.stops) or "no reason was heard"
        raise StoppedError(f"stopped before it began: {reasons}")
    steady = time.monotonic_ns() - observer.injector_since_ns
    # a start-up may have gone through the fail-safe; the first decision leaves it
    ready = observer.injector_state in (InjectorState.HOLD, InjectorState.FAIL_SAFE)
    return ready and steady > _STEADY_NS
