"""Slots of fixed-capacity tables: how a value is replaced while another thread reads.

A published slot is never written. A new value goes into a free slot, and becomes visible by one
store of an integer (its partition, or a pointer to it). So a reader never waits for a writer,
wherever the writer was interrupted; it only has to find out whether a slot that it has just read
was given away in the meantime, and then looks again.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt

SPARE = 8  # slots beyond the capacity: room for a new value beside the one that it replaces


class SlotPool:
    """Gives out slots, longest unused first, and remembers when each was given out last.

    Invariant: a slot is written only after :meth:`claim` and before it is published.
    One thread claims and releases; any thread may read ``stamp`` and ask :meth:`intact`.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.size = capacity + SPARE
        self.stamp = 0
        self._claimed_at: npt.NDArray[np.int64] = np.zeros(self.size, dtype=np.int64)
        self._unused = 0  # slots from here on were never given out
        self._free: deque[int] = deque()

    @property
    def used(self) -> int:
        """Slots that are claimed."""
        return self._unused - len(self._free)

    def claim(self) -> int:
        """Return a free slot for writing.

        Raises:
            IndexError: there is none; the caller keeps to the capacity.
        """
        if self._unused < self.size:
            slot = self._unused
            self._unused += 1
        else:
            slot = self._free.popleft()
        # The slot is marked before the stamp moves: a reader that starts in between takes the slot
        # for changed, which costs it one more look, never a torn value.
        self._claimed_at[slot] = self.stamp + 1
        self.stamp += 1
        return slot

    def claim_all(self, count: int) -> npt.NDArray[np.intp]:
        """Return so many free slots for writing (count,).

        Raises:
            IndexError: there are not so many; the caller keeps to the capacity.
        """
        fresh = min(count, self.size - self._unused)
        slots = np.arange(self._unused, self._unused + count, dtype=np.intp)
        slots[fresh:] = [self._free.popleft() for _ in range(count - fresh)]
        self._unused += fresh
        self._claimed_at[slots] = self.stamp + 1  # first, as in :meth:`claim`
        self.stamp += 1
        return slots

    def release(self, slot: int) -> None:
        """Give a slot back; it must not be visible to readers any more."""
        self._free.append(slot)

    def intact(self, slot: int, since: int) -> bool:
        """Return whether a slot, published when ``stamp`` was ``since``, still holds that value."""
        return bool(self._claimed_at[slot] <= since)
