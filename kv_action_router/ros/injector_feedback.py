"""Publishes the injector's feedback from the control loop."""

from __future__ import annotations

from typing import Any

from rclpy.node import Node

from kv_action_router.contracts import Decision
from kv_action_router.injection.feedback import FIELDS
from kv_action_router.ros import topics
from kv_action_router.ros.bytes_publisher import BytesPublisher
from kv_action_router.ros.wire import FieldWriter, decisions


class FeedbackPublisher:
    """Owns the publisher of ``execution_feedback``. One thread may use it."""

    def __init__(self, node: Node) -> None:
        self._publisher = BytesPublisher(node, topics.EXECUTION_FEEDBACK)
        self._writer = FieldWriter(topics.EXECUTION_FEEDBACK.type, (*decisions.NAMES, *FIELDS))
        self.close = self._publisher.close

    def publish(self, told: tuple[Decision, tuple[Any, ...]]) -> None:
        """Publish a decision and the values of ``injection.feedback.FIELDS``."""
        decision, values = told
        self._publisher.publish(self._writer.write((*decisions.values(decision), *values)))
