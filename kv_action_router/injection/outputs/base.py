"""What every output adapter has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

NewMessage = Callable[[str], Any]  # "package/msg/Name" -> a new message


class Output(Protocol):
    """Says where commands go in messages of one type; the node writes and publishes them.

    Attributes:
        topic: relative name.
        message_type: ``package/msg/Name``.
        fields: dotted names of the fields that a command (n,) is written to, in the interface's SI
            unit: one array that holds all values, or one number for each.
        stamped: whether the message has a header whose stamp the sender fills in.
        sent_field: number that takes CLOCK_MONOTONIC of the sending, modulo 2^32 [us], where there
            is no header; empty = none.
        has_own_timeout: whether what receives the message brakes by itself when no more come.
    """

    topic: str
    message_type: str
    fields: tuple[str, ...]
    stamped: bool
    sent_field: str
    has_own_timeout: bool

    def prepare(self, message: Any, new: NewMessage) -> None:
        """Give a new message its size and names; called once."""
