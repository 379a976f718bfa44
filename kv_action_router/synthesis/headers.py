"""What travels with a chunk: the header of what it answers, with its own sequence and time."""

from __future__ import annotations

from kv_action_router.contracts import Decision


def answering(decision: Decision, sequence: int, epoch: int, chunk_ns: int) -> Decision:
    """Return the header of a chunk that a key caused.

    Args:
        decision: header of the match.
        sequence: of the chunk.
        epoch: of the injector.
        chunk_ns: CLOCK_MONOTONIC when the chunk was made [ns].
    """
    origin, key, match, _, command = decision.stage_ns
    return decision.numbered(
        trace_id=decision.trace_id,
        trigger_monotonic_ns=decision.trigger_monotonic_ns,
        stage_ns=(origin, key, match, chunk_ns, command),
        sequence=sequence,
        epoch=epoch,
        decision_id=decision.decision_id,
        stamp_ns=decision.stamp_ns,
    )


def continuing(
    newest: Decision, trigger_ns: int, decision_id: int, sequence: int, epoch: int, chunk_ns: int
) -> Decision:
    """Return the header of a continuation: no key caused it, so it has no trace.

    Args:
        newest: header of the newest match.
        trigger_ns: CLOCK_MONOTONIC at the receipt of the joint state that it was checked with [ns].
        decision_id: in force.
        sequence, epoch, chunk_ns: as for :func:`answering`.
    """
    return newest.numbered(
        trace_id=0,
        trigger_monotonic_ns=trigger_ns,
        stage_ns=(0, 0, 0, chunk_ns, 0),
        sequence=sequence,
        epoch=epoch,
        decision_id=decision_id,
        stamp_ns=newest.stamp_ns,
    )
