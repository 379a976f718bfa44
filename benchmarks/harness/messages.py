"""Messages of the hit path at their usual sizes, with times that are patched in place.

A floor must not pay for making messages: these are serialized once, and a stage writes only its
stage times over 40 of their bytes.
"""

from __future__ import annotations

import struct
from array import array
from typing import Any

import numpy as np
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Image
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from kv_action_router.msg import CacheMatch, TaskKey, TrajectoryChunk

HEIGHT, WIDTH = 240, 320
JOINTS = tuple(
    f"{name}_joint"
    for name in ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
)
COEFFICIENTS, DEGREE, SAMPLES = 28, 5, 100
STAGES = 5
_MARK = tuple(0x5EED_0000_0000_0000 + index for index in range(STAGES))


class Stamped:
    """A serialized message that carries the times of the stages.

    Attributes:
        size: of the message [bytes].
    """

    def __init__(self, message: Any) -> None:
        message.decision.stage_monotonic_ns = array("Q", _MARK)
        data = bytes(serialize_message(message))
        self._form = struct.Struct(f"<{STAGES}Q")
        at = data.index(self._form.pack(*_MARK))
        self._at, self._end = at, at + self._form.size
        self._head, self._tail = data[:at], data[self._end :]
        self.size = len(data)

    def write(self, times: tuple[int, ...]) -> bytes:
        """Return the message with these times [ns] (5,)."""
        return b"".join((self._head, self._form.pack(*times), self._tail))

    def read(self, data: bytes) -> tuple[int, ...]:
        """Return the times of a message that :meth:`write` made [ns] (5,)."""
        return self._form.unpack_from(data, self._at)


def key() -> Stamped:
    """Return a key with a target, of six joints."""
    message = TaskKey(trigger=TaskKey.TRIGGER_IMAGE, target_valid=True)
    _describe(message)
    message.key = np.ones(64, np.float32)
    _give_joints(message)
    return Stamped(message)


def match() -> Stamped:
    """Return a hit with its whole behavior value."""
    message = CacheMatch(hit=True, trigger=1, reason="hit", subtask="touch_approach_v1")
    _describe(message)
    message.key = np.ones(64, np.float32)
    behavior = message.behavior
    behavior.subtask, behavior.degree = "touch_approach_v1", DEGREE
    behavior.dimension = [f"{name}/position" for name in JOINTS]
    behavior.knots = array("d", bytes(8 * (COEFFICIENTS + DEGREE + 1)))
    behavior.coefficients = array("d", bytes(8 * COEFFICIENTS * len(JOINTS)))
    behavior.decay = array("d", bytes(8 * len(JOINTS)))
    _give_joints(message)
    return Stamped(message)


def chunk() -> Stamped:
    """Return a chunk of positions and velocities."""
    message = TrajectoryChunk(kind=TrajectoryChunk.KIND_DECISION, task="touch", stage="approach")
    _describe(message)
    kinds = ("position", "velocity")
    message.column = [f"{name}/{kind}" for kind in kinds for name in JOINTS]
    message.samples = array("d", bytes(8 * SAMPLES * len(message.column)))
    return Stamped(message)


def command() -> bytes:
    """Return a command of ros2_control's group controllers."""
    message = Float64MultiArray(data=[0.0] * len(JOINTS))
    size = len(JOINTS)
    message.layout.dim = [MultiArrayDimension(label="joint", size=size, stride=size)]
    return bytes(serialize_message(message))


def color() -> bytes:
    """Return a color image, 320 x 240 RGB."""
    return _image("rgb8", 3)


def depth() -> bytes:
    """Return a depth image, 320 x 240 float32 [m]."""
    return _image("32FC1", 4)


def _image(encoding: str, width: int) -> bytes:
    message = Image(height=HEIGHT, width=WIDTH, encoding=encoding, step=WIDTH * width)
    message.header.frame_id = "camera_color_optical_frame"
    message.data = array("B", bytes(HEIGHT * WIDTH * width))
    return bytes(serialize_message(message))


def _describe(message: Any) -> None:
    decision = message.decision
    decision.header.frame_id = "base_link"
    decision.domain = decision.source_domain = decision.robot_id = "ur5e"
    decision.encoder_id, decision.scene = "analytic_v1", "table"
    decision.intent_id = "touch the target on the table"


def _give_joints(message: Any) -> None:
    message.joint_name = list(JOINTS)
    message.joint_position = array("d", bytes(8 * len(JOINTS)))
    message.joint_velocity = array("d", bytes(8 * len(JOINTS)))
