"""Which instants of a cycle a film strip shows, and how its pictures are kept. No rendering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kv_action_router.reporting.records import CycleTrace, StageSpan

FRAMES = 9


@dataclass(frozen=True)
class Shot:
    """One instant of a cycle.

    Attributes:
        sample: index into the trace's motion.
        seconds: since the first stage began [s].
        caption: for people.
    """

    sample: int
    seconds: float
    caption: str


@dataclass(frozen=True)
class Frame:
    """A shot and its picture, a JPEG file's content."""

    shot: Shot
    jpeg: bytes


def shots(trace: CycleTrace, spans: Sequence[StageSpan], count: int = FRAMES) -> list[Shot]:
    """Return the instants to show, in order: the begin, the ends of stages, and middles.

    Where there are more stages than pictures the shortest are left out; where there are fewer, the
    middles of the longest are shown too.

    Args:
        trace: of the cycle.
        spans: its stages.
        count: of pictures at most.
    """
    if not trace.motion:
        return []
    if not spans:
        return [Shot(0, 0.0, "begin")]
    longest = sorted(spans, key=lambda span: span.seconds, reverse=True)
    ends = longest[: count - 1]
    middles = longest[: max(0, count - 1 - len(spans))]
    zero_ns = spans[0].begin_ns
    moments = [(zero_ns, "begin")]
    for span in spans:
        if span in middles:
            moments.append(((span.begin_ns + span.end_ns) // 2, span.stage))
        if span in ends:
            moments.append((span.end_ns, f"{span.stage}: {'ends' if span.completed else 'fails'}"))
    found = []
    for instant_ns, caption in moments:
        nearest = min(
            range(len(trace.motion)),
            key=lambda index: abs(trace.motion[index].time - instant_ns * 1e-9),
        )
        found.append(Shot(nearest, (instant_ns - zero_ns) * 1e-9, caption))
    return found
