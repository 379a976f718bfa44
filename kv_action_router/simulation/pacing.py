"""Real time: absolute deadlines of the physics loop, and how far it falls behind."""

from __future__ import annotations

from collections import deque


class Rate:
    """Says in which physics steps a stream of a given rate is due; exact over any time.

    Invariant: after n steps the stream was due round-up(n * rate * step) times.
    """

    def __init__(self, rate: float, step: float) -> None:
        """Set the stream's rate [Hz] and the physics step [s]."""
        self._per_step = rate * step
        self._count = 0

    def due(self, steps: int) -> bool:
        """Return whether the stream is due in this step; asked once a step (or less often)."""
        if steps * self._per_step < self._count - 1e-9:
            return False
        self._count = int(steps * self._per_step + 1e-9) + 1
        return True


class Pace:
    """Deadlines of ticks on CLOCK_MONOTONIC.

    A tick that is late by no more than ``catch_up`` is followed by faster ones until the lost time
    is made up; what is beyond is given up: simulated time then falls behind real time.
    """

    def __init__(self, period_ns: int, catch_up_ns: int, now_ns: int) -> None:
        """Start at ``now_ns``; the first tick is due one period later."""
        self._period_ns = period_ns
        self._catch_up_ns = catch_up_ns
        self.due_ns = now_ns + period_ns
        self.lost_ns = 0  # real time that was given up since the start [ns]

    def advance(self, now_ns: int) -> None:
        """Set the next deadline; ``now_ns`` is when the present tick began."""
        behind = now_ns - self.due_ns
        self.due_ns += self._period_ns
        if behind > self._catch_up_ns:
            given_up = behind - self._catch_up_ns
            self.lost_ns += given_up
            self.due_ns += given_up


class RealTimeFactor:
    """Simulated over real time, over a sliding window."""

    def __init__(self, window_ns: int = 1_000_000_000) -> None:
        """Set the window [ns]."""
        self._window_ns = window_ns
        self._marks: deque[tuple[int, float]] = deque()

    def update(self, now_ns: int, simulated: float) -> float:
        """Note the simulated time [s] at ``now_ns``; return the factor (1 at the beginning)."""
        marks = self._marks
        marks.append((now_ns, simulated))
        while len(marks) > 2 and now_ns - marks[1][0] >= self._window_ns:
            marks.popleft()
        first_ns, first = marks[0]
        elapsed = (now_ns - first_ns) * 1e-9
        if elapsed < 0.5 * self._window_ns * 1e-9:
            return 1.0
        return (simulated - first) / elapsed
