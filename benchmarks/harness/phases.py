"""What the driver of ``pipeline.py`` is asked to do, and what it answers. Plain data, as JSON."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path

# 100.7 images a second. A period of 10 ms would be five of the injector's, and all images of a run
# would meet its ticks at the same phase. This one meets them at 200 phases, 0.01 ms apart.
PERIOD_NS = 9_930_000
_SHIFT_NS = 70_000
WARM_UP = 50  # decisions of a phase that do not count, fewer where few are asked for
STAGES = 100  # of one task; the first decisions of each task do not count either
SETTLED = 5
_COMMON = (
    "needs_image: true, follow_target: false, velocity_scale: 0.6, tolerance: 10.0, "
    'end: [{name: asked, signal: wrench_force, op: ">", limit: 1000.0}]'
)
_SHARED = {
    side: f"goal: {{target_offset: [0.0, 0.0, {height}]}}, {_COMMON}"
    for side, height in (("rise", 0.12), ("sink", 0.06))
}


def period_of(rate: float) -> int:
    """Return a period near that of a rate [Hz], shifted likewise [ns]."""
    return round(1e9 / rate) - _SHIFT_NS


@dataclass(frozen=True)
class Phase:
    """One thing to measure.

    Attributes:
        name: of it in the report.
        kind: passages that count: ``hit`` or ``miss``.
        cycles: of them.
        invalidates: the entry in force is thrown away before the passage that counts.
        new_subtasks: each stage asks for something that the cache has never seen.
        busy_cores: kept busy by somebody else.
        busy_memory: processes that copy memory without a pause.
        period_ns: of the images [ns].
        hold_s: how long a motion runs before the next is asked for [s].
    """

    name: str
    kind: str
    cycles: int
    invalidates: bool = False
    new_subtasks: bool = False
    busy_cores: int = 0
    busy_memory: int = 0
    period_ns: int = PERIOD_NS
    hold_s: float = 0.0

    @property
    def warm_up(self) -> int:
        """How many decisions do not count."""
        return min(WARM_UP, self.cycles)

    @property
    def timeout(self) -> float:
        """How long it may take [s]: twice what it takes if every second image decides.

        A system that drops more than half of its decisions is not waited for.
        """
        images = 12 if self.invalidates else 4
        each = images * self.period_ns * 1e-9 + 2.0 * self.hold_s
        return 30.0 + (self.cycles + self.warm_up) * each


@dataclass
class PhaseRecord:
    """What came of a phase.

    Attributes:
        phase: its name.
        begin_ns, end_ns: between which it counted, CLOCK_MONOTONIC [ns].
        decisions_in_all: warm-up and all.
        decisions: that count, by what they were: hit and miss.
        decisions_dropped: that the synthesizer did not send, since their trigger was too old.
        decisions_late: whose chunk the injector did not follow, since its trigger was too old.
        counters: of the injector, what they rose by.
        reactions_ms: from the call of the invalidation to the first command of the new motion [ms].
        stops: that were engaged meanwhile, with their reasons; they were released at once.
        stops_in_warm_up: how many there were before that.
        failures: what was told meanwhile, for people, with how often.
        trouble: why it ended early; empty = it did not.
    """

    phase: str
    begin_ns: int = 0
    end_ns: int = 0
    decisions_in_all: int = 0
    decisions: dict[str, int] = field(default_factory=dict)
    decisions_dropped: int = 0
    decisions_late: int = 0
    counters: dict[str, int] = field(default_factory=dict)
    reactions_ms: list[float] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    stops_in_warm_up: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    trouble: str = ""


def write_plan(path: Path, phases: list[Phase]) -> None:
    """Write what is to be done; the folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([dataclasses.asdict(phase) for phase in phases]))


def read_plan(path: Path) -> list[Phase]:
    """Return what is to be done."""
    return [Phase(**entry) for entry in json.loads(path.read_text())]


def write_record(path: Path, record: PhaseRecord) -> None:
    """Write what came of a phase."""
    path.write_text(json.dumps(dataclasses.asdict(record)))


def read_record(path: Path) -> PhaseRecord | None:
    """Return what came of a phase; None = it was not reached."""
    return PhaseRecord(**json.loads(path.read_text())) if path.is_file() else None


def write_task(path: Path, phase: Phase, turn: int) -> None:
    """Write the task that a phase runs: stages to and fro above the target.

    The name is the file's path: that is how the monitor finds it. Only the driver ends a stage,
    since no wrench is ever that large; a motion that is cut short counts as a success. What all
    stages share stands there once: the nodes read this while they run.
    """
    lines = [f"name: {json.dumps(str(path))}", "intent: measure the pipeline", "stages:"]
    for index in range(STAGES):
        side = "rise" if index % 2 else "sink"
        subtask = f"benchmark_{turn}_{index}_v1" if phase.new_subtasks else f"benchmark_{side}_v1"
        # the first stage of a kind holds what the others of it take over
        rest = f"<<: *{side}" if index > 1 else _SHARED[side]
        anchor = "" if index > 1 else f"&{side} "
        lines.append(f"  - {anchor}{{{rest}, name: stage_{index}, subtask: {subtask}}}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
