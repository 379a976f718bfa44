"""The table of present signal values, each with its source and its receipt time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from kv_action_router.errors import MonitoringError
from kv_action_router.tasks.conditions import near_names
from kv_action_router.tasks.signals import SIGNALS, SignalInfo

NO_SOURCE = ""
NEVER = 2**63 - 1  # [ns] an instant that does not come
_NAN = math.nan


class _Cell:
    """One value and its receipt time."""

    __slots__ = ("receipt_ns", "value")

    def __init__(self) -> None:
        self.value = _NAN
        self.receipt_ns = 0


class _Signal:
    """All values of one signal, by source, and which of them are a change."""

    __slots__ = ("cells", "high", "loud", "low", "stale_ns")

    def __init__(self, stale_ns: int) -> None:
        self.cells: dict[str, _Cell] = {}
        self.stale_ns = stale_ns
        self.loud = True  # every sample is a change; else only one outside of low to high
        self.low, self.high = -math.inf, math.inf


class SignalTable:
    """Newest value of every signal, one for each source (joint, drive, node, topic).

    Invariant: a name is in the table of known signals; what is older than the signal's
    ``stale_after_ms`` reads as NaN.
    """

    def __init__(self, infos: Mapping[str, SignalInfo] = SIGNALS) -> None:
        self._signals = {
            name: _Signal(int(info.stale_after_ms * 1e6)) for name, info in infos.items()
        }
        self._changed: set[str] = set()

    @property
    def names(self) -> tuple[str, ...]:
        """Known signals."""
        return tuple(self._signals)

    def set_bands(self, bands: Mapping[str, tuple[float, float]]) -> None:
        """Say which samples are a change from now on.

        Args:
            bands: low and high of signals of which only a sample that is not strictly between the
                two is a change, and NaN is none; of all other signals every sample is one.
        """
        for name, signal in self._signals.items():
            band = bands.get(name)
            signal.loud = band is None
            signal.low, signal.high = band or (-math.inf, math.inf)

    def put(self, name: str, value: float, receipt_ns: int, source: str = NO_SOURCE) -> None:
        """Store a sample; NaN = not measured.

        Raises:
            MonitoringError: the signal is not known.
        """
        try:
            signal = self._signals[name]
        except KeyError:
            hint = near_names(name, self._signals)
            raise MonitoringError(f"signal must be known, got {name!r}{hint}") from None
        cell = signal.cells.get(source)
        if cell is None:
            cell = signal.cells[source] = _Cell()
        cell.value = value
        cell.receipt_ns = receipt_ns
        if signal.loud or value >= signal.high or value <= signal.low:
            self._changed.add(name)

    def take_changed(self) -> set[str]:
        """Return the signals that were changed since the last call."""
        changed = self._changed
        if changed:
            self._changed = set()
        return changed

    def forget(self, name: str, source: str | None = None) -> None:
        """Remove a signal's value of one source, or of all."""
        signal = self._signals[name]
        if not signal.cells:
            return
        if source is None:
            signal.cells.clear()
        else:
            signal.cells.pop(source, None)
        if signal.loud:
            self._changed.add(name)

    def clear(self) -> None:
        """Remove every value."""
        for signal in self._signals.values():
            signal.cells.clear()

    def sources(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the sources that a condition on these signals is judged for, one by one."""
        found = dict.fromkeys(
            source for name in names for source in self._signals[name].cells if source != NO_SOURCE
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
        signal = self._signals.get(name)
        if signal is None or not signal.cells:
            return _NAN
        cells = signal.cells
        oldest = now_ns - signal.stale_ns
        if since_ns > oldest:
            oldest = since_ns
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
        return [cell.value for cell in self._signals[name].cells.values()]

    def turns_stale_ns(self, names: Iterable[str], now_ns: int) -> int:
        """Return the last instant at which all is still fresh that is now [ns]."""
        earliest = NEVER
        for name in names:
            signal = self._signals[name]
            for cell in signal.cells.values():
                until = cell.receipt_ns + signal.stale_ns
                if now_ns <= until < earliest:
                    earliest = until
        return earliest

    def receipt_ns(self, names: Iterable[str], source: str = NO_SOURCE) -> int:
        """Return the receipt time of the oldest of these signals' newest samples; 0 = none yet."""
        oldest = -1
        for name in names:
            signal = self._signals.get(name)
            if signal is None or not signal.cells:
                return 0
            cells = signal.cells
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
