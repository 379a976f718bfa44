"""The latched stop: anybody engages it, only the injector's own service clears it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StopRequest:
    """One message on the stop topic."""

    engaged: bool
    source: str
    reason: str
    monotonic_ns: int  # when it was engaged, by the sender's account; 0 = not given
    fail_safe: bool = False  # to the fail-safe value, instead of a ramp on the path


class StopLatch:
    """Whether a stop is engaged.

    Invariant: once engaged it stays engaged until :meth:`release`. A message that is not *engaged*
    never clears it. A stop that was released before and is only delivered again (the topic is
    latched) does not engage it; any other one does, whatever its time says.

    Attributes:
        fail_safe: one of the requests since it was engaged asks for the fail-safe value.
    """

    def __init__(self) -> None:
        self.engaged = False
        self.fail_safe = False
        self.source = ""
        self.reason = ""
        self._seen: deque[StopRequest] = deque(maxlen=32)
        self._released: deque[StopRequest] = deque(maxlen=32)

    def receive(self, request: StopRequest) -> bool:
        """Take one message; return whether it engaged the latch just now."""
        if not request.engaged:
            return False
        if request.monotonic_ns != 0 and request in self._released:
            return False
        self._seen.append(request)
        self.fail_safe = self.fail_safe or request.fail_safe
        if self.engaged:
            return False
        self.engaged = True
        self.source = request.source
        self.reason = request.reason
        return True

    def release(self) -> None:
        """Clear the latch."""
        self._released.extend(self._seen)
        self._seen.clear()
        self.engaged = self.fail_safe = False
        self.source = self.reason = ""
