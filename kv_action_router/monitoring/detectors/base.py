"""What a detector is, and what it hands over when it has seen something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kv_action_router.monitoring.signals import SignalTable


class Detector(Protocol):
    """Turns samples into named signals.

    A detector only measures; ``config/conditions.yaml`` says from which value on, and with which
    hysteresis, something is wrong, and :class:`~.held.HeldThreshold` judges it.
    """

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Write signals that change with time alone (ages, counts of the last second)."""

    def reset(self) -> None:
        """Forget everything, as on activation."""


@dataclass(frozen=True, slots=True)
class Detection:
    """A condition that has become true, with its number.

    Attributes:
        condition: name of the condition.
        source: joint, drive, node or topic at fault; empty = the robot as a whole.
        signal: that the condition reports.
        value: of the signal now.
        limit: that it crossed.
        held: how long the condition has held [s].
        receipt_ns: receipt of the deciding sample [ns].
    """

    condition: str
    source: str
    signal: str
    value: float
    limit: float
    held: float
    receipt_ns: int
