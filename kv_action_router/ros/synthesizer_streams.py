"""The polled subscriptions of stage 3, and what becomes of their samples."""

from __future__ import annotations

import numpy as np

from kv_action_router.contracts import CacheMatch, StageCondition
from kv_action_router.robots.model import RobotModel
from kv_action_router.ros import topics
from kv_action_router.ros.conversions import condition_from_msg, obstacles_from_msg
from kv_action_router.ros.streams import DataPlane
from kv_action_router.ros.wire import FeedbackReader, GlanceReader, JointReader, MatchReader
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
        self._joints = plane.reader(topics.JOINT_STATES, raw=True)
        self._feedback = plane.reader(topics.EXECUTION_FEEDBACK, raw=True)
        self._obstacles = plane.reader(topics.OBSTACLE_SPHERES)
        self._model = model
        self._glance, self._match_reader = GlanceReader(), MatchReader()
        self._feedback_reader, self._joint_reader = FeedbackReader(), JointReader()

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
        if not synthesizer.wants(self._glance.read(taken.message), now_ns):
            return None
        return self._match_reader.read(taken.message)

    def take_feedback(self, synthesizer: BehaviorSynthesizer) -> None:
        """Hand over the newest execution feedback."""
        if (taken := self._feedback.take()) is not None:
            synthesizer.tracking.feedback = self._feedback_reader.read(taken.message)

    def take_measurements(self, synthesizer: BehaviorSynthesizer) -> None:
        """Hand over the newest joint state and the newest obstacles."""
        if (taken := self._joints.take_newest()) is not None:
            measured = self._joint_reader.sample(taken.message, taken.receipt_ns)
            sample = in_model_order(measured, self._model)
            if sample is not None:
                synthesizer.tracking.joints = sample
        if (taken := self._obstacles.take()) is not None:
            spheres = obstacles_from_msg(taken.message)
            synthesizer.obstacles = np.column_stack((spheres.center, spheres.radius)).astype(float)
