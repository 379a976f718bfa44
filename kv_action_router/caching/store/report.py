"""What statistics tell about the cache's file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoreReport:
    """State of a store, for statistics.

    Attributes:
        stored: what is learned reaches the disk.
        where: path of the file, or why there is none.
        loaded, quarantined, lost: entries found good, found bad and kept aside, not found.
        unsaved: changes that the disk does not have yet.
        saves, saves_failed: batches.
    """

    stored: bool = False
    where: str = "the cache is kept in memory"
    loaded: int = 0
    quarantined: int = 0
    lost: int = 0
    unsaved: int = 0
    saves: int = 0
    saves_failed: int = 0


NOT_STORED = StoreReport()
