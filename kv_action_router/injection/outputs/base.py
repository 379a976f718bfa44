"""What every output adapter has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

NewMessage = Callable[[str], Any]  # "package/msg/Name" -> a new message


class Output(Protocol):
    """Writes commands into messages of one type; the node owns message and publisher.

    Attributes:
        topic: relative name.
        message_type: ``package/msg/Name``.
        stamped: whether the message has a header whose stamp the sender fills in.
        has_own_timeout: whether what receives the message brakes by itself when no more come.
    """

    topic: str
    message_type: str
    stamped: bool
    has_own_timeout: bool

    def prepare(self, message: Any, new: NewMessage) -> None:
        """Give a new message its size and names; called once."""

    def fill(self, message: Any, values: Sequence[float]) -> None:
        """Write one command (n,), in the interface's SI unit, in place."""
