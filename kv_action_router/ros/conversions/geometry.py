"""Pose <-> geometry_msgs/Pose, TargetEstimate <-> geometry_msgs/PoseWithCovariance."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import Pose as PoseMsg
from geometry_msgs.msg import PoseWithCovariance

from kv_action_router.contracts import Pose, TargetEstimate
from kv_action_router.ros.conversions.fields import copy_vector


def pose_to_msg(pose: Pose | None, msg: PoseMsg | None = None) -> PoseMsg:
    """Write a pose into ``msg`` and return it; None becomes a zero quaternion, which is no turn."""
    msg = PoseMsg() if msg is None else msg
    if pose is None:
        x = y = z = qx = qy = qz = qw = 0.0
    else:
        x, y, z = pose.position
        qx, qy, qz, qw = pose.orientation
    position, orientation = msg.position, msg.orientation
    position.x, position.y, position.z = float(x), float(y), float(z)
    orientation.x, orientation.y = float(qx), float(qy)
    orientation.z, orientation.w = float(qz), float(qw)
    return msg


def pose_from_msg(msg: PoseMsg) -> Pose | None:
    """Return the pose, or None for a zero quaternion."""
    position, orientation = msg.position, msg.orientation
    turn = np.array([orientation.x, orientation.y, orientation.z, orientation.w])
    if not turn.any():
        return None
    return Pose(np.array([position.x, position.y, position.z]), turn)


def target_to_msg(
    target: TargetEstimate | None, msg: PoseWithCovariance | None = None
) -> PoseWithCovariance:
    """Write a target into ``msg`` and return it; None becomes zeros."""
    msg = PoseWithCovariance() if msg is None else msg
    if target is None:
        pose_to_msg(None, msg.pose)
        msg.covariance[:] = 0.0
    else:
        pose_to_msg(target.pose, msg.pose)
        copy_vector(target.covariance, msg.covariance, "covariance")
    return msg


def target_from_msg(msg: PoseWithCovariance) -> TargetEstimate | None:
    """Return the target, or None for a zero quaternion."""
    pose = pose_from_msg(msg.pose)
    if pose is None:
        return None
    return TargetEstimate(pose, np.array(msg.covariance, dtype=float).reshape(6, 6))
