"""TaskKey <-> its message, and the joints that keys and matches carry."""

from __future__ import annotations

import numpy as np

from kv_action_router import contracts
from kv_action_router.contracts import Decision, JointSample, Sight, Stage, Trigger
from kv_action_router.msg import CacheMatch, TaskKey
from kv_action_router.ros.conversions.decision import decision_from_msg, decision_to_msg
from kv_action_router.ros.conversions.fields import (
    copy_vector,
    doubles_from_field,
    enum_from_field,
    fill_doubles,
    sized,
    sized_or_nan,
)
from kv_action_router.ros.conversions.geometry import target_from_msg, target_to_msg


def key_to_msg(key: contracts.TaskKey, msg: TaskKey | None = None) -> TaskKey:
    """Write a key into ``msg`` (a new one when None) and return it."""
    msg = TaskKey() if msg is None else msg
    decision_to_msg(key.decision, msg.decision)
    msg.trigger = int(key.trigger)
    copy_vector(key.vector, msg.key, "key")
    msg.target_valid = key.target is not None
    msg.target_sight = int(key.target_sight)
    target_to_msg(key.target, msg.target)
    msg.target_age = float(key.target_age)
    msg.scene_age = float(key.scene_age)
    msg.body_age = float(key.body_age)
    msg.masked_inputs = int(key.masked_inputs)
    msg.odometry_confidence = float(key.odometry_confidence)
    msg.image_sharpness = float(key.image_sharpness)
    carried_joints_to_msg(key.joints, msg)
    return msg


def key_from_msg(msg: TaskKey) -> contracts.TaskKey:
    """Return the key that a message carries.

    The joints' receipt time is the trigger's when a joint state triggered the key, else the
    publication of the key less ``body_age``; their efforts are not sent and come back as NaN.

    Raises:
        InputError: unknown trigger or sight, or arrays of unequal size.
    """
    decision = decision_from_msg(msg.decision)
    trigger = enum_from_field(Trigger, msg.trigger, "trigger")
    receipt = decision.trigger_monotonic_ns
    if trigger is Trigger.IMAGE:
        published = decision.stage_ns[Stage.KEY] or receipt
        age = msg.body_age if np.isfinite(msg.body_age) else 0.0
        receipt = max(0, published - round(age * 1e9))
    return contracts.TaskKey(
        decision=decision,
        trigger=trigger,
        vector=msg.key.copy(),
        target=target_from_msg(msg.target) if msg.target_valid else None,
        target_age=msg.target_age,
        scene_age=msg.scene_age,
        body_age=msg.body_age,
        masked_inputs=msg.masked_inputs,
        joints=carried_joints_from_msg(msg, receipt, decision, trigger),
        odometry_confidence=msg.odometry_confidence,
        target_sight=enum_from_field(Sight, msg.target_sight, "target_sight"),
        image_sharpness=msg.image_sharpness,
    )


def carried_joints_to_msg(joints: JointSample, msg: TaskKey | CacheMatch) -> None:
    """Write names, positions and velocities of joints into a key or match."""
    msg.joint_name = [str(name) for name in joints.names]
    fill_doubles(msg, "joint_position", joints.position)
    fill_doubles(msg, "joint_velocity", joints.velocity)


def carried_joints_from_msg(
    msg: TaskKey | CacheMatch, receipt_ns: int, decision: Decision, trigger: Trigger
) -> JointSample:
    """Return the joints that a key or match carries; efforts are NaN.

    Raises:
        InputError: not one position, and one velocity or none, a joint.
    """
    names = tuple(msg.joint_name)
    size = len(names)
    position = doubles_from_field(msg.joint_position)
    velocity = doubles_from_field(msg.joint_velocity)
    return JointSample(
        names=names,
        position=sized(position, size, "joint_position"),
        velocity=sized_or_nan(velocity, size, "joint_velocity"),
        effort=np.full(size, np.nan),
        receipt_ns=receipt_ns,
        stamp_ns=decision.stamp_ns if trigger is Trigger.JOINT_STATE else 0,
    )
