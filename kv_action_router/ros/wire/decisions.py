"""The header that travels with a decision, as part of other messages."""

from __future__ import annotations

from typing import Any

from kv_action_router.contracts import Decision, Stage

NAMES = tuple(
    f"decision.{name}"
    for name in (
        "header.stamp.sec",
        "header.stamp.nanosec",
        "header.frame_id",
        "trace_id",
        "trigger_monotonic_ns",
        "stage_monotonic_ns",
        "sequence",
        "epoch",
        "decision_id",
        "domain",
        "source_domain",
        "robot_id",
        "encoder_id",
        "scene",
        "intent_id",
    )
)
SIZE = len(NAMES)


def values(decision: Decision, stage: Stage | None = None, now_ns: int = 0) -> tuple[Any, ...]:
    """Return the values of ``NAMES``, with the time of one stage filled in [ns]."""
    d = decision
    times = d.stage_ns
    if stage is not None:
        times = (*times[:stage], now_ns, *times[stage + 1 :])  # type: ignore[assignment]
    seconds, nanoseconds = divmod(d.stamp_ns, 1_000_000_000)
    return (
        seconds,
        nanoseconds,
        d.frame_id,
        d.trace_id,
        d.trigger_monotonic_ns,
        times,
        d.sequence,
        d.epoch,
        d.decision_id,
        d.domain,
        d.source_domain,
        d.robot_id,
        d.encoder_id,
        d.scene,
        d.intent_id,
    )


def decision(v: tuple[Any, ...]) -> Decision:
    """Return the decision whose values stand first in ``v``."""
    return Decision(
        v[3],
        v[4],
        v[5],
        v[6],
        v[7],
        v[8],
        v[9],
        v[10],
        v[11],
        v[12],
        v[13],
        v[14],
        v[0] * 1_000_000_000 + v[1],
        v[2],
    )
