"""Joint states as they come, brought into the model's order."""

from __future__ import annotations

import numpy as np

from kv_action_router.contracts import ExecutionFeedback, JointSample
from kv_action_router.errors import MissingJointsError
from kv_action_router.robots.model import RobotModel


def measured(feedback: ExecutionFeedback) -> JointSample:
    """Return the joint state that the injector measured; efforts are not told and are NaN."""
    return JointSample(
        feedback.joints,
        feedback.position,
        feedback.velocity,
        np.full(len(feedback.joints), np.nan),
        feedback.joint_monotonic_ns,
    )


def in_model_order(sample: JointSample, model: RobotModel) -> JointSample | None:
    """Return a joint state in the model's order.

    None for one that doesn't hold all joints of the arm (a gripper's or a wheel's), or whose
    positions are not finite: the newest good one stays in use until it is too old.
    """
    try:
        order = model.order(sample.names)
    except MissingJointsError:
        return None
    if sample.names == model.joint_names and np.isfinite(sample.position).all():
        return sample
    position = sample.position[order]
    if not np.isfinite(position).all():
        return None
    return JointSample(
        model.joint_names,
        position,
        sample.velocity[order],
        sample.effort[order],
        sample.receipt_ns,
        sample.stamp_ns,
    )
