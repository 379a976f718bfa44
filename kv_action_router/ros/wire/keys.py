"""TaskKey: stage 1 to stage 2."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kv_action_router import contracts
from kv_action_router.contracts import JointSample, Pose, Sight, Stage, TargetEstimate, Trigger
from kv_action_router.errors import InputError
from kv_action_router.msg import TaskKey
from kv_action_router.ros.conversions.fields import enum_from_field
from kv_action_router.ros.wire import decisions
from kv_action_router.ros.wire.reader import FieldReader
from kv_action_router.ros.wire.writer import FieldWriter

_POSE = (
    "target.pose.position.x",
    "target.pose.position.y",
    "target.pose.position.z",
    "target.pose.orientation.x",
    "target.pose.orientation.y",
    "target.pose.orientation.z",
    "target.pose.orientation.w",
)
TARGET = ("target_valid", "target.covariance", *_POSE)
JOINTS = ("joint_name", "joint_position", "joint_velocity")
_OWN = (
    "trigger",
    "key",
    "target_age",
    "scene_age",
    "body_age",
    "masked_inputs",
    "odometry_confidence",
    "target_sight",
    "image_sharpness",
)
_NAMES = (*decisions.NAMES, *_OWN, *TARGET, *JOINTS)
_OWN_AT = decisions.SIZE
_TARGET_AT = _OWN_AT + len(_OWN)
_JOINTS_AT = _TARGET_AT + len(TARGET)
ARRAYS = ("key", "target.covariance", "joint_position", "joint_velocity")
_NO_COVARIANCE = np.zeros(36)
_TRIGGERS = {int(trigger): trigger for trigger in Trigger}
_SIGHTS = {int(sight): sight for sight in Sight}


class KeyWriter:
    """Serializes keys. One thread may use it."""

    def __init__(self) -> None:
        self._writer = FieldWriter(TaskKey, _NAMES)

    def write(self, key: contracts.TaskKey, published_ns: int) -> bytes:
        """Return the message of a key that is published now [ns]."""
        return self._writer.write(
            (
                *decisions.values(key.decision, Stage.KEY, published_ns),
                key.trigger,
                key.vector,
                key.target_age,
                key.scene_age,
                key.body_age,
                key.masked_inputs,
                key.odometry_confidence,
                key.target_sight,
                key.image_sharpness,
                *target_values(key.target),
                key.joints.names,
                key.joints.position,
                key.joints.velocity,
            )
        )


class KeyReader:
    """Reads keys. One thread may use it."""

    def __init__(self) -> None:
        self._reader = FieldReader(TaskKey, _NAMES, ARRAYS)

    def read(self, data: bytes) -> contracts.TaskKey:
        """Return the key of a serialized message; see ``conversions.key_from_msg``.

        Raises:
            InputError: not complete, unknown trigger or sight, or arrays of unequal size.
        """
        v = self._reader.read(data)
        assert v is not None  # a key holds no sequence of messages
        decision = decisions.decision(v)
        (trigger_id, vector, target_age, scene_age, body_age, masked, trust, sight, sharpness) = v[
            _OWN_AT:_TARGET_AT
        ]
        trigger = trigger_of(trigger_id)
        receipt = decision.trigger_monotonic_ns
        if trigger is Trigger.IMAGE:
            published = decision.stage_ns[Stage.KEY] or receipt
            age = body_age if math.isfinite(body_age) else 0.0
            receipt = max(0, published - round(age * 1e9))
        stamp = decision.stamp_ns if trigger is Trigger.JOINT_STATE else 0
        return contracts.TaskKey(
            decision=decision,
            trigger=trigger,
            vector=vector,
            target=target_of(v[_TARGET_AT:_JOINTS_AT]),
            target_age=target_age,
            scene_age=scene_age,
            body_age=body_age,
            masked_inputs=masked,
            joints=joints_of(v[_JOINTS_AT:], receipt, stamp),
            odometry_confidence=trust,
            target_sight=_SIGHTS.get(sight) or enum_from_field(Sight, sight, "target_sight"),
            image_sharpness=sharpness,
        )


def trigger_of(value: int) -> Trigger:
    """Return the trigger.

    Raises:
        InputError: there is none of this number.
    """
    return _TRIGGERS.get(value) or enum_from_field(Trigger, value, "trigger")


def target_values(target: TargetEstimate | None) -> tuple[Any, ...]:
    """Return the values of ``TARGET``."""
    if target is None:
        return (False, _NO_COVARIANCE, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    pose = target.pose
    return (True, target.covariance, *pose.position.tolist(), *pose.orientation.tolist())


def target_of(v: tuple[Any, ...]) -> TargetEstimate | None:
    """Return the target of the values of ``TARGET``."""
    valid, covariance, x, y, z, qx, qy, qz, qw = v
    if not valid or not (qx or qy or qz or qw):
        return None
    pose = Pose(np.array((x, y, z)), np.array((qx, qy, qz, qw)))
    return TargetEstimate(pose, covariance.reshape(6, 6))


def joints_of(v: tuple[Any, ...], receipt_ns: int, stamp_ns: int) -> JointSample:
    """Return the joints of the values of ``JOINTS``; efforts are not sent: NaN.

    Raises:
        InputError: not one position, and one velocity or none, a joint.
    """
    names, position, velocity = v
    size = len(names)
    if position.size != size:
        raise InputError("joint_position", f"of size {size}", position.size)
    if velocity.size == 0:
        velocity = np.full(size, np.nan)
    elif velocity.size != size:
        raise InputError("joint_velocity", f"of size {size}", velocity.size)
    return JointSample(names, position, velocity, np.full(size, np.nan), receipt_ns, stamp_ns)
