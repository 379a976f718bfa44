"""What a stage asks of the execution layer: slots that are in force while it lasts."""

from __future__ import annotations

import math

import numpy as np

from kv_action_router.contracts import (
    EXECUTION_SLOTS,
    KEY_SIZE,
    SLOT,
    Decision,
    EntryUpdate,
    ExecutionValue,
    UpdateOperation,
)
from kv_action_router.errors import TaskDefinitionError
from kv_action_router.tasks.stages import StageDefinition

REST = "*"  # every drive that a stage does not name


class StageValues:
    """Tells the cache which slots a stage sets, and when they are to be as before.

    Invariant: an update goes out only when what is asked for has changed.
    """

    def __init__(self, joint_names: tuple[str, ...]) -> None:
        """Ask for nothing yet; joints are in the model's order."""
        self._joints = joint_names
        self._asked: dict[str, dict[str, float]] = {}

    def update(self, stage: StageDefinition | None, decision: Decision) -> EntryUpdate | None:
        """Return what the cache has to be told, None = nothing new.

        Args:
            stage: under way; None = none is.
            decision: header of the update.

        Raises:
            TaskDefinitionError: the stage names a drive that this robot has not.
        """
        asked = {} if stage is None else self._resolved(stage)
        if asked == self._asked:
            return None
        self._asked = asked
        slots = np.full((len(self._joints), EXECUTION_SLOTS), np.nan, np.float32)
        for row, joint in enumerate(self._joints):
            for slot, number in asked.get(joint, {}).items():
                slots[row, SLOT[slot]] = number
        reason = "no stage asks for anything" if stage is None or not asked else stage.subtask
        value = ExecutionValue(
            self._joints, slots, np.ones(len(self._joints), np.bool_), 0, 0, f"stage: {reason}"
        )
        return EntryUpdate(
            decision=decision,
            operation=UpdateOperation.EXECUTION,
            entry_id=0,
            entry_version=0,
            vector=np.zeros(KEY_SIZE, np.float32),
            behavior=None,
            execution=value,
            error=math.nan,
            false_hit=False,
            reason=value.provenance,
        )

    def _resolved(self, stage: StageDefinition) -> dict[str, dict[str, float]]:
        asked: dict[str, dict[str, float]] = {}
        for drive, slots in stage.execution.items():
            if drive == REST:
                continue
            joint = next((name for name in self._joints if name.endswith(drive)), None)
            if joint is None:
                raise TaskDefinitionError(
                    f"stage {stage.name!r}: execution: drive must be one of"
                    f" {', '.join(self._joints)}, got {drive!r}"
                )
            asked[joint] = dict(slots)
        if REST in stage.execution:
            for joint in self._joints:
                asked.setdefault(joint, dict(stage.execution[REST]))
        return asked
