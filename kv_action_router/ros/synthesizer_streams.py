"""The polled subscriptions of stage 3, and what becomes of their samples."""

from __future__ import annotations

from kv_action_router.contracts import CacheMatch, StageCondition
from kv_action_router.robots.model import RobotModel
from kv_action_router.ros import topics
from kv_action_router.ros.conversions import condition_from_msg
from kv_action_router.ros.streams import DataPlane
from kv_action_router.ros.wire import FeedbackReader, GlanceReader, MatchReader, ObstacleReader
from kv_action_router.synthesis.measurement import in_model_order, measured
from kv_action_router.synthesis.synthesizer import BehaviorSynthesizer


class SynthesizerStreams:
    """Newest samples for the synthesizer; used by its data thread.

    Attributes:
        matches: reader whose samples a data loop waits for.
        conditions: likewise.
        feedback: likewise; it brings the joint state that the injector measured, so that the 500 Hz
            of the driver need not reach this process.
    """

    def __init__(self, plane: DataPlane, model: RobotModel) -> None:
        self.matches = plane.reader(topics.CACHE_MATCH, raw=True)
        self.conditions = plane.reader(topics.CONDITION)
        self.feedback = plane.reader(topics.EXECUTION_FEEDBACK, raw=True)
        self._obstacles = plane.reader(topics.OBSTACLE_SPHERES, raw=True)
        self._obstacle_reader = ObstacleReader()
        self._model = model
        self._glance, self._match_reader = GlanceReader(), MatchReader()
        self._feedback_reader = FeedbackReader()

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

    def take_feedback(self, synthesizer: BehaviorSynthesizer) -> bool:
        """Hand over the newest execution feedback and its joint state; return whether it came."""
        if (taken := self.feedback.take()) is None:
            return False
        feedback = self._feedback_reader.read(taken.message)
        synthesizer.tracking.feedback = feedback
        if feedback.joint_monotonic_ns:
            sample = in_model_order(measured(feedback), self._model)
            if sample is not None:
                synthesizer.tracking.joints = sample
        return True

    def take_obstacles(self, synthesizer: BehaviorSynthesizer) -> None:
        """Hand over the newest obstacles."""
        if (taken := self._obstacles.take()) is not None:
            synthesizer.obstacles = self._obstacle_reader.read(taken.message)
