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
    FROZEN = "frozen"  # the last one again and again
    NAN = "nan"  # each number that can be is NaN
    BLACK = "black"  # images show nothing
    HOT = "hot"  # drives are at 90 degC
    SET_BACK = "set_back"  # header stamps are of a clock that was set back by an hour


CONTENTS = (Fault.NAN, Fault.BLACK, Fault.HOT, Fault.SET_BACK)  # change what a message says


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

    def __init__(self, alter: Callable[[Fault, M], M]) -> None:
        """Make a link that works; ``alter`` returns a message with one of ``CONTENTS``."""
        self.fault = Fault.NONE
        self._alter = alter
        self._last: M | None = None
        self._held: M | None = None
        self._delayed: deque[tuple[int, M]] = deque()

    def take(self, message: M, now_ns: int) -> list[M]:
        """Take a message in at an instant of CLOCK_MONOTONIC; return what comes out at once."""
        if self.fault in CONTENTS:
            return [self._alter(self.fault, message)]
        match self.fault:
            case Fault.FROZEN:
                self._last = message if self._last is None else self._last
                return [self._last]
            case Fault.SILENCE:
                return []
            case Fault.DELAY:
                self._delayed.append((now_ns + DELAY_NS, message))
                return []
            case Fault.DUPLICATE:
                return [message, message]
            case Fault.REORDER:
                before, self._held = self._held, None
                if before is not None:
                    return [message, before]
                self._held = message
                return []
        self._last = message
        before, self._held = self._held, None  # of a reordering that is over
        return [message] if before is None else [before, message]

    def due(self, now_ns: int) -> list[M]:
        """Return the delayed messages whose time has come."""
        out = []
        while self._delayed and self._delayed[0][0] <= now_ns:
            out.append(self._delayed.popleft()[1])
        return out
