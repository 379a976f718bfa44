"""Writes down one cycle after the other: stages, what the simulation knows, looks, and a trace.

Subscriptions: ``task_state``, ``wrench``, ``simulation/truth``. What the observer takes anyway
(matches, feedback) it hands over, on its own thread.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node

from kv_action_router.msg import CacheMatch, ExecutionFeedback, SimulationTruth
from kv_action_router.reporting.records import (
    CycleRecord,
    CycleTrace,
    MotionSample,
    Placement,
    RunRecord,
)
from kv_action_router.reporting.timeline import StageTimeline
from kv_action_router.ros import qos
from kv_action_router.ros.conversions.fields import stamp_from_msg
from kv_action_router.ros.streams import DataPlane
from kv_action_router.ros.topics import SIMULATION_TRUTH, TASK_STATE, WRENCH
from kv_action_router.ros.wire.reader import FieldReader

_MOTION_SAMPLES, _FORCE_SAMPLES = 6_000, 30_000  # two minutes
_LOOK = (
    "decision.header.stamp.sec",
    "decision.header.stamp.nanosec",
    "subtask",
    "target_valid",
    "target.pose.position.x",
    "target.pose.position.y",
    "target.pose.position.z",
)
_FORCE = ("wrench.force.x", "wrench.force.y", "wrench.force.z")


class CycleRecorder:
    """Fills a :class:`CycleRecord` from what was heard since :meth:`begin`.

    Invariant: a look at the target counts when its image was taken after the target was placed.

    Attributes:
        trace: of the cycle under way.
    """

    def __init__(
        self, node: Node, plane: DataPlane, run: RunRecord, looking: Collection[str]
    ) -> None:
        self.trace = CycleTrace()
        self._run = run
        self._looking = frozenset(looking)
        self._timeline = StageTimeline()
        self._truths: dict[str, SimulationTruth] = {}  # newest of each event
        self._placements: list[Placement] = []
        self._placed = 0  # sequence of the last one
        self._placed_ns = 0  # its stamp
        self._looks: list[tuple[int, tuple[float, float, float]]] = []
        # Deep: several stages may end between two polls.
        self._states = plane.reader(TASK_STATE, profile=qos.event())
        self._wrenches = plane.reader(WRENCH, profile=qos.log_stream(), raw=True)
        self._force_fields = FieldReader(WrenchStamped, _FORCE)
        self._look_fields = FieldReader(CacheMatch, _LOOK)
        self._subscription = node.create_subscription(
            SimulationTruth, SIMULATION_TRUTH.name, self._on_truth, qos.event()
        )

    def begin(self, index: int) -> None:
        """Begin a cycle: before its target is placed."""
        self.trace = CycleTrace(index)
        self._truths = {}
        self._looks = []
        self._timeline.clear()

    @property
    def at_rest(self) -> bool:
        """Whether the end of the last stage was heard of."""
        return not self._timeline.under_way

    def end(self, cycle: CycleRecord, sequence: int) -> None:
        """Write down what was heard.

        Args:
            cycle: to fill.
            sequence: of the target's placement, which all else must be of.
        """
        self.trace.placements = tuple(self._placements)
        cycle.spans = list(self._timeline.spans)
        contact, screw = self.witness("contact", sequence), self.witness("screw", sequence)
        if contact is not None:
            cycle.touch_error, cycle.contact_force = contact.error, contact.force
        if screw is not None:
            cycle.final_torque, cycle.advance = screw.final_torque, screw.advance
            cycle.search = screw.search
        if self._placements and self._placed == sequence:
            last = self._placements[-1]
            true = (last.x, last.y, last.z)
            cycle.target_errors = [
                math.dist(seen, true) for stamp, seen in self._looks if stamp > self._placed_ns
            ]

    def witness(self, event: str, sequence: int) -> SimulationTruth | None:
        """Return what the simulation said of an event with a placement of this number."""
        truth = self._truths.get(event)
        return truth if truth is not None and truth.sequence == sequence else None

    # --- the observer's thread -----------------------------------------------------------------

    def take_all(self) -> None:
        """Take what came."""
        while (sample := self._states.take()) is not None:
            state = sample.message
            self._timeline.on_state(
                state.status,
                state.task,
                state.goal_id,
                state.stage,
                state.stage_index,
                sample.origin_ns,
            )
        trace = self.trace
        while (sample := self._wrenches.take()) is not None:
            if len(trace.forces) < _FORCE_SAMPLES:
                force = self._force_fields.read(sample.message)
                if force is not None:
                    trace.forces.append((sample.origin_ns * 1e-9, *force))

    def on_image_match(self, data: bytes) -> None:
        """Take a match that answers an image."""
        fields = self._look_fields.read(data)
        if fields is None:
            return
        seconds, nanoseconds, subtask, valid, *point = fields
        if valid and subtask in self._looking:
            x, y, z = point
            self._looks.append((seconds * 1_000_000_000 + nanoseconds, (x, y, z)))

    def on_adopted(self, message: ExecutionFeedback) -> None:
        """Take the feedback of a chunk that the injector follows."""
        trace = self.trace
        if len(trace.motion) < _MOTION_SAMPLES:
            trace.joints = tuple(message.joint)
            trace.motion.append(
                MotionSample(
                    message.monotonic_ns * 1e-9,
                    np.array(message.setpoint_position),
                    np.array(message.position),
                    np.array(message.command),
                )
            )

    # --- the executor's thread -----------------------------------------------------------------

    def _on_truth(self, message: Any) -> None:
        factor = float(message.real_time_factor)
        if math.isfinite(factor) and factor > 0.0:
            self._run.real_time_factors.append(factor)
        self._truths[message.event] = message
        if message.event == "placed":
            at, turn = message.target.position, message.target.orientation
            yaw = 2.0 * math.atan2(turn.z, turn.w)
            self._placements.append(Placement(at.x, at.y, at.z, yaw))
            self._placed = message.sequence
            self._placed_ns = stamp_from_msg(message.header.stamp)
