"""Runs a controller of its own through everything that the first real ticks will need."""

from __future__ import annotations

import numpy as np

from kv_action_router.contracts import (
    CHUNK_SAMPLES,
    ChunkKind,
    Decision,
    ExecutionValue,
    JointReading,
    TrajectoryChunk,
)
from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.controller import InjectionController
from kv_action_router.injection.robot import JointModel
from kv_action_router.injection.signals import Inputs

_TICKS = 60
_START_NS = 1_000_000_000


def warm_up(model: JointModel, config: InjectionConfig, values: ExecutionValue) -> None:
    """Follow holding chunks for some ticks, then drop all of it."""
    controller = InjectionController(model, config, values)
    lower, upper = np.maximum(model.lower, -1.0), np.minimum(model.upper, 1.0)
    position = 0.5 * (lower + upper)
    names = model.joint_names
    columns = tuple(f"{name}/position" for name in names)
    samples = np.tile(position, (CHUNK_SAMPLES, 1))
    zeros = [0.0] * len(names)
    inputs = Inputs()
    now = _START_NS
    controller.activate(now)
    for tick in range(_TICKS):
        now += config.period_ns
        inputs.clear()
        inputs.joints = JointReading(names, position.tolist(), zeros, zeros, now, now)
        inputs.heartbeats.update(dict.fromkeys(config.watched_nodes, now))
        if tick % 10 == 5:
            inputs.chunk = TrajectoryChunk(
                decision=Decision(trigger_monotonic_ns=now, sequence=tick, epoch=controller.epoch),
                kind=ChunkKind.DECISION,
                anchor_ns=now,
                columns=columns,
                samples=samples,
                auxiliary=(),
                entry_id=0,
                entry_version=0,
                task="",
                stage="",
                phase=0.0,
                ends_at_rest=True,
            )
        controller.tick(now, inputs)
        controller.sent(now)
