"""The table of present signal values, each with its source and its receipt time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from kv_action_router.errors import MonitoringError
from kv_action_router.tasks.conditions import near_names
from kv_action_router.tasks.signals import SIGNALS, SignalInfo

NO_SOURCE = ""
_NAN = math.nan


class _Cell:
    """One value and its receipt time."""

    __slots__ = ("receipt_ns", "value")

    def __init__(self) -> None:
        self.value = _NAN
        self.receipt_ns = 0


class SignalTable:
    """Newest value of every signal, one for each source (joint, drive, node, topic).

    Invariant: a name is in the table of known signals; what is older than the signal's
    ``stale_after_ms`` reads as NaN.
    """

    def __init__(self, infos: Mapping[str, SignalInfo] = SIGNALS) -> None:
        self._cells: dict[str, dict[str, _Cell]] = {name: {} for name in infos}
        self._stale_ns = {name: int(info.stale_after_ms * 1e6) for name, info in infos.items()}
        self._changed: set[str] = set()

    @property
    def names(self) -> tuple[str, ...]:
        """Known signals."""
        return tuple(self._cells)

    def put(self, name: str, value: float, receipt_ns: int, source: str = NO_SOURCE) -> None:
        """Store a sample; NaN = not measured.

        Raises:
            MonitoringError: the signal is not known.
        """
        try:
            cells = self._cells[name]
        except KeyError:
            hint = near_names(name, self._cells)
            raise MonitoringError(f"signal must be known, got {name!r}{hint}") from None
        cell = cells.get(source)
        if cell is None:
            cell = cells[source] = _Cell()
        cell.value = value
        cell.receipt_ns = receipt_ns
        self._changed.add(name)

    def take_changed(self) -> set[str]:
        """Return the signals that were written since the last call."""
        changed, self._changed = self._changed, set()
        return changed

    def forget(self, name: str, source: str | None = None) -> None:
        """Remove a signal's value of one source, or of all."""
        if source is None:
            self._cells[name].clear()
        else:
            self._cells[name].pop(source, None)

    def clear(self) -> None:
        """Remove every value."""
        for cells in self._cells.values():
            cells.clear()

    def sources(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the sources that a condition on these signals is judged for, one by one."""
        found = dict.fromkeys(
            source for name in names for source in self._cells[name] if source != NO_SOURCE
        )
        return tuple(found) or (NO_SOURCE,)

    def value(self, name: str, now_ns: int, *, since_ns: int = 0, source: str = NO_SOURCE) -> float:
        """Return a signal's value; NaN = not measured, stale, or received before ``since_ns``.

        Args:
            name: of the signal.
            now_ns: CLOCK_MONOTONIC [ns].
            since_ns: older samples don't count [ns].
            source: which one; none = the largest over all sources, NaN if one of them is.
        """
        cells = self._cells.get(name)
        if not cells:
            return _NAN
        oldest = max(now_ns - self._stale_ns[name], since_ns)
        cell = cells.get(source) or cells.get(NO_SOURCE)
        if cell is not None:
            return cell.value if cell.receipt_ns >= oldest else _NAN
        if source != NO_SOURCE:
            return _NAN
        largest = -math.inf
        for cell in cells.values():
            if cell.receipt_ns < oldest or cell.value != cell.value:
                return _NAN
            largest = max(largest, cell.value)
        return largest

    def newest(self, name: str) -> list[float]:
        """Return the newest value of every source, however old."""
        return [cell.value for cell in self._cells[name].values()]

    def receipt_ns(self, names: Iterable[str], source: str = NO_SOURCE) -> int:
        """Return the receipt time of the oldest of these signals' newest samples; 0 = none yet."""
        oldest = -1
        for name in names:
            cells = self._cells.get(name)
            if not cells:
                return 0
            cell = cells.get(source) or cells.get(NO_SOURCE)
            if cell is not None:
                receipt = cell.receipt_ns
            elif source == NO_SOURCE:
                receipt = min(cell.receipt_ns for cell in cells.values())
            else:
                return 0
            if oldest < 0 or receipt < oldest:
                oldest = receipt
        return max(oldest, 0)


class SignalView:
    """What a condition sees of the table: one source, at one instant, since another.

    Implements :class:`~kv_action_router.tasks.conditions.SignalReader`; its owner moves it along
    instead of making a new one on each tick.
    """

    __slots__ = ("_table", "now_ns", "since_ns", "source")

    def __init__(self, table: SignalTable) -> None:
        self._table = table
        self.now_ns = 0
        self.since_ns = 0
        self.source = NO_SOURCE

    def get(self, name: str, /) -> float:
        """Return the signal's value, NaN = not measured."""
        return self._table.value(name, self.now_ns, since_ns=self.since_ns, source=self.source)
