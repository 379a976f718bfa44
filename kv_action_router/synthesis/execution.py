"""A decision that is being executed, and what the cache learns from how it ended."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from kv_action_router.contracts import (
    CacheMatch,
    EntryUpdate,
    FloatArray,
    Pose,
    UpdateOperation,
)
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.goal import goal_configuration, tip_goal
from kv_action_router.synthesis.recent_path import RecentPath
from kv_action_router.synthesis.spline import Motion
from kv_action_router.tasks.stages import StageDefinition, TargetGoal, TimedOutput


@dataclass(slots=True)
class Execution:
    """One decision under way.

    Attributes:
        match: that was answered.
        stage: it belongs to.
        template: the whole motion, with the end as it was followed to.
        target: pose that the motion ends for now; None = it acts on none.
        reused: the motion came from the cache.
        begun_ns: CLOCK_MONOTONIC of its beginning [ns].
        followed_ns: CLOCK_MONOTONIC of the newest image that was followed [ns].
        outputs_ns: CLOCK_MONOTONIC that the stage's timed outputs count from [ns].
        decision_hit: the newest decision that the motion answers was a hit.
        interrupted_ns: CLOCK_MONOTONIC of an interruption under way [ns]; 0 = none.
        path: where its set-point has been lately.
        strayed: largest distance of a joint from that path until now [rad].
    """

    match: CacheMatch
    stage: StageDefinition
    template: Motion
    target: Pose | None
    reused: bool
    begun_ns: int
    followed_ns: int
    outputs_ns: int
    decision_hit: bool
    interrupted_ns: int = 0
    path: RecentPath = field(default_factory=RecentPath)
    strayed: float = 0.0

    @classmethod
    def of(
        cls,
        match: CacheMatch,
        stage: StageDefinition,
        motion: Motion,
        target: Pose | None,
        reused: bool,
        now_ns: int,
    ) -> Execution:
        """Begin one now."""
        return cls(match, stage, motion, target, reused, now_ns, now_ns, now_ns, match.hit)

    def interrupt(self, now_ns: int) -> None:
        """Hold the motion: timed outputs wait with it."""
        self.interrupted_ns = self.interrupted_ns or now_ns

    def go_on(self, match: CacheMatch, now_ns: int) -> None:
        """Let the motion go on, as the answer to another decision."""
        if self.interrupted_ns:
            self.outputs_ns += now_ns - self.interrupted_ns
        self.interrupted_ns = 0
        self.begun_ns = now_ns
        self.decision_hit = match.hit

    @property
    def outputs(self) -> tuple[TimedOutput, ...]:
        """Timed outputs that are in force now."""
        return () if self.interrupted_ns else self.stage.outputs

    @property
    def entry(self) -> tuple[int, int]:
        """Id and version of the entry behind the motion; (0, 0) = replanned."""
        return (self.match.entry_id, self.match.entry_version) if self.reused else (0, 0)


def result_error(execution: Execution, model: RobotModel, measured: FloatArray) -> float:
    """Return the distance of the tip from the stage's goal [m].

    Where a line ends on contact, only the distance across the tool's axis counts: the contact says
    how deep. The line itself says nothing: from a start beside the target it slants, and meets the
    surface somewhere else.

    Args:
        execution: that has ended.
        model: of the robot.
        measured: joint positions (n,).
    """
    stage = execution.stage
    tip, rotation = model.forward(measured)
    goal = stage.goal
    if not isinstance(goal, TargetGoal):
        offset = tip - model.forward(goal_configuration(stage, model))[0]
        return float(np.sqrt(offset @ offset))
    if execution.target is None:
        return math.nan
    wanted = tip_goal(stage, execution.target)
    assert wanted is not None
    offset = tip - wanted
    if goal.line and stage.allowed_contact:
        axis = rotation[:, 2]
        offset = offset - (offset @ axis) * axis
    return float(np.sqrt(offset @ offset))


def success_update(
    execution: Execution, joint_names: tuple[str, ...], error: float
) -> EntryUpdate | None:
    """Return what a stage that reached its end teaches, or None.

    A replan is inserted; a hit is confirmed. An error above the stage's tolerance, at its end or on
    its path, makes a hit a false one, and a replan is then not worth keeping.
    """
    stage, match = execution.stage, execution.match
    if error > stage.tolerance:
        return failure_update(
            execution, f"error {error * 1e3:.1f} mm above {stage.tolerance * 1e3:.1f} mm", error
        )
    if execution.strayed > stage.path_tolerance:
        strayed, limit = execution.strayed * 1e3, stage.path_tolerance * 1e3
        reason = f"a joint strayed from its path by {strayed:.1f} mrad, above {limit:.1f} mrad"
        return failure_update(execution, reason, error)
    if execution.reused:
        return EntryUpdate(
            decision=match.decision,
            operation=UpdateOperation.SUCCESS,
            entry_id=match.entry_id,
            entry_version=match.entry_version,
            vector=match.vector,
            behavior=None,
            execution=None,
            error=error,
            false_hit=False,
            reason="stage reached its end",
        )
    return EntryUpdate(
        decision=match.decision,
        operation=UpdateOperation.INSERT,
        entry_id=0,
        entry_version=0,
        vector=match.vector,
        behavior=execution.template.to_behavior(
            stage.subtask, joint_names, execution.target if stage.needs_target else None
        ),
        execution=None,
        error=error,
        false_hit=False,
        reason="replan reached the stage's end",
    )


def failure_update(
    execution: Execution, reason: str, error: float = math.nan
) -> EntryUpdate | None:
    """Return what a hit that went wrong teaches; a replan that did teaches the cache nothing."""
    if not execution.reused:
        return None
    match = execution.match
    return EntryUpdate(
        decision=match.decision,
        operation=UpdateOperation.FAILURE,
        entry_id=match.entry_id,
        entry_version=match.entry_version,
        vector=match.vector,
        behavior=None,
        execution=None,
        error=error,
        false_hit=True,
        reason=reason,
    )
