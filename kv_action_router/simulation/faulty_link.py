"""A link that loses, delays, reorders, doubles or spoils what passes it, on demand."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import StrEnum
from typing import Generic, TypeVar

from kv_action_router.errors import InputError

M = TypeVar("M")

DELAY_NS = 100_000_000


class Fault(StrEnum):
    """What a link does to messages."""

    NONE = "none"
    SILENCE = "silence"  # loses all of them
    DELAY = "delay"  # each comes 100 ms later
    REORDER = "reorder"  # of two, the second comes first
    DUPLICATE = "duplicate"  # each comes twice
    NAN = "nan"  # each number that can be is NaN


def fault_of(text: str) -> Fault:
    """Return the fault of a name.

    Raises:
        InputError: there is none of that name.
    """
    try:
        return Fault(text)
    except ValueError as error:
        raise InputError("fault", f"one of {', '.join(Fault)}", text) from error


class FaultyLink(Generic[M]):
    """Passes messages of one topic on. One thread uses it.

    Invariant: without a fault, what goes in comes out at once and in order; messages that were
    delayed before come out at their time all the same, as they would on a real network.

    Attributes:
        fault: in force.
    """

    def __init__(self, spoil: Callable[[M], M]) -> None:
        """Make a link that works; ``spoil`` returns a message with NaN for its numbers."""
        self.fault = Fault.NONE
        self._spoil = spoil
        self._held: M | None = None
        self._delayed: deque[tuple[int, M]] = deque()

    def take(self, message: M, now_ns: int) -> list[M]:
        """Take a message in at an instant of CLOCK_MONOTONIC; return what comes out at once."""
        match self.fault:
            case Fault.SILENCE:
                return []
            case Fault.DELAY:
                self._delayed.append((now_ns + DELAY_NS, message))
                return []
            case Fault.DUPLICATE:
                return [message, message]
            case Fault.NAN:
                return [self._spoil(message)]
            case Fault.REORDER:
                before, self._held = self._held, None
                if before is not None:
                    return [message, before]
                self._held = message
                return []
        before, self._held = self._held, None  # of a reordering that is over
        return [message] if before is None else [before, message]

    def due(self, now_ns: int) -> list[M]:
        """Return the delayed messages whose time has come."""
        out = []
        while self._delayed and self._delayed[0][0] <= now_ns:
            out.append(self._delayed.popleft()[1])
        return out
