"""By how much the end of a motion should follow the target that an image shows."""

from __future__ import annotations

import math

import numpy as np

from kv_action_router.contracts import CacheMatch, FloatArray
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.execution import Execution

LONGEST_FOLLOW = 0.1  # [s] of following that one image may make up for


def target_displacement(
    execution: Execution, match: CacheMatch, config: SynthesisConfig, now_ns: int
) -> FloatArray | None:
    """Return by how much to move a motion's end now [m] (3,), or None for not at all.

    Not at all when the stage doesn't follow its target, the target is not seen well enough, or it
    has hardly moved. One that jumps is followed at a finite speed, over several images.
    """
    target = match.target
    if execution.target is None or target is None or not execution.stage.follow_target:
        return None
    deviation = math.sqrt(max(0.0, float(np.diagonal(target.covariance)[:3].max())))
    if not deviation <= config.refresh_deviation:  # also refuses NaN
        return None
    displacement = np.asarray(target.pose.position, dtype=float) - execution.target.position
    distance = float(np.sqrt(displacement @ displacement))
    if not distance >= config.refresh_distance:
        return None
    spent = min((now_ns - execution.followed_ns) * 1.0e-9, LONGEST_FOLLOW)
    followed: FloatArray = displacement * min(1.0, config.refresh_speed * spent / distance)
    return followed
