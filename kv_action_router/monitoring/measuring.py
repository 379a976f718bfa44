"""All detectors, and which of them takes which sample."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from kv_action_router.contracts import DriveSample, ExecutionFeedback, TaskState, TaskStatus
from kv_action_router.monitoring.config import MonitorConfig
from kv_action_router.monitoring.detectors.contact import ContactDetector
from kv_action_router.monitoring.detectors.deadline import DeadlineDetector
from kv_action_router.monitoring.detectors.force_step import FORCE_DROP, ForceStepDetector
from kv_action_router.monitoring.detectors.grip import GripDetector
from kv_action_router.monitoring.detectors.heartbeat import HeartbeatDetector
from kv_action_router.monitoring.detectors.hit_rate import HitRateDetector
from kv_action_router.monitoring.detectors.motion import Motion
from kv_action_router.monitoring.detectors.overrun import OverrunDetector
from kv_action_router.monitoring.detectors.proximity import ArmOutline, ProximityDetector
from kv_action_router.monitoring.detectors.stall import StallDetector
from kv_action_router.monitoring.detectors.stamps import StampDetector
from kv_action_router.monitoring.detectors.stuck import StuckDetector
from kv_action_router.monitoring.detectors.thermal import ThermalDetector
from kv_action_router.monitoring.detectors.tool import ToolDetector, ToolRobot
from kv_action_router.monitoring.detectors.tracking import TrackingDetector
from kv_action_router.monitoring.detectors.vision import VisionDetector
from kv_action_router.monitoring.expectation import Expectation
from kv_action_router.monitoring.samples import (
    HeartbeatSample,
    KeySample,
    LoopSample,
    ObstacleSample,
    RatesSample,
    StampSample,
    TransportSample,
    WrenchSample,
)
from kv_action_router.monitoring.signals import SignalTable

_AGES_PERIOD_NS = 8_000_000  # heartbeats and image ages
_COUNTS_PERIOD_NS = 50_000_000  # DDS events and stamps
_UNDER_WAY = (TaskStatus.RUNNING, TaskStatus.INTERRUPTED, TaskStatus.STOPPING)


class Measuring:
    """Turns samples into the signals of a table. Used by one thread.

    Attributes:
        handlers: takes a sample of each type that only detectors want.
    """

    def __init__(
        self,
        table: SignalTable,
        config: MonitorConfig,
        *,
        nodes: Sequence[str],
        topics: Sequence[str],
        producers: Mapping[str, tuple[str, ...]],
        motion_in_force: Callable[[], bool],
        arm: ArmOutline | None,
        tool: ToolRobot | None = None,
    ) -> None:
        """Build the detectors.

        Args:
            table: that they write into.
            config: parameters of the stage.
            nodes: that must give signs of life.
            topics: that DDS events may come from.
            producers: topics with a deadline or lease, and the nodes that must be active for
                their writers to be at work.
            motion_in_force: whether a stage's motion is followed now.
            arm: whose distance from obstacles is judged; None = of no one.
            tool: robot whose tool has a drive of its own; None, or one without a spindle = none.
        """
        self._table = table
        self.heartbeats = HeartbeatDetector(nodes, config.settle)
        self.contact = ContactDetector()
        self.force_step = ForceStepDetector()
        spindles: list[str] = []
        if tool is not None:
            spindles = [
                name for name, one in zip(tool.joint_names, tool.spindles, strict=True) if one
            ]
        self.tool = ToolDetector(tool) if tool is not None and spindles else None
        self.tracking = TrackingDetector(spindles)
        self.stuck = StuckDetector(spindles)
        self.stall = StallDetector()
        self.thermal = ThermalDetector()
        self.grip = GripDetector(config.gripper_drive, config.gripper_force_constant)
        self.vision = VisionDetector()
        self.proximity = ProximityDetector(
            arm,
            reaction=config.proximity_reaction,
            deceleration=config.proximity_deceleration,
        )
        self.overrun = OverrunDetector()
        self.hit_rate = HitRateDetector()
        self.stamps = StampDetector()
        self.deadlines = DeadlineDetector(
            topics, Expectation(self.heartbeats.is_active, motion_in_force, producers)
        )
        self._all = (
            self.heartbeats, self.contact, self.tracking, self.stuck, self.stall, self.thermal,
            self.grip, self.vision, self.proximity, self.overrun, self.hit_rate, self.stamps,
            self.deadlines, self.force_step,
        )  # fmt: skip
        if self.tool is not None:
            self._all = (*self._all, self.tool)  # type: ignore[assignment]
        self._ages_ns = 0
        self._counts_ns = 0
        self.handlers: dict[type, Callable[[Any], object]] = {
            WrenchSample: self._on_wrench,
            DriveSample: self._on_drives,
            HeartbeatSample: self.heartbeats.on_heartbeat,
            KeySample: lambda sample: self.vision.on_key(sample, table),
            LoopSample: lambda sample: self.overrun.on_loop(sample, table),
            ObstacleSample: self.proximity.on_obstacles,
            RatesSample: lambda sample: self.hit_rate.on_rates(sample, table),
            StampSample: self.stamps.on_stamp,
            TransportSample: self.deadlines.on_event,
        }

    def reset(self) -> None:
        """Forget everything, as on activation."""
        self._table.clear()
        for detector in self._all:
            detector.reset()
        self._ages_ns = self._counts_ns = 0

    def measure(self, now_ns: int) -> None:
        """Write what changes with time alone, as often as it is worth it."""
        table = self._table
        if not 0 <= now_ns - self._ages_ns < _AGES_PERIOD_NS:
            self._ages_ns = now_ns
            self.heartbeats.measure(table, now_ns)
            self.vision.measure(table, now_ns)
        if not 0 <= now_ns - self._counts_ns < _COUNTS_PERIOD_NS:
            self._counts_ns = now_ns
            self.deadlines.measure(table, now_ns)
            self.stamps.measure(table, now_ns)

    def on_feedback(self, feedback: ExecutionFeedback, receipt_ns: int) -> None:
        """Take one feedback."""
        table = self._table
        motion = Motion.of(feedback)
        self.tracking.on_feedback(motion, receipt_ns, table)
        self.stuck.on_feedback(motion, receipt_ns, table)
        self.stall.on_feedback(motion)
        self.proximity.on_feedback(feedback, table)
        if self.tool is not None:
            self.tool.on_feedback(feedback, receipt_ns, table)

    def on_task(self, state: TaskState) -> None:
        """Take what the stage under way may touch, and what it must see."""
        contact = bool(state.allowed_contact)
        if self.tool is not None:
            self.tool.on_task(self._table, contact=contact and state.status in _UNDER_WAY)
        self.stuck.on_task(self._table, contact=contact)
        self.proximity.on_task(
            active=state.status in _UNDER_WAY,
            contact=contact,
            held=state.status == TaskStatus.INTERRUPTED,
        )
        running = state.status == TaskStatus.RUNNING
        self.vision.on_task(looks=running and state.needs_target and not contact)

    def ask(self, signals: Collection[str]) -> None:
        """Say which signals are judged: what costs something with each sample is left out else."""
        self.force_step.asked = FORCE_DROP in signals
        if not self.force_step.asked:
            self._table.forget(FORCE_DROP)

    def begin_motion(self) -> None:
        """The motion of a stage is followed from now on."""
        self.force_step.begin()
        self._table.forget(FORCE_DROP)

    def detail(self, source: str) -> str:
        """Return what is known of a fault beside its number, for people; empty = nothing."""
        return self.deadlines.detail.get(source, "") or self.stamps.detail.get(source, "")

    def _on_wrench(self, sample: WrenchSample) -> None:
        force = self.contact.on_wrench(sample, self._table)
        if self.force_step.asked:
            self.force_step.on_force(force, sample.receipt_ns, self._table)

    def _on_drives(self, sample: DriveSample) -> None:
        self.thermal.on_drives(sample, self._table)
        self.stall.on_drives(sample, self._table)
        self.grip.on_drives(sample, self._table)
