"""A process of the suite: signals, executor, orderly end.

The recipe: the C-level signal handler writes to a pipe that a thread reads, so that the first
SIGINT or
SIGTERM sends the stop at once, whatever the executor is doing and whichever thread the kernel
picks.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from kv_action_router.errors import ConfigError
from kv_action_router.ros.domain_id import check_domain_id

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SPIN_S = 0.1
_FORCED_EXIT_S = 4.0
_LEAVE_S = 0.1


class Stoppable(Protocol):
    """A node that can be brought to rest before the process ends."""

    def shut_down(self, reason: str) -> None:
        """Send the stop, leave every thread, destroy what was created."""


def make_executor(context: rclpy.Context | None = None) -> Any:
    """Return the events executor (a third of the CPU), or else the single-threaded one."""
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        from rclpy.executors import SingleThreadedExecutor

        return SingleThreadedExecutor(context=context)
    return EventsExecutor(context=context)


def run(
    make_nodes: Callable[[], Sequence[Node]],
    arguments: Sequence[str] | None = None,
    *,
    prepare: Callable[[], None] | None = None,
) -> int:
    """Run nodes until SIGINT or SIGTERM; return the process's exit code.

    Args:
        make_nodes: builds the nodes, after ``rclpy.init``.
        arguments: command line; ``sys.argv`` when None.
        prepare: called before ``rclpy.init``, for what all threads must inherit.
    """
    try:
        warning = check_domain_id()
    except ConfigError as error:
        print(f"cannot run: {error}", file=sys.stderr, flush=True)
        return 2
    if warning:
        print(warning, file=sys.stderr, flush=True)
    asked = _SignalWaiter()
    faulthandler.enable()
    if prepare is not None:
        prepare()
    rclpy.init(
        args=list(arguments) if arguments is not None else None,
        signal_handler_options=SignalHandlerOptions.NO,
    )
    executor = make_executor()
    asked.notify = executor.wake
    nodes: list[Node] = []
    code = 0
    try:
        nodes.extend(make_nodes())
        for node in nodes:
            executor.add_node(node)
        while rclpy.ok() and not asked.received:
            executor.spin_once(timeout_sec=_SPIN_S)
    except ExternalShutdownException:
        pass
    except Exception as error:
        print(f"cannot run: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        code = 1
    finally:
        _end(nodes, executor, asked.name or "shutdown")
        # A terminal's Ctrl-C reaches a launched process twice, from the terminal and from `launch`,
        # and the interpreter's own end would let the second one kill it.
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
    return code


def _end(nodes: Sequence[Node], executor: Any, reason: str) -> None:
    guard = threading.Timer(_FORCED_EXIT_S, _forced_exit)
    guard.daemon = True
    guard.start()
    for node in nodes:
        if hasattr(node, "shut_down"):
            node.shut_down(reason)
    # Messages leave on DDS's threads. The executor rests: what a callback would use is gone.
    time.sleep(_LEAVE_S)
    for node in nodes:
        executor.remove_node(node)
        node.destroy_node()
    executor.shutdown()
    rclpy.try_shutdown()
    guard.cancel()


def _forced_exit() -> None:
    print("did not end in time: leaving without clean-up", file=sys.stderr, flush=True)
    os._exit(1)


class _SignalWaiter:
    """Hears SIGINT and SIGTERM on a thread of its own.

    Invariant: ``received`` is set before ``notify`` is called.
    """

    def __init__(self) -> None:
        self.received = False
        self.name = ""
        self.notify: Callable[[], None] = lambda: None
        self._read, write = os.pipe()
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in SIGNALS:  # also where a shell's background job inherited "ignore"
            signal.signal(number, lambda *_: None)
        threading.Thread(target=self._wait, name="signals", daemon=True).start()

    def _wait(self) -> None:
        while True:
            for number in os.read(self._read, 16):
                self.name = signal.Signals(number).name
                self.received = True
                self.notify()
