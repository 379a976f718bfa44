"""Builders of keys, tasks and behavior values for the tests of the cache."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from kv_action_router.caching.config import CachingConfig
from kv_action_router.caching.manager import CacheManager
from kv_action_router.contracts import (
    INTENT_SIZE,
    ROBOT_SLICE,
    SLICE_NORMS,
    SLICES,
    BehaviorValue,
    CacheMatch,
    Decision,
    DecisionReason,
    EntryUpdate,
    ExecutionValue,
    Float32Array,
    JointSample,
    Pose,
    TargetEstimate,
    TaskKey,
    TaskState,
    TaskStatus,
    Trigger,
    UpdateOperation,
)
from kv_action_router.robots.execution_values import SLOT_BOUNDS

JOINTS = ("shoulder", "elbow", "wrist")


@dataclass(frozen=True)
class Arm:
    """Three joints; the wrist turns without end."""

    joint_names: tuple[str, ...] = JOINTS
    lower: Any = dataclasses.field(default_factory=lambda: np.array([-3.0, -2.0, -np.inf]))
    upper: Any = dataclasses.field(default_factory=lambda: np.array([3.0, 2.0, np.inf]))
    continuous: Any = dataclasses.field(default_factory=lambda: np.array([False, False, True]))
    spindles: Any = dataclasses.field(default_factory=lambda: np.zeros(3, dtype=bool))


def unit(seed: int, size: int) -> Float32Array:
    """Return a random direction."""
    direction = np.random.default_rng(seed).normal(size=size)
    return (direction / np.linalg.norm(direction)).astype(np.float32)


class Build:
    """Everything a test of the cache puts together, with defaults that make a hit."""

    joints = JOINTS
    arm = Arm()
    subtask = "touch_approach_v1"

    def vector(
        self, target: int = 1, scene: int = 2, body: int = 3, robot: int = 4
    ) -> Float32Array:
        """Return a key whose slices point in the directions of these seeds."""
        key = np.zeros(64, dtype=np.float32)
        for name, seed in (("target", target), ("scene", scene), ("body", body)):
            part = SLICES[name]
            key[part] = unit(seed, part.stop - part.start) * SLICE_NORMS[name]
        key[ROBOT_SLICE] = unit(robot, 8)
        return key

    def turned(self, vector: Float32Array, name: str, cosine: float) -> Float32Array:
        """Return the key with one slice turned to a given cosine with itself."""
        key = vector.copy()
        part = SLICES[name]
        along = key[part] / np.linalg.norm(key[part])
        across = np.roll(along, 1) - float(np.roll(along, 1) @ along) * along
        across /= np.linalg.norm(across)
        turned = cosine * along + math.sqrt(1.0 - cosine**2) * across
        key[part] = turned * np.linalg.norm(vector[part])
        return key

    def behavior(
        self,
        start: tuple[float, ...] = (0.0, 0.0, 0.0),
        *,
        points: int = 12,
        subtask: str | None = None,
        acts_on_target: bool = True,
        mark: float = 0.0,
    ) -> BehaviorValue:
        """Return a clamped quintic from ``start``; ``mark`` is added to what is not the start."""
        degree = 5
        coefficients = np.tile(np.array(start, dtype=float), (points, 1))
        coefficients[1:] += mark
        inner = np.linspace(0.0, 2.0, points - degree + 1)
        return BehaviorValue(
            subtask=subtask or self.subtask,
            dimensions=tuple(f"{name}/position" for name in JOINTS),
            degree=degree,
            knots=np.concatenate([np.zeros(degree), inner, np.full(degree, 2.0)]),
            coefficients=coefficients,
            phase=0.0,
            decay=np.ones(len(JOINTS)),
            target=Pose(np.array([0.4, mark, 0.0])) if acts_on_target else None,
        )

    def sample(self, position: tuple[float, ...] = (0.0, 0.0, 0.0)) -> JointSample:
        """Return a joint state at rest."""
        zero = np.zeros(len(JOINTS))
        return JointSample(JOINTS, np.array(position, dtype=float), zero, zero, 1)

    def decision(self, **changes: Any) -> Decision:
        """Return a header."""
        return dataclasses.replace(
            Decision(
                trace_id=7,
                trigger_monotonic_ns=2000,
                sequence=1,
                epoch=3,
                domain="r1",
                robot_id="r1",
                encoder_id="e1",
                scene="default",
                intent_id="touch",
            ),
            **changes,
        )

    def key(
        self,
        vector: Any = None,
        *,
        position: tuple[float, ...] = (0.0, 0.0, 0.0),
        trigger: Trigger = Trigger.IMAGE,
        sees_target: bool = True,
        **decision: Any,
    ) -> TaskKey:
        """Return a key."""
        return TaskKey(
            decision=self.decision(**decision),
            trigger=trigger,
            vector=self.vector() if vector is None else vector,
            target=TargetEstimate(Pose(np.array([0.4, 0.0, 0.0])), np.eye(6) * 1e-6)
            if sees_target
            else None,
            target_age=0.01,
            scene_age=0.01,
            body_age=0.0,
            masked_inputs=0,
            joints=self.sample(position),
        )

    def task(
        self,
        decision_id: int = 1,
        *,
        status: TaskStatus = TaskStatus.RUNNING,
        subtask: str | None = None,
        needs_target: bool = True,
        needs_image: bool = True,
        requested_ns: int = 1000,
        goal: str = "g1",
        intent: str = "touch",
    ) -> TaskState:
        """Return a task state that asks for a decision."""
        return TaskState(
            decision=self.decision(decision_id=decision_id, intent_id=intent),
            status=status,
            task="touch_target",
            goal_id=goal,
            stage="approach",
            stage_index=0,
            stage_count=3,
            subtask=subtask or self.subtask,
            phase=0.0,
            intent=np.ones(INTENT_SIZE, dtype=np.float32),
            decision_reason=DecisionReason.STAGE_ENTRY,
            needs_target=needs_target,
            needs_image=needs_image,
            requested_monotonic_ns=requested_ns,
            allowed_contact="",
        )

    def execution(self, version: int, base: int, **changes: Any) -> ExecutionValue:
        """Return what two drives may do, every slot inside its bounds."""
        row = [min(max(1.0, *bounds[:1]), bounds[1]) for bounds in SLOT_BOUNDS.values()]
        slots = np.array([row, row], dtype=np.float32)
        value = ExecutionValue(("a", "b"), slots, np.ones(2, dtype=bool), version, base, "file")
        return dataclasses.replace(value, **changes)

    def update(
        self,
        operation: UpdateOperation = UpdateOperation.INSERT,
        *,
        vector: Any = None,
        behavior: BehaviorValue | None = None,
        entry: int = 0,
        version: int = 0,
        false_hit: bool = False,
        execution: Any = None,
        **decision: Any,
    ) -> EntryUpdate:
        """Return an entry update."""
        needs_value = operation in (UpdateOperation.INSERT, UpdateOperation.REVISE)
        return EntryUpdate(
            decision=self.decision(**decision),
            operation=operation,
            entry_id=entry,
            entry_version=version,
            vector=self.vector() if vector is None else vector,
            behavior=behavior or (self.behavior() if needs_value else None),
            execution=execution,
            error=0.001,
            false_hit=false_hit,
            reason="test",
        )

    def manager(self, *, guards: Any = (), execution: Any = None, **changes: Any) -> CacheManager:
        """Return an empty cache of robot ``r1``."""
        config = CachingConfig(**{"robot_id": "r1", "capacity": 16, **changes})
        return CacheManager(config, self.arm, execution, guards)

    def decide(
        self, manager: CacheManager, decision_id: int = 1, key: TaskKey | None = None, **task: Any
    ) -> CacheMatch:
        """Ask for a decision and return the match that answers it."""
        manager.on_task_state(self.task(decision_id, **task))
        return manager.on_key(key or self.key())


@pytest.fixture(scope="session")
def build() -> Build:
    """Builders with defaults that make a hit."""
    return Build()
