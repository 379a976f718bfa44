"""What a stage sets in an execution value, and what stood there before."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kv_action_router.contracts import SLOT, ExecutionValue, Float32Array
from kv_action_router.errors import EntryInvalidError

_GUARDED = (
    (SLOT["stage_effort_limit"], SLOT["protective_effort_limit"]),
    (SLOT["stage_velocity_limit"], SLOT["protective_velocity_limit"]),
)


class Kept(NamedTuple):
    """A number that a stage has set, and the one that it stands for."""

    drive: str
    slot: int
    before: float
    written: float


class StageSlots:
    """Slots of one execution value that a stage has set.

    Invariant: a slot that execution has changed since (a fault lowered it) is not put back.

    Attributes:
        kept: what is to be put back.
    """

    def __init__(self) -> None:
        self.kept: tuple[Kept, ...] = ()

    def taken_back(self, value: ExecutionValue) -> Float32Array:
        """Return the slots (n, 32) of a value without what the stage has set."""
        slots = np.array(value.slots)
        for drive, slot, before, written in self.kept:
            if drive in value.drives:
                row = value.drives.index(drive)
                if slots[row, slot] == np.float32(written):
                    slots[row, slot] = before
        slots.flags.writeable = False
        return slots

    def laid_over(
        self, value: ExecutionValue, asked: ExecutionValue
    ) -> tuple[Float32Array, tuple[Kept, ...]]:
        """Return the slots (n, 32) with what a stage asks for, and what is to be put back then.

        Raises:
            EntryInvalidError: naming drive, slot, limit and value.
        """
        if np.shape(asked.slots) != (len(asked.drives), len(SLOT)):
            raise EntryInvalidError(
                f"execution.slots must be ({len(asked.drives)}, {len(SLOT)}),"
                f" got {np.shape(asked.slots)}"
            )
        slots = np.array(self.taken_back(value))
        kept = []
        for drive, row in zip(asked.drives, asked.slots, strict=True):
            given = np.flatnonzero(~np.isnan(row))
            if not len(given):
                continue
            if drive not in value.drives:
                raise EntryInvalidError(
                    f"execution.drives must be of {', '.join(value.drives)}, got {drive!r}"
                )
            own = slots[value.drives.index(drive)]
            for slot in given.tolist():
                kept.append(Kept(drive, slot, float(own[slot]), float(row[slot])))
                own[slot] = row[slot]
            for limit, protective in _GUARDED:
                if own[limit] > own[protective]:
                    raise EntryInvalidError(
                        f"execution.{drive}: a stage's limit must be at most {own[protective]:g},"
                        f" which protects, got {own[limit]:g}"
                    )
        slots.flags.writeable = False
        return slots, tuple(kept)
