"""What the monitor takes in beside the contracts' samples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from kv_action_router.contracts import FloatArray

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
    """What the monitor reads of a key.

    Attributes:
        image_age: of the newest image that was used, at the receipt [s].
        receipt_ns: of the key [ns].
        target_age: of the newest image that showed the target, at the receipt [s]; NaN = none did.
        odometry_confidence: share that the odometry has, 0 to 1; NaN = there is none.
        image_sharpness: of the newest image, around the target; NaN = not measured.
    """

    image_age: float
    receipt_ns: int
    target_age: float = math.nan
    odometry_confidence: float = math.nan
    image_sharpness: float = math.nan


@dataclass(frozen=True, slots=True)
class LoopSample:
    """How the injector's control loop keeps its periods.

    Attributes:
        missed_ticks: since its activation.
        lateness: 99th percentile over the last second [s].
        receipt_ns: of the feedback that tells it [ns].
    """

    missed_ticks: int
    lateness: float
    receipt_ns: int


@dataclass(frozen=True, slots=True)
class ObstacleSample:
    """Obstacles in the newest image: spheres x, y, z, r in the base frame [m] (k, 4)."""

    spheres: FloatArray
    receipt_ns: int


@dataclass(frozen=True, slots=True)
class RatesSample:
    """Decisions and hits of each layer of the robot's own cache since the cache's activation."""

    counts: Mapping[str, tuple[int, int]]
    receipt_ns: int


@dataclass(frozen=True, slots=True)
class StampSample:
    """Header stamp of a topic's newest message [ns]."""

    topic: str
    stamp_ns: int
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
