"""The tool's own drive, and how deep the tip has gone since it met something."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import ExecutionFeedback, FloatArray
from kv_action_router.monitoring.signals import SignalTable

RESISTANCE = 1.5  # [N] that the tip has met something at
LASTING_NS = 40_000_000  # a shorter push is a jolt of the arm's own motion


class ToolRobot(Protocol):
    """What is asked of a robot's model (``robots.model.RobotModel`` is one)."""

    joint_names: tuple[str, ...]
    spindles: npt.NDArray[np.bool_]

    def forward(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return position [m] (3,) and rotation (3, 3) of the tip."""


class ToolDetector:
    """Writes ``spindle_torque``, ``spindle_speed`` and ``contact_depth``.

    The torque is the commanded one: that is what the limit of a stage is about. The depth counts
    along the tool from where the force at the tip exceeded ``RESISTANCE`` in a stage that may touch
    something, and has done so for ``LASTING_NS`` since; until then it is not measured.
    """

    def __init__(self, robot: ToolRobot) -> None:
        """Watch the first spindle of a robot; its model is used by this thread only."""
        self._robot = robot
        self._spindle = int(np.flatnonzero(robot.spindles)[0])
        self._names = robot.joint_names
        self.reset()

    def reset(self) -> None:
        """Forget what was met."""
        self._met: FloatArray | None = None
        self._met_ns = 0
        self._lasts = False  # what was met has been there for long enough
        self._touching = False

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Nothing here changes with time alone."""

    def on_task(self, table: SignalTable, *, contact: bool) -> None:
        """Take whether the stage under way may touch something."""
        if not contact and self._touching:
            self._met = None
            self._lasts = False
            table.forget("contact_depth")
        self._touching = contact

    def on_feedback(self, feedback: ExecutionFeedback, receipt_ns: int, table: SignalTable) -> None:
        """Take one feedback."""
        if feedback.joints != self._names or len(feedback.position) != len(self._names):
            return
        spindle = self._spindle
        torque = math.nan
        if feedback.command_interface == "effort" and len(feedback.command) > spindle:
            torque = abs(float(feedback.command[spindle]))
        table.put("spindle_torque", torque, receipt_ns)
        table.put("spindle_speed", abs(float(feedback.velocity[spindle])), receipt_ns)
        if not self._touching:
            return
        tip, turned = self._robot.forward(np.asarray(feedback.position, dtype=float))
        if not self._lasts:
            if not table.value("wrench_force", receipt_ns) > RESISTANCE:
                self._met = None
                return
            if self._met is None:
                self._met, self._met_ns = tip, receipt_ns
            self._lasts = receipt_ns - self._met_ns >= LASTING_NS
        if self._lasts and self._met is not None:
            table.put("contact_depth", float((tip - self._met) @ turned[:, 2]), receipt_ns)
