"""What is written down while a run goes on. No ROS: ``ros/observer.py`` fills these in."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from kv_action_router.contracts import FloatArray, Stage

DecisionKind = Literal["hit", "miss", "refresh"]
PARTS: dict[str, tuple[Stage, Stage]] = {
    "encode": (Stage.ORIGIN, Stage.KEY),
    "match": (Stage.KEY, Stage.MATCH),
    "synthesize": (Stage.MATCH, Stage.CHUNK),
    "inject": (Stage.CHUNK, Stage.COMMAND),
}


@dataclass(frozen=True)
class Passage:
    """One decision's way through the stages: CLOCK_MONOTONIC at the end of each [ns]."""

    trace_id: int
    kind: DecisionKind
    stage_ns: tuple[int, int, int, int, int]

    @property
    def total_ms(self) -> float:
        """From the source time stamp of the trigger to the first command made from it [ms]."""
        return (self.stage_ns[Stage.COMMAND] - self.stage_ns[Stage.ORIGIN]) / 1e6

    def part_ms(self, name: str) -> float:
        """Time of one part, its transport included [ms]; the parts add up to the total."""
        start, end = PARTS[name]
        return (self.stage_ns[end] - self.stage_ns[start]) / 1e6


@dataclass(frozen=True)
class StageSpan:
    """One time that a stage was under way: begin and end on CLOCK_MONOTONIC [ns]."""

    stage: str
    begin_ns: int
    end_ns: int
    completed: bool  # its conditions ended it; else it failed, or was broken off
    task: str = ""  # whose stage it is

    @property
    def seconds(self) -> float:
        """How long it took [s]."""
        return (self.end_ns - self.begin_ns) * 1e-9


@dataclass
class CycleRecord:
    """One cycle of a demonstration."""

    index: int
    succeeded: bool = False
    message: str = ""
    decisions: int = 0
    task_hits: int = 0
    behavior_hits: int = 0
    duration: float = math.nan  # [s]
    touch_error: float = math.nan  # [m]
    contact_force: float = math.nan  # [N]
    final_torque: float = math.nan  # [N m] of a screw; likewise the two below
    advance: float = math.nan  # [m]
    search: float = math.nan  # [m]
    target_errors: list[float] = field(default_factory=list)  # of each look at the target [m]
    spans: list[StageSpan] = field(default_factory=list)  # in the order of their begins

    @property
    def hit_rate(self) -> float:
        """Task hits over decisions, 0 to 1."""
        return self.task_hits / self.decisions if self.decisions else 0.0


@dataclass(frozen=True)
class LoopCounters:
    """The injector's counters at one instant (``ExecutionFeedback``)."""

    ticks: int = 0
    confident_ticks: int = 0
    missed_ticks: int = 0
    chunks_adopted: int = 0
    chunks_late: int = 0
    chunks_refused: int = 0
    commands_sent: int = 0
    late_commands_sent: int = 0
    rate_hz: float = math.nan
    realtime: bool = False


@dataclass(frozen=True)
class MotionSample:
    """The arm at one instant: CLOCK_MONOTONIC [s]; arrays (n_joints,)."""

    time: float
    setpoint: FloatArray  # [rad]
    measured: FloatArray  # [rad]
    command: FloatArray  # sent last, in the interface's SI unit; with efforts [N m]


@dataclass(frozen=True)
class Placement:
    """Where the target was put: center of its top face, base frame [m], and its turn [rad]."""

    x: float
    y: float
    z: float
    yaw: float = 0.0


@dataclass
class CycleTrace:
    """One cycle, sample by sample; times are CLOCK_MONOTONIC [s].

    Attributes:
        index: of the cycle; 0 = of none.
        joints: that the arrays of ``motion`` belong to.
        motion: at each chunk that the injector followed.
        forces: time and force x, y, z at the flange, bias and all [N].
        placements: of the target, from the run's begin to this cycle.
    """

    index: int = 0
    joints: tuple[str, ...] = ()
    motion: list[MotionSample] = field(default_factory=list)
    forces: list[tuple[float, float, float, float]] = field(default_factory=list)
    placements: tuple[Placement, ...] = ()


@dataclass(frozen=True)
class TargetFrame:
    """A color image (h, w, 3) RGB and the decoded target's pixel (u, v) with its radius [px]."""

    image: np.ndarray
    pixel: tuple[float, float]
    radius: float


@dataclass
class RunRecord:
    """Everything that a report is made of."""

    cycles: list[CycleRecord] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)
    image_ages_ms: list[float] = field(default_factory=list)
    counters: LoopCounters = field(default_factory=LoopCounters)
    lateness_us: dict[str, float] = field(default_factory=dict)
    false_hits: int = 0
    decisions_unsent: int = 0  # chunks that the synthesizer did not send since they were too old
    real_time_factors: list[float] = field(default_factory=list)
    trace: CycleTrace = field(default_factory=CycleTrace)  # of the last cycle that succeeded
    frame: TargetFrame | None = None
    cpu_percent: dict[str, float] = field(default_factory=dict)
    rss_mb: dict[str, float] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    ended_by: str = ""  # what ended the run before its last cycle; empty = nothing did

    @property
    def traced_cycle(self) -> CycleRecord | None:
        """The cycle that ``trace`` is of."""
        found = (cycle for cycle in self.cycles if cycle.index == self.trace.index)
        return next(found, None)

    def of_kind(self, kind: DecisionKind) -> list[Passage]:
        """Return the passages of one kind."""
        return [passage for passage in self.passages if passage.kind == kind]
