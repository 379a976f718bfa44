"""Quality-of-service profiles as named functions, each with all its policies and its reason."""

from __future__ import annotations

from rclpy.duration import Duration
from rclpy.qos import (
    DurabilityPolicy,
    HistoryPolicy,
    LivelinessPolicy,
    QoSProfile,
    ReliabilityPolicy,
)

KEY_PERIOD_MS = 10
FEEDBACK_PERIOD_MS = 10
CHUNK_PERIOD_MS = 20
HEARTBEAT_PERIOD_MS = 20
HEARTBEAT_LEASE_MS = 60


def _milliseconds(value: int) -> Duration:
    return Duration(nanoseconds=value * 1_000_000)


def decision_stream() -> QoSProfile:
    """Keys and matches: only the newest counts, a lost one is followed by another in 10 ms.

    The deadline is two periods, so one lost sample is no event and two are.
    """
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=1,
        reliability=ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.VOLATILE,
        deadline=_milliseconds(2 * KEY_PERIOD_MS),
    )


def obstacle_stream() -> QoSProfile:
    """Obstacles: as keys, at the rate of the images they are made from (every third of 30 Hz)."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=1,
        reliability=ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.VOLATILE,
        deadline=_milliseconds(200),
    )


def feedback_stream() -> QoSProfile:
    """Execution feedback: 100 Hz, the newest replaces the rest; never blocks the control loop."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=1,
        reliability=ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.VOLATILE,
        deadline=_milliseconds(2 * FEEDBACK_PERIOD_MS),
    )


def log_stream() -> QoSProfile:
    """Reader's side of a stream for whoever writes it down: deep, without a deadline of its own."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=100,
        reliability=ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.VOLATILE,
    )


def heartbeat() -> QoSProfile:
    """Signs of life, one topic a node: lease of three periods, asserted by publishing."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=1,
        reliability=ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.VOLATILE,
        liveliness=LivelinessPolicy.MANUAL_BY_TOPIC,
        liveliness_lease_duration=_milliseconds(HEARTBEAT_LEASE_MS),
    )


def chunk_stream() -> QoSProfile:
    """Chunks: each one matters, the newest replaces the rest; the lease says the writer is at work.

    Reliable, since a lost chunk costs a ramp; depth 1, since an old one must never be executed.
    """
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=1,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.VOLATILE,
        deadline=_milliseconds(2 * CHUNK_PERIOD_MS),
        liveliness=LivelinessPolicy.MANUAL_BY_TOPIC,
        liveliness_lease_duration=_milliseconds(3 * CHUNK_PERIOD_MS),
    )


def command() -> QoSProfile:
    """Commands: what ros2_control's controllers ask for; the newest replaces the rest."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=1,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.VOLATILE,
    )


def event() -> QoSProfile:
    """Events and entry updates: none may be lost, order kept, 50 in flight."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=50,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.VOLATILE,
    )


def latched() -> QoSProfile:
    """State that a late joiner must know at once: task state, execution value, statistics, stop."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=1,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.TRANSIENT_LOCAL,
    )


def sensor() -> QoSProfile:
    """Reader's side of any sensor: best effort hears best-effort and reliable publishers alike."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=1,
        reliability=ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.VOLATILE,
    )


def sensor_log() -> QoSProfile:
    """Reader's side of a sensor of which every sample counts: what comes between polls is kept."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=10,
        reliability=ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.VOLATILE,
    )


def driver() -> QoSProfile:
    """Publisher's side of a driver's sensors: best effort and shallow, as real drivers do."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=1,
        reliability=ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.VOLATILE,
    )


def diagnostics() -> QoSProfile:
    """What the diagnostics aggregator uses (reliable, keep last 10)."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=10,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.VOLATILE,
    )


def request() -> QoSProfile:
    """Both sides of the cache's services: 1000 requests, or answers, wait to be taken.

    Of the usual 10 some are overwritten when several clients call at once: answers reach the
    readers of all clients, and a caller whose request or answer is gone never hears. At 400 calls a
    second, 100 were overwritten as soon as a process got no processor for a quarter of a second.
    Not all are kept: a client that stands still would stop the service of all others.
    """
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=1000,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.VOLATILE,
    )
