"""Rows without load, out of the streams that the monitor reads anyway."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from kv_action_router.contracts import (
    DriveSample,
    ExecutionFeedback,
    FloatArray,
    InjectorState,
    TaskState,
)
from kv_action_router.monitoring.calibration.rows import Column, RowStore

MOVING = 0.05  # [rad/s] fastest joint of a row that is worth keeping
WINDOW = 7200.0  # [s]
SHORTEST_WINDOW = 600.0  # [s] within which some work is done, however often one calibrates
_LONGEST_NS = 60_000_000  # between two feedbacks
_LED = (InjectorState.HOLD, InjectorState.FOLLOW, InjectorState.RAMP)


class NoLoadCollector:
    """Keeps what the drives did while the arm moved and touched nothing.

    A drive sample is joined to the four feedbacks around it: position and velocity are those
    between the two next to it, the acceleration is that between the changes of velocity before,
    across and behind it, so that it lags behind nothing. A sample counts only when

    * the injector led the joints all the while, and no drive was braked;
    * some joint moved by at least ``MOVING``;
    * the tared force at the tool was below ``contact_force``; where no force is measured, the stage
      under way allowed no contact;
    * the drives told their currents.

    Rows older than ``window`` do not count: drives age. They are kept in two halves, of which the
    older one goes when the newer one spans half the window, so that between half and all of it is
    covered; both are even samples of what came in their time.

    :meth:`take` belongs to the monitor's thread and never waits; the other methods may be called
    from another one. While that one copies, a row is left out.
    """

    def __init__(self, drives: Sequence[str], contact_force: float, window: float = WINDOW) -> None:
        """Begin without rows.

        Args:
            drives: joints of the arm, in its model's order (n).
            contact_force: from which on the tool touches something [N].
            window: age that rows may reach [s].
        """
        self._names = tuple(drives)
        self._contact_force = contact_force
        self._half_ns = round(window * 0.5e9)
        self._newer, self._older = RowStore(len(self._names)), RowStore(len(self._names))
        self._newer_ns = 0  # receipt of the newer half's first row [ns]
        self._lock = threading.Lock()
        self._row: FloatArray = np.zeros((len(Column), len(self._names)))
        self._orders: dict[tuple[str, ...], list[int] | None] = {}
        self._last: deque[ExecutionFeedback] = deque(maxlen=4)
        self._drives: deque[DriveSample] = deque(maxlen=4)  # that wait for feedback behind them
        self._allowed_contact = False
        self.execution_version = 0  # that the injector said last

    def reset(self) -> None:
        """Forget what is half known, as on activation; the rows stay."""
        self._last.clear()
        self._drives.clear()
        self._allowed_contact = False

    def take(self, samples: Iterable[object], force: float) -> None:
        """Take samples of all streams; ``force`` at the tool [N], NaN = not measured."""
        for sample in samples:
            kind = type(sample)
            if kind is ExecutionFeedback:
                self._on_feedback(sample, force)  # type: ignore[arg-type]
            elif kind is DriveSample:
                self._drives.append(sample)  # type: ignore[arg-type]
            elif kind is TaskState:
                self._allowed_contact = bool(sample.allowed_contact)  # type: ignore[attr-defined]

    def rows(self) -> FloatArray:
        """Return the rows that are kept (k, len(Column), n)."""
        with self._lock:
            return np.concatenate((self._older.rows(), self._newer.rows()))

    def clear(self) -> None:
        """Begin another collection."""
        with self._lock:
            self._older.clear()
            self._newer.clear()

    # --- inside -------------------------------------------------------------------------------

    def _on_feedback(self, feedback: ExecutionFeedback, force: float) -> None:
        last, waiting = self._last, self._drives
        if last and not 0 < feedback.monotonic_ns - last[-1].monotonic_ns <= _LONGEST_NS:
            if feedback.monotonic_ns == last[-1].monotonic_ns:
                return  # an event of the tick that was told already
            last.clear()
        last.append(feedback)
        self.execution_version = feedback.execution_version
        while waiting and len(last) == last.maxlen and waiting[0].receipt_ns < last[2].monotonic_ns:
            drives = waiting.popleft()
            if drives.receipt_ns < last[1].monotonic_ns or self._touches(force):
                continue
            if self._fill(drives) and self._lock.acquire(blocking=False):
                try:
                    self._keep(drives.receipt_ns)
                finally:
                    self._lock.release()

    def _keep(self, now_ns: int) -> None:
        if self._newer.seen and not 0 <= now_ns - self._newer_ns < self._half_ns:
            self._newer, self._older = self._older, self._newer
            self._newer.clear()
        if not self._newer.seen:
            self._newer_ns = now_ns
        self._newer.add(self._row)

    def _touches(self, force: float) -> bool:
        if force != force:  # not measured
            return self._allowed_contact
        return force >= self._contact_force

    def _fill(self, drives: DriveSample) -> bool:
        """Write the row of a drive sample amid the last feedbacks; return whether it counts."""
        last, now_ns = self._last, drives.receipt_ns
        before, after = last[1], last[2]
        joints, motors = self._order(after.joints), self._order(drives.names)
        if joints is None or motors is None:
            return False
        if any(told.joints != after.joints or told.state not in _LED for told in last):
            return False
        if len(drives.current) != len(drives.names) or bool(drives.braked.any()):
            return False
        share = _share(now_ns, before.monotonic_ns, after.monotonic_ns)
        row = self._row
        row[Column.VELOCITY] = _between(before.velocity, after.velocity, share)[joints]
        if not np.abs(row[Column.VELOCITY]).max() >= MOVING:
            return False
        row[Column.POSITION] = _between(before.position, after.position, share)[joints]
        row[Column.ACCELERATION] = self._acceleration(now_ns)[joints]
        row[Column.CURRENT] = drives.current[motors]
        for column, values in (
            (Column.VOLTAGE, drives.voltage),
            (Column.TEMPERATURE, drives.temperature),
        ):
            row[column] = values[motors] if len(values) == len(drives.names) else np.nan
        return bool(np.isfinite(row[: Column.VOLTAGE]).all())

    def _acceleration(self, now_ns: int) -> FloatArray:
        """Return the acceleration at an instant between the middle two feedbacks [rad/s^2]."""
        changes, middles_ns = [], []
        for before, after in pairwise(self._last):
            span_ns = after.monotonic_ns - before.monotonic_ns
            changes.append((after.velocity - before.velocity) / (span_ns * 1e-9))
            middles_ns.append(before.monotonic_ns + span_ns // 2)
        first = 0 if now_ns < middles_ns[1] else 1
        share = _share(now_ns, middles_ns[first], middles_ns[first + 1])
        return _between(changes[first], changes[first + 1], share)

    def _order(self, names: tuple[str, ...]) -> list[int] | None:
        """Return the places of the arm's joints among names; None = one is missing."""
        if names not in self._orders:
            if len(self._orders) >= 16:  # a publisher that invents names must not grow this
                self._orders.clear()
            complete = all(name in names for name in self._names)
            self._orders[names] = [names.index(n) for n in self._names] if complete else None
        return self._orders[names]


def _share(now_ns: int, begin_ns: int, end_ns: int) -> float:
    return (now_ns - begin_ns) / (end_ns - begin_ns)


def _between(before: FloatArray, after: FloatArray, share: float) -> FloatArray:
    between: FloatArray = before + share * (after - before)
    return between
