"""What a drive's faults teach its execution value: limits that go down by bounded steps, and stay.

A limit goes down only, by one step a fault, and never below a share of a slot of the same drive
that no step touches. So no sequence of faults takes it out of its bounds, whoever applies the
steps and wherever the value has been in between. It comes back only when somebody goes back to an
earlier version.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kv_action_router.contracts import SLOT, Float32Array


class Lesson(Enum):
    """What was learned of a drive."""

    STALL = "stall"  # it pushed against what does not yield
    SLIP = "slip"  # its wheel lost its grip
    HEAT = "heat"  # it got hot although it was not derated


@dataclass(frozen=True, slots=True)
class Adjustment:
    """One step of a limit.

    Attributes:
        slot: limit that goes down.
        step: that the limit is multiplied by.
        floor: share that it never goes below ...
        of: ... of this slot; empty = of 1.
        along: slots that keep their ratio to the limit.
        unit: of the limit, for people.
    """

    slot: str
    step: float
    floor: float
    of: str
    along: tuple[str, ...]
    unit: str

    def lowest(self, row: Float32Array) -> float:
        """Return what the limit never goes below."""
        return self.floor * (float(row[SLOT[self.of]]) if self.of else 1.0)


ADJUSTMENTS: dict[Lesson, Adjustment] = {
    # A weaker push is recognized as a stall earlier: the stall's own limit goes down with it.
    Lesson.STALL: Adjustment(
        "stage_effort_limit", 0.9, 0.5, "protective_effort_limit", ("stall_effort",), "N m"
    ),
    # What a wheel can carry falls with the square of the speed in curves and over bumps.
    Lesson.SLIP: Adjustment(
        "stage_velocity_limit", 0.9, 0.5, "protective_velocity_limit", (), "rad/s"
    ),
    # The next time it is hot it gets less.
    Lesson.HEAT: Adjustment("derated_share", 0.95, 0.4, "", (), ""),
}


def adjust(row: Float32Array, lesson: Lesson) -> str:
    """Take one step in a drive's slots (32,), in place; return it for people, empty = none.

    A limit that is at its lowest already, or was configured below it, stays.
    """
    adjustment = ADJUSTMENTS[lesson]
    index = SLOT[adjustment.slot]
    before, lowest = float(row[index]), adjustment.lowest(row)
    after = max(lowest, before * adjustment.step)
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
