"""A working shift in one process: cycle after cycle with drifting work-pieces, from an empty cache.

All five stages are the real ones. Of the surroundings, only the robot cell is simpler than in an
episode with physics (``kinematic_cell``), and nothing is rendered: target estimates are the true
poses with the error that rendered images lead to (``TrueTarget``), scene slices are computed from
painted pictures (``painted_scene``). The IMU and the drives' duty are left out; the body slice
masks them as it does for a robot that has none.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from kv_action_router.caching.layers.task import NO_BEHAVIOR
from kv_action_router.caching.statistics import LayerCounters
from kv_action_router.contracts import (
    KEY_SIZE,
    Decision,
    EntryUpdate,
    FloatArray,
    Pose,
    TaskStatus,
    UpdateOperation,
)
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.errors import ConfigError, SimulationError
from kv_action_router.injection.config import InjectionConfig
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.cell import Samples
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.drift import Workpiece, workpieces
from kv_action_router.simulation.episode import Episode, EpisodeConfig
from kv_action_router.simulation.kinematic_cell import STEP, KinematicCell
from kv_action_router.simulation.painted_scene import PaintedScene
from kv_action_router.simulation.sight import TrueTarget
from kv_action_router.simulation.stopwatch import StillStopwatch

_REACHING_IN = 0.5  # [s] that somebody's hand is in the cell
_CLEAR = 0.07  # [m] height of the tip at which it stands in no piece's way
_OPERATOR = "operator"
_TOUCH = "touch"  # stage that goes down to the piece
_HOT_DRIVE = 3  # wrist_1
_SPOILED_BY: FloatArray = np.array([0.0, 0.05, 0.0])  # [m]


def shift_episode() -> EpisodeConfig:
    """Return what a shift's episode is made of: as always, but for rates that need no physics."""
    return EpisodeConfig(
        encoding=EncoderConfig(key_rate=30.0),
        injection=InjectionConfig(
            watched_nodes=("",), command_interface="position", rate=1.0 / STEP
        ),
    )


@dataclass(frozen=True)
class ShiftConfig:
    """What a shift is made of.

    Attributes:
        cycles: of the task.
        seed: of work-pieces, noise and disturbances.
        spoiled_before: cycle before which the approach that was used last is spoiled; 0 = none is.
        episode: of the stages.
    """

    cycles: int = 500
    seed: int = 1
    spoiled_before: int = 0
    episode: EpisodeConfig = field(default_factory=shift_episode)

    def __post_init__(self) -> None:
        if not 0 <= self.spoiled_before < self.cycles:
            raise ConfigError(
                "spoiled_before", f"0 to {self.cycles - 1} (cycles - 1)", self.spoiled_before
            )


@dataclass(frozen=True, slots=True)
class ShiftCycle:
    """What one cycle came to; the task and behavior layers are counted per decision.

    Attributes:
        success: the task reached its end.
        canceled: it was not to: somebody took the work-piece away.
        reason: why it did not.
        pallet: that the work-piece lay on.
        duration: of the task [s].
        touch_error: distance of the touch from the work-piece's center [m]; NaN = none.
        decisions, task_hits, behavior_hits, false_hits: counted in this cycle.
        insertions, merges, evictions: of the task layer, in this cycle.
        lost_confidence: entries that lost their confidence bit, in this cycle.
        confident_ticks: share of control ticks with a confident execution value.
        entries: that the cache holds after it.
        spoiled: an entry was spoiled just before.
    """

    success: bool
    canceled: bool
    reason: str
    pallet: int
    duration: float
    touch_error: float
    decisions: int
    task_hits: int
    behavior_hits: int
    false_hits: int
    insertions: int
    merges: int
    evictions: int
    lost_confidence: int
    confident_ticks: float
    entries: int
    spoiled: bool


class Shift:
    """Runs the cycles of one shift.

    Attributes:
        episode: the stages and the cell.
        spoiled: entry that was spoiled on purpose; 0 = none yet.
    """

    def __init__(self, config: ShiftConfig) -> None:
        """Build everything; the cache is empty.

        Raises:
            RouterError: a configuration is not valid.
        """
        episode = config.episode
        simulation = dataclasses.replace(episode.simulation, seed=config.seed)
        self.config = config
        self.spoiled = 0
        self._pieces = workpieces(config.cycles, config.seed)
        self._piece: Workpiece = self._pieces[0]
        self._scene = PaintedScene(episode.encoding, simulation)
        self._source = TrueTarget(config.seed)
        self.episode = Episode(
            lambda _plant, _config: self._source,
            dataclasses.replace(episode, simulation=simulation),
            self._cell,
            StillStopwatch(),
        )
        self._begin_ns = 0
        self._reached_in_ns = 0
        self._canceled = False
        self.episode.on_step = self._disturb

    def cycles(self) -> Iterator[ShiftCycle]:
        """Run the shift, cycle by cycle."""
        for number, piece in enumerate(self._pieces):
            spoils = 0 < self.config.spoiled_before == number
            if spoils:
                self.spoiled = self._spoil()
            yield self._run(piece, spoils)

    # --- inside -------------------------------------------------------------------------------

    def _cell(self, config: SimulationConfig, robot: RobotModel, delay: int) -> KinematicCell:
        self._robot = cell = KinematicCell(config, robot, delay, lambda: self._piece.position)
        return cell

    def _run(self, piece: Workpiece, spoiled: bool) -> ShiftCycle:
        episode, cell, manager = self.episode, self._robot, self.episode.caching.manager
        self._piece = piece
        self._source.scene = self._scene.slice(piece.position, piece.tint)
        cell.temperature = np.array(episode.config.simulation.initial_temperature)
        cell.temperature[_HOT_DRIVE] = piece.temperature
        before = self._counted()
        ticks = self._ticks()
        self._begin_ns, self._reached_in_ns, self._canceled = cell.now_ns, 0, False
        cycle = episode.touch()
        after, done = self._counted(), self._ticks()
        manager.on_execution(*done)
        episode.synthesis.decisions.clear()
        return ShiftCycle(
            success=cycle.success,
            canceled=self._canceled,
            reason=cycle.reason,
            pallet=piece.pallet,
            duration=cycle.duration,
            touch_error=cycle.touch_error,
            decisions=cycle.decisions,
            task_hits=cycle.task_hits,
            behavior_hits=cycle.behavior_hits,
            false_hits=cycle.false_hits,
            insertions=after.insertions - before.insertions,
            merges=after.merges - before.merges,
            evictions=after.evictions - before.evictions,
            lost_confidence=after.invalidations_failure - before.invalidations_failure,
            confident_ticks=(done[1] - ticks[1]) / (done[0] - ticks[0]),
            entries=len(manager.entries),
            spoiled=spoiled,
        )

    def _counted(self) -> LayerCounters:
        manager = self.episode.caching.manager
        return manager.counted.of_task(manager.config.own_domain).frozen()

    def _ticks(self) -> tuple[int, int]:
        counters = self.episode.injection.controller.counters
        return counters.ticks, counters.confident_ticks

    def _disturb(self, samples: Samples) -> None:
        """Interrupt and cancel at the time that was drawn for this work-piece."""
        tasks, now_ns = self.episode.synthesis.synthesizer.tasks, samples.now_ns
        status, elapsed = tasks.stack.status, (now_ns - self._begin_ns) * 1e-9
        if status == TaskStatus.INTERRUPTED:
            if now_ns - self._reached_in_ns >= _REACHING_IN * 1e9:
                tasks.resume(_OPERATOR, now_ns)
        elif status == TaskStatus.RUNNING:
            if elapsed >= self._piece.interrupted_after and not self._reached_in_ns:
                self._reach_in(now_ns)
            elif elapsed >= self._piece.canceled_after and self._stands_clear():
                self._canceled = True
                tasks.cancel("the work-piece was taken away", now_ns)

    def _reach_in(self, now_ns: int) -> None:
        tasks = self.episode.synthesis.synthesizer.tasks
        self._reached_in_ns = now_ns
        tasks.interrupt(_OPERATOR, "somebody reaches into the cell", now_ns)
        if tasks.stack.stage.follow_target:  # the tool does not stand over the piece yet
            self._robot.plant.place_target(self._piece.moved_to)

    def _stands_clear(self) -> bool:
        """Say whether the arm may stop here and the next piece come."""
        touches = self.episode.synthesis.synthesizer.tasks.stack.stage.name == _TOUCH
        return not touches and float(self._robot.plant.tip[2]) > _CLEAR

    def _spoil(self) -> int:
        """Give the approach that was used last a wrong target; return its entry."""
        manager = self.episode.caching.manager
        entries = manager.entries
        tasks, subtask = entries.tasks, self.episode.task.stages[0].subtask
        slots = [
            slot
            for slot in tasks.slots.values()
            if tasks.behavior[slot] != NO_BEHAVIOR
            and entries.partitions[int(tasks.index.partitions[slot])].subtask == subtask
        ]
        if not slots:
            raise SimulationError(f"nothing to spoil: the cache holds no {subtask}")
        entry = tasks.read(max(slots, key=lambda slot: int(tasks.last_used[slot])))
        behavior = entries.behaviors.read(entry.behavior)
        assert behavior.target is not None
        wrong = Pose(behavior.target.position + _SPOILED_BY, behavior.target.orientation)
        manager.apply(
            EntryUpdate(
                decision=Decision(domain=manager.config.own_domain),
                operation=UpdateOperation.REVISE,
                entry_id=entry.entry_id,
                entry_version=entry.version,
                vector=np.zeros(KEY_SIZE, np.float32),
                behavior=dataclasses.replace(behavior, target=wrong),
                execution=None,
                error=math.nan,
                false_hit=False,
                reason="spoiled on purpose",
            )
        )
        return entry.entry_id
