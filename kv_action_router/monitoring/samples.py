"""What the monitor takes in beside the contracts' samples."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

LIFECYCLE_UNCONFIGURED = 1  # lifecycle_msgs/State ids
LIFECYCLE_INACTIVE = 2
LIFECYCLE_ACTIVE = 3
LIFECYCLE_FINALIZED = 4


@dataclass(frozen=True, slots=True)
class WrenchSample:
    """Force [N] and torque [N m] at the tool, in the sensor's frame: ``values`` are six."""

    values: tuple[float, ...]
    receipt_ns: int


@dataclass(frozen=True, slots=True)
class HeartbeatSample:
    """Sign of life of a node."""

    node: str
    lifecycle_state: int
    receipt_ns: int


@dataclass(frozen=True, slots=True)
class KeySample:
    """What the monitor reads of a key: age of the image behind it at the receipt [s]."""

    image_age: float
    receipt_ns: int


@dataclass(frozen=True, slots=True)
class StopSample:
    """The latched stop as it was seen last."""

    engaged: bool
    source: str
    receipt_ns: int


class TransportFault(Enum):
    """What DDS reports about a reader's topic."""

    DEADLINE = "deadline_misses"
    LEASE = "lease_losses"
    INCOMPATIBLE = "incompatible_qos"


@dataclass(frozen=True, slots=True)
class TransportSample:
    """A DDS event of a reader.

    Attributes:
        fault: what happened.
        topic: in which it happened.
        count: how many times since the event before.
        detail: for people, e.g. the policy that doesn't match.
        receipt_ns: when the event was handed over [ns].
    """

    fault: TransportFault
    topic: str
    count: int
    detail: str
    receipt_ns: int
