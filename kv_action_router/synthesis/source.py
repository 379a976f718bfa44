"""Where motions come from when the cache has none: a small protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kv_action_router.contracts import CacheMatch, FloatArray, Pose
from kv_action_router.synthesis.spline import Motion, MotionState
from kv_action_router.tasks.stages import StageDefinition


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a motion is asked for.

    Attributes:
        stage: whose goal is to be reached.
        start: state in which the motion begins.
        target: perceived pose in the base frame; None = none is seen, or the stage needs none.
        obstacles: spheres x, y, z, r in the base frame [m] (k, 4).
        match: that the request answers, for sources that look at the whole situation.
    """

    stage: StageDefinition
    start: MotionState
    target: Pose | None
    obstacles: FloatArray
    match: CacheMatch | None = None

    @property
    def seen_target(self) -> Pose | None:
        """Where the target is seen, whether the stage acts on it or not."""
        if self.match is not None and self.match.target is not None:
            return self.match.target.pose
        return self.target


class BehaviorSource(Protocol):
    """Answers a request with a motion that starts in its start state and ends at rest.

    Raises:
        SynthesisError: there is none inside the limits.
    """

    def plan(self, request: PlanRequest) -> Motion:
        """Return the motion."""
