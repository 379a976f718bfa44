"""50 ms of a reference, sampled every 0.5 ms: what goes to the injector."""

from __future__ import annotations

from kv_action_router.contracts import (
    CHUNK_DURATION,
    AuxiliaryOutput,
    ChunkKind,
    Decision,
    TrajectoryChunk,
)
from kv_action_router.synthesis.reference import STILL, Reference
from kv_action_router.tasks.stages import TimedOutput


class ChunkMaker:
    """Makes chunks with one order of columns: all positions, then all velocities."""

    def __init__(self, joint_names: tuple[str, ...]) -> None:
        self.columns: tuple[str, ...] = tuple(
            f"{joint}/{interface}"
            for interface in ("position", "velocity")
            for joint in joint_names
        )
        self._count = len(joint_names)

    def make(
        self,
        reference: Reference,
        anchor_ns: int,
        decision: Decision,
        kind: ChunkKind,
        *,
        phase: float,
        entry: tuple[int, int] = (0, 0),
        task: str = "",
        stage: str = "",
        outputs: tuple[TimedOutput, ...] = (),
        outputs_origin_ns: int = 0,
    ) -> TrajectoryChunk:
        """Sample a reference from an anchor on.

        Args:
            reference: to sample.
            anchor_ns: CLOCK_MONOTONIC of t = 0 [ns].
            decision: that goes with it.
            kind: what made it.
            phase: share of the stage's motion that is done at the anchor.
            entry: id and version of the task entry behind it; (0, 0) = replanned.
            task: name.
            stage: name.
            outputs: timed outputs of the stage.
            outputs_origin_ns: CLOCK_MONOTONIC that their times count from [ns].
        """
        samples = reference.samples(anchor_ns)
        last = samples[-1, self._count :].tolist()
        return TrajectoryChunk(
            decision=decision,
            kind=kind,
            anchor_ns=anchor_ns,
            columns=self.columns,
            samples=samples,
            auxiliary=_auxiliary(outputs, (anchor_ns - outputs_origin_ns) * 1.0e-9)
            if outputs
            else (),
            entry_id=entry[0],
            entry_version=entry[1],
            task=task,
            stage=stage,
            phase=phase,
            ends_at_rest=max(last) < STILL and min(last) > -STILL,
        )


def _auxiliary(outputs: tuple[TimedOutput, ...], begun: float) -> tuple[AuxiliaryOutput, ...]:
    """Return the outputs that fall into the chunk; overlapping chunks name the same one again."""
    return tuple(
        AuxiliaryOutput(output.name, output.time - begun, output.value)
        for output in outputs
        if 0.0 <= output.time - begun < CHUNK_DURATION
    )
