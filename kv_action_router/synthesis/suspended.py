"""Motions that were interrupted by a sequence, kept until their task goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kv_action_router.synthesis.execution import Execution
from kv_action_router.synthesis.reference import Reference


class Suspended(NamedTuple):
    """A decision whose motion was laid aside, and the reference, which stands at its phase."""

    execution: Execution
    reference: Reference


class SuspendedMotions:
    """One place for each task beneath the innermost one.

    Invariant: there are never more places than tasks beneath. What was taken up is no longer kept
    here, and is joined to where the robot is by the next decision.

    Attributes:
        taken_up: motion that goes on as soon as its task's decision is there; None = none.
    """

    def __init__(self) -> None:
        self._places: list[Suspended | None] = []
        self.taken_up: Suspended | None = None

    def clear(self) -> None:
        """Forget everything."""
        self._places.clear()
        self.taken_up = None

    def phase(self, place: int, now_ns: int) -> float | None:
        """Return the phase at which the motion of a task stands, or None: it has none here."""
        kept = self._places[place] if place < len(self._places) else None
        return None if kept is None else kept.reference.phase(now_ns)

    def lay_aside(self, motion: Suspended | None, begun: Sequence[bool]) -> None:
        """Keep the motion under way for its task; the last task is about to begin.

        A motion that was taken up and has not gone on yet is kept as it was.

        Args:
            motion: of the innermost task that has begun; None = it has none.
            begun: whether each task on the stack has begun; the last one has not.
        """
        if self.taken_up is not None:
            motion, self.taken_up = self.taken_up, None
        beneath = len(begun) - 1
        owner = max((i for i in range(beneath) if begun[i]), default=-1)
        del self._places[max(owner, 0) :]
        while len(self._places) < beneath:
            self._places.append(motion if len(self._places) == owner else None)

    def take_up(self, tasks: int) -> Suspended | None:
        """Return what the task that lies on top now had under way, of ``tasks`` on the stack."""
        place = tasks - 1
        self.taken_up = self._places[place] if place < len(self._places) else None
        del self._places[place:]
        return self.taken_up
