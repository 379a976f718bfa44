"""What a drive's faults teach its execution value: limits that go down by bounded steps, and stay.

A limit goes down only, by one step a fault, and never below a share of a slot of the same drive
that no step touches. So no sequence of faults takes it out of its bounds, whoever applies the
steps and wherever the value has been in between. It comes back only when somebody goes back to an
earlier version.

Only efforts are limited that way: a drive that may give less lags behind and is seen to. A lower
limit of speed or acceleration would make the injector refuse motions that are planned for more.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from kv_action_router.contracts import SLOT, Float32Array


class Lesson(Enum):
    """What was learned of a drive."""

    STALL = "stall"  # it pushed against what does not yield
    SLIP = "slip"  # its wheel lost its grip
    HEAT = "heat"  # it got hot, and has cooled down since


@dataclass(frozen=True, slots=True)
class Adjustment:
    """One step of a limit.

    Attributes:
        slot: limit that goes down.
        floor: share that it never goes below ...
        of: ... of this slot; empty = of 1.
        step: that the limit is multiplied by.
        along: slots that keep their ratio to the limit.
        unit: of the limit, for people.
    """

    slot: str
    floor: float
    of: str
    step: float
    along: tuple[str, ...] = ()
    unit: str = ""

    def lowest(self, row: Float32Array) -> float:
        """Return what the limit never goes below."""
        return self.floor * (float(row[SLOT[self.of]]) if self.of else 1.0)


_EFFORT = ("stage_effort_limit", 0.5, "protective_effort_limit")
# A drive that pushes less must be recognized as stalled earlier.
_STALL_TOO = ("stall_effort",)
ADJUSTMENTS: dict[Lesson, Adjustment] = {
    Lesson.STALL: Adjustment(*_EFFORT, 0.9, _STALL_TOO, "N m"),
    Lesson.SLIP: Adjustment(*_EFFORT, 0.9, _STALL_TOO, "N m"),
    Lesson.HEAT: Adjustment("derated_share", 0.4, "", 0.95),
}


def adjust(row: Float32Array, lesson: Lesson) -> str:
    """Take one step in a drive's slots (32,), in place; return it for people, empty = none.

    A limit that is at its lowest already, or was configured below it, stays.
    """
    adjustment = ADJUSTMENTS[lesson]
    index = SLOT[adjustment.slot]
    before, lowest = float(row[index]), adjustment.lowest(row)
    after = float(np.float32(max(lowest, before * adjustment.step)))  # as it will stand there
    if not after < before:
        return ""
    row[index] = after
    for slot in adjustment.along:
        row[SLOT[slot]] *= after / before
    unit = f" {adjustment.unit}" if adjustment.unit else ""
    return (
        f"{adjustment.slot} {before:.4g} -> {after:.4g}{unit} after {lesson.value}"
        f" (not below {lowest:.4g})"
    )
