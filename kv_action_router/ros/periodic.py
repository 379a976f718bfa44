"""Periodic work on a thread of its own.

A timer of the events executor costs about a millisecond a call, since rclpy inspects the callback's
signature each time (measured: 7 % of a core for a heartbeat). A sleeping thread costs a twentieth.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from kv_action_router import realtime

_ALIVE_PERIODS, _ALIVE_S = 5, 0.1  # whichever is longer: a preempted thread is no dead one


class PeriodicThread:
    """Calls ``work`` at absolute times until it is stopped; lost periods are not made up for.

    Invariant: ``work`` does not run any more once :meth:`stop` has returned.

    Attributes:
        on_round: called with CLOCK_MONOTONIC [ns] behind the work of each round; must not raise.
    """

    def __init__(
        self,
        period: float,
        work: Callable[[], None],
        on_error: Callable[[Exception], None],
        *,
        name: str,
        priority: int = 0,
    ) -> None:
        """Prepare; nothing runs before :meth:`start`.

        Args:
            period: [s].
            work: called on the thread.
            on_error: receives what ``work`` raised; the thread goes on.
            name: of the thread.
            priority: SCHED_FIFO priority of the thread where that is permitted; 0 = the process's.
        """
        self._period = period
        self._priority = priority
        self._work = work
        self._on_error = on_error
        self.on_round: Callable[[int], None] | None = None
        self._ended = threading.Event()
        self._round_ns = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._round_ns = time.monotonic_ns()
        self._thread.start()

    def stop(self) -> None:
        """Stop and join the thread."""
        self._ended.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def alive(self, now_ns: int) -> bool:
        """Return whether the thread has come round lately."""
        limit = max(_ALIVE_PERIODS * self._period, _ALIVE_S) * 1e9
        return self._thread.is_alive() and now_ns - self._round_ns < limit

    def _run(self) -> None:
        if self._priority:
            realtime.schedule_thread(self._priority)
        due = time.monotonic()
        while not self._ended.is_set():
            self._round_ns = time.monotonic_ns()
            try:
                self._work()
            except Exception as error:
                self._on_error(error)
            if self.on_round is not None:
                self.on_round(time.monotonic_ns())
            now = time.monotonic()
            due += self._period * (1 + max(0.0, now - due) // self._period)
            # time.sleep, since a timed wait on the event polls; the end waits for one period
            time.sleep(max(0.0, due - time.monotonic()))
