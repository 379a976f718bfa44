"""Warming up: the first key after activation must find everything loaded and specialized."""

from __future__ import annotations

import dataclasses

import numpy as np
from threadpoolctl import threadpool_limits

from kv_action_router.caching.config import CachingConfig
from kv_action_router.caching.guards import JointModel
from kv_action_router.caching.manager import CacheManager
from kv_action_router.contracts import (
    INTENT_SIZE,
    KEY_SIZE,
    BehaviorValue,
    CacheMatch,
    Decision,
    DecisionReason,
    EntryUpdate,
    JointSample,
    Pose,
    TargetEstimate,
    TaskKey,
    TaskState,
    TaskStatus,
    Trigger,
    UpdateOperation,
)

ROUNDS = 50
_SUBTASK = "warm_up_v1"


def warm_up(config: CachingConfig, model: JointModel) -> list[CacheMatch]:
    """Run misses, hits and refreshes through a cache of its own; return matches of each kind.

    One BLAS thread from here on: more turn a match of microseconds into spikes of milliseconds.
    """
    threadpool_limits(limits=1)
    manager = CacheManager(dataclasses.replace(config, capacity=64, threshold=0.5), model)
    matches: list[CacheMatch] = []
    for decision_id in range(1, ROUNDS + 1):
        decision = Decision(
            decision_id=decision_id, domain=config.own_domain, intent_id="warm_up", scene="warm_up"
        )
        manager.on_task_state(_task(decision))
        key = _key(decision, model)
        matches = [manager.on_key(key), manager.on_key(key)]
        if decision_id == ROUNDS // 2:
            manager.apply(_insertion(decision, key, model))
        manager.query(key.vector)
        manager.statistics()
    manager.on_task_state(_task(Decision(), TaskStatus.IDLE))
    return [*matches, manager.on_key(_key(Decision(), model))]


def _task(decision: Decision, status: TaskStatus = TaskStatus.RUNNING) -> TaskState:
    return TaskState(
        decision=decision,
        status=status,
        task="warm_up",
        goal_id="warm_up",
        stage="warm_up",
        stage_index=0,
        stage_count=1,
        subtask=_SUBTASK,
        phase=0.0,
        intent=np.zeros(INTENT_SIZE, dtype=np.float32),
        decision_reason=DecisionReason.STAGE_ENTRY,
        needs_target=True,
        needs_image=True,
        requested_monotonic_ns=0,
        allowed_contact="",
    )


def _key(decision: Decision, model: JointModel) -> TaskKey:
    count = len(model.joint_names)
    position = _middle(model)
    joints = JointSample(model.joint_names, position, np.zeros(count), np.zeros(count), 1)
    return TaskKey(
        decision=dataclasses.replace(decision, trigger_monotonic_ns=1),
        trigger=Trigger.IMAGE,
        vector=np.ones(KEY_SIZE, dtype=np.float32),
        target=TargetEstimate(Pose(), np.eye(6)),
        target_age=0.0,
        scene_age=0.0,
        body_age=0.0,
        masked_inputs=0,
        joints=joints,
    )


def _middle(model: JointModel) -> np.ndarray:
    """Return positions inside the limits of every joint (n,)."""
    return np.clip(np.zeros(len(model.joint_names)), model.lower, model.upper)


def _insertion(decision: Decision, key: TaskKey, model: JointModel) -> EntryUpdate:
    degree, points = 5, 32
    inner = np.linspace(0.0, 1.0, points - degree + 1)
    behavior = BehaviorValue(
        subtask=_SUBTASK,
        dimensions=tuple(f"{name}/position" for name in model.joint_names),
        degree=degree,
        knots=np.concatenate([np.zeros(degree), inner, np.ones(degree)]),
        coefficients=np.tile(_middle(model), (points, 1)),
        phase=0.0,
        decay=np.ones(len(model.joint_names)),
        target=Pose(),
    )
    return EntryUpdate(
        decision=decision,
        operation=UpdateOperation.INSERT,
        entry_id=0,
        entry_version=0,
        vector=key.vector,
        behavior=behavior,
        execution=None,
        error=0.0,
        false_hit=False,
        reason="warm-up",
    )
