"""The polled subscriptions of stage 3, and what becomes of their samples."""

from __future__ import annotations

from kv_action_router.contracts import CacheMatch, JointSample, StageCondition, Trigger
from kv_action_router.robots.model import RobotModel
from kv_action_router.ros import topics
from kv_action_router.ros.conversions import condition_from_msg
from kv_action_router.ros.streams import DataPlane
from kv_action_router.ros.wire import (
    FeedbackReader,
    GlanceReader,
    MatchJointsReader,
    MatchReader,
    ObstacleReader,
)
from kv_action_router.synthesis.measurement import in_model_order, measured
from kv_action_router.synthesis.synthesizer import BehaviorSynthesizer


class SynthesizerStreams:
    """Newest samples for the synthesizer; used by its data thread.

    Attributes:
        matches: reader whose samples a data loop waits for.
        conditions: likewise.

    The joint state comes with the matches and the injector's feedback, so that the 500 Hz of the
    driver need not reach this process.
    """

    def __init__(self, plane: DataPlane, model: RobotModel) -> None:
        self.matches = plane.reader(topics.CACHE_MATCH, raw=True)
        self.conditions = plane.reader(topics.CONDITION)
        self._feedback = plane.reader(topics.EXECUTION_FEEDBACK, raw=True)
        self._obstacles = plane.reader(topics.OBSTACLE_SPHERES, raw=True)
        self._obstacle_reader = ObstacleReader()
        self._model = model
        self._glance, self._match_reader = GlanceReader(), MatchReader()
        self._joint_reader = MatchJointsReader()
        self._measured: tuple[bytes, int] | None = None  # a match with joints, and their receipt
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
        glance = self._glance.read(taken.message)
        if glance.trigger is Trigger.JOINT_STATE:
            self._measured = taken.message, glance.trigger_monotonic_ns
        if not synthesizer.wants(glance, now_ns):
            return None
        return self._match_reader.read(taken.message)

    def take_feedback(self, synthesizer: BehaviorSynthesizer) -> None:
        """Hand over the newest execution feedback, and the joint state that came with it."""
        if (taken := self._feedback.take()) is not None:
            feedback = self._feedback_reader.read(taken.message)
            synthesizer.tracking.feedback = feedback
            if feedback.joint_monotonic_ns:
                self._measure(synthesizer, measured(feedback))

    def take_joints(self, synthesizer: BehaviorSynthesizer) -> None:
        """Hand over the joint state of the newest match that one has caused."""
        if self._measured is not None:
            data, receipt_ns = self._measured
            self._measured = None
            self._measure(synthesizer, self._joint_reader.read(data, receipt_ns))

    def _measure(self, synthesizer: BehaviorSynthesizer, joints: JointSample) -> None:
        tracking = synthesizer.tracking
        if tracking.joints is None or joints.receipt_ns > tracking.joints.receipt_ns:
            tracking.joints = in_model_order(joints, self._model) or tracking.joints

    def take_obstacles(self, synthesizer: BehaviorSynthesizer) -> None:
        """Hand over the newest obstacles."""
        if (taken := self._obstacles.take()) is not None:
            synthesizer.obstacles = self._obstacle_reader.read(taken.message).spheres
