"""A thread that ticks at absolute deadlines."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from kv_action_router import realtime
from kv_action_router.injection.lateness import LatenessMeter

_STALL_NS = 100_000_000


class DeadlineLoop:
    """Calls ``tick(now_ns)`` once a period.

    Deadlines are absolute, so that lateness does not add up; periods that are over already are
    skipped and counted, never made up for. An exception of a tick goes to ``on_error`` and the loop
    goes on.

    Attributes:
        meter: wake-up lateness.
    """

    def __init__(
        self,
        period_ns: int,
        tick: Callable[[int], None],
        on_error: Callable[[Exception], None],
        *,
        priority: int = 0,
        before_stop: Callable[[], None] | None = None,
        name: str = "control",
    ) -> None:
        """Prepare; nothing runs before :meth:`start`.

        Args:
            period_ns: [ns].
            tick: the work of a period; called with CLOCK_MONOTONIC [ns].
            on_error: receives what ``tick`` raised, on the loop's thread.
            priority: SCHED_FIFO priority of the thread; 0 = that of the process.
            before_stop: called by :meth:`stop` while the loop still runs.
            name: of the thread.
        """
        self._period_ns = period_ns
        self._tick = tick
        self._on_error = on_error
        self._priority = priority
        self._before_stop = before_stop
        self._running = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._last_ns = time.monotonic_ns()
        self.meter = LatenessMeter(self._last_ns)

    def start(self) -> None:
        """Start the thread."""
        self._running = True
        self._last_ns = time.monotonic_ns()
        self._thread.start()

    def stop(self) -> None:
        """Stop and join; no tick runs any more when this returns."""
        if self._running and self._before_stop is not None and self._thread.is_alive():
            self._before_stop()
        self._running = False
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def alive(self, now_ns: int) -> bool:
        """Return whether the loop has come round lately."""
        return self._thread.is_alive() and now_ns - self._last_ns < _STALL_NS

    def _run(self) -> None:
        if self._priority > 0:
            realtime.schedule_thread(self._priority)
        self.meter.realtime = realtime.is_realtime()
        clock, sleep, period = time.monotonic_ns, time.sleep, self._period_ns
        meter, tick = self.meter, self._tick
        due = clock() + period
        while self._running:
            remaining = due - clock()
            if remaining > 0:
                sleep(remaining * 1e-9)
            now = clock()
            self._last_ns = now
            late = now - due
            meter.record(now, late)
            if late >= period:
                skipped = late // period
                meter.missed += skipped
                due += skipped * period
            try:
                tick(now)
            except Exception as error:
                self._on_error(error)
            due += period
