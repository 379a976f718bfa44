"""Contracts <-> messages, in inverse pairs: ``x_to_msg(x, msg=None)`` and ``x_from_msg(msg)``.

``to_msg`` fills the message that is handed in (a stream keeps one and reuses it) or makes a new
one; ``from_msg`` copies, so that its result lives longer than the message. Samples of a driver take
the monotonic time of their receipt as a second argument.
"""

from kv_action_router.ros.conversions.behavior import behavior_from_msg, behavior_to_msg
from kv_action_router.ros.conversions.chunk import (
    auxiliary_from_msg,
    auxiliary_to_msg,
    chunk_from_msg,
    chunk_to_msg,
)
from kv_action_router.ros.conversions.decision import decision_from_msg, decision_to_msg
from kv_action_router.ros.conversions.execution import (
    entry_update_from_msg,
    entry_update_to_msg,
    execution_value_from_msg,
    execution_value_to_msg,
    feedback_from_msg,
    feedback_to_msg,
)
from kv_action_router.ros.conversions.geometry import (
    pose_from_msg,
    pose_to_msg,
    target_from_msg,
    target_to_msg,
)
from kv_action_router.ros.conversions.key import key_from_msg, key_to_msg
from kv_action_router.ros.conversions.match import match_from_msg, match_to_msg
from kv_action_router.ros.conversions.sensors import (
    drives_from_msg,
    drives_to_msg,
    imu_from_msg,
    imu_to_msg,
    joints_from_msg,
    joints_to_msg,
    obstacles_from_msg,
    obstacles_to_msg,
    wrench_from_msg,
    wrench_to_msg,
)
from kv_action_router.ros.conversions.task import (
    condition_from_msg,
    condition_to_msg,
    task_state_from_msg,
    task_state_to_msg,
)

__all__ = [
    "auxiliary_from_msg",
    "auxiliary_to_msg",
    "behavior_from_msg",
    "behavior_to_msg",
    "chunk_from_msg",
    "chunk_to_msg",
    "condition_from_msg",
    "condition_to_msg",
    "decision_from_msg",
    "decision_to_msg",
    "drives_from_msg",
    "drives_to_msg",
    "entry_update_from_msg",
    "entry_update_to_msg",
    "execution_value_from_msg",
    "execution_value_to_msg",
    "feedback_from_msg",
    "feedback_to_msg",
    "imu_from_msg",
    "imu_to_msg",
    "joints_from_msg",
    "joints_to_msg",
    "key_from_msg",
    "key_to_msg",
    "match_from_msg",
    "match_to_msg",
    "obstacles_from_msg",
    "obstacles_to_msg",
    "pose_from_msg",
    "pose_to_msg",
    "target_from_msg",
    "target_to_msg",
    "task_state_from_msg",
    "task_state_to_msg",
    "wrench_from_msg",
    "wrench_to_msg",
]
