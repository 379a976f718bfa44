"""Held threshold: judges one condition over signals, for each of their sources on its own."""

from __future__ import annotations

from kv_action_router.monitoring.detectors.base import Detection
from kv_action_router.monitoring.signals import SignalTable, SignalView
from kv_action_router.tasks.conditions import Condition, HeldCondition
from kv_action_router.tasks.predicates import JUMP


class HeldThreshold:
    """Reports the moment at which a condition begins to be satisfied.

    Invariant: between two detections of one source the condition was not satisfied for it at least
    once; with a ``clear_limit`` the signal has come back over the whole hysteresis band.
    """

    def __init__(self, condition: Condition) -> None:
        self.condition = condition
        self.signals = condition.signals
        predicates = condition.predicates
        self._alone = predicates[0] if len(predicates) == 1 else None
        if self._alone is not None and self._alone.operator == JUMP:
            self._alone = None
        self._held: dict[str, HeldCondition] = {}
        self._active: dict[str, Detection] = {}
        self.engaged = False  # some source is holding, so that silence must be noticed

    @property
    def active(self) -> dict[str, Detection]:
        """Detections that still hold, by source; renewed by each :meth:`update`."""
        return self._active

    def reset(self) -> None:
        """Forget everything."""
        self._held.clear()
        self._active.clear()
        self.engaged = False

    def update(self, table: SignalTable, view: SignalView) -> list[Detection]:
        """Judge the newest samples.

        Args:
            table: of the signals.
            view: of that table, at the present instant; its source is changed here.

        Returns:
            What began to hold just now, one a source.
        """
        names = self.signals
        if not self.engaged and self._alone is not None:
            # Nothing holds and no value could begin to: the usual case, and a cheap one.
            predicate = self._alone
            if not any(map(predicate.holds, table.newest(predicate.signal))):
                return []
        begun: list[Detection] = []
        sources = table.sources(names)
        self.engaged = False
        for source in sources:
            held = self._held.get(source)
            if held is None:
                held = self._held[source] = HeldCondition(self.condition)
            receipt_ns = table.receipt_ns(names, source)
            view.source = source
            satisfied = held.update(view, receipt_ns)
            self.engaged = self.engaged or held.holding
            if not satisfied:
                self._active.pop(source, None)
                continue
            detection = Detection(
                self.condition.name,
                source,
                self.condition.signal,
                held.value,
                self.condition.limit,
                held.held_ns / 1e9,
                receipt_ns,
            )
            if source not in self._active:
                begun.append(detection)
            self._active[source] = detection
        if len(self._held) > len(sources):  # a source has left the table
            for source in [source for source in self._held if source not in sources]:
                del self._held[source]
                self._active.pop(source, None)
        return begun
