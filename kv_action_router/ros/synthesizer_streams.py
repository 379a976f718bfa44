"""The polled subscriptions of stage 3, and what becomes of their samples."""

from __future__ import annotations

import numpy as np
from rclpy.serialization import deserialize_message

from kv_action_router.contracts import CacheMatch, StageCondition
from kv_action_router.robots.model import RobotModel
from kv_action_router.ros import topics
from kv_action_router.ros.conversions import (
    condition_from_msg,
    feedback_from_msg,
    joints_from_msg,
    match_from_msg,
    obstacles_from_msg,
)
from kv_action_router.ros.match_glance import match_glance_from_bytes
from kv_action_router.ros.streams import DataPlane
from kv_action_router.synthesis.measurement import in_model_order
from kv_action_router.synthesis.synthesizer import BehaviorSynthesizer


class SynthesizerStreams:
    """Newest samples for the synthesizer; used by its data thread.

    Attributes:
        matches: reader whose samples a data loop waits for.
        conditions: likewise.
    """

    def __init__(self, plane: DataPlane, model: RobotModel) -> None:
        self.matches = plane.reader(topics.CACHE_MATCH, raw=True)
        self.conditions = plane.reader(topics.CONDITION)
        self._joints = plane.reader(topics.JOINT_STATES)
        self._feedback = plane.reader(topics.EXECUTION_FEEDBACK)
        self._obstacles = plane.reader(topics.OBSTACLE_SPHERES)
        self._model = model

    def take_conditions(self) -> list[StageCondition]:
        """Return all conditions that came, oldest first."""
        conditions = []
        while (taken := self.conditions.take()) is not None:
            conditions.append(condition_from_msg(taken.message))
        return conditions

    def take_match(self, synthesizer: BehaviorSynthesizer, now_ns: int) -> CacheMatch | None:
        """Return the newest match if the synthesizer wants it; let it know of it in any case."""
        taken = self.matches.take()
        if taken is None:
            return None
        if not synthesizer.wants(match_glance_from_bytes(taken.message), now_ns):
            return None
        return match_from_msg(deserialize_message(taken.message, topics.CACHE_MATCH.type))

    def take_feedback(self, synthesizer: BehaviorSynthesizer) -> None:
        """Hand over the newest execution feedback."""
        if (taken := self._feedback.take()) is not None:
            synthesizer.tracking.feedback = feedback_from_msg(taken.message)

    def take_measurements(self, synthesizer: BehaviorSynthesizer) -> None:
        """Hand over the newest joint state and the newest obstacles."""
        if (taken := self._joints.take_newest()) is not None:
            sample = in_model_order(joints_from_msg(taken.message, taken.receipt_ns), self._model)
            if sample is not None:
                synthesizer.tracking.joints = sample
        if (taken := self._obstacles.take()) is not None:
            spheres = obstacles_from_msg(taken.message)
            synthesizer.obstacles = np.column_stack((spheres.center, spheres.radius)).astype(float)
