"""Runs every path of a decision once, so that the first real one is not the slow one."""

from __future__ import annotations

import numpy as np

from kv_action_router.contracts import (
    BehaviorValue,
    CacheMatch,
    ChunkKind,
    Decision,
    FloatArray,
    JointSample,
    MissReason,
    Pose,
    TargetEstimate,
    TrajectoryChunk,
    Trigger,
)
from kv_action_router.errors import SynthesisError
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.chunk import ChunkMaker
from kv_action_router.synthesis.clearance import Clearance
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.decider import Decider
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.reference import Reference
from kv_action_router.synthesis.replan import ReplanSource
from kv_action_router.synthesis.spline import MotionState
from kv_action_router.tasks.stages import StageDefinition, TargetGoal

_ROUNDS = 5
_BELOW_HOME = 0.1  # [m]
_BESIDE = np.array([0.0, 0.25, 0.0])  # [m] from there, with an obstacle on the way
_OBSTACLE = 0.03  # [m]


def warm_up(model: RobotModel, config: SynthesisConfig) -> list[TrajectoryChunk]:
    """Plan, reuse, follow, brake, sample and go around something; return chunks to convert."""
    clearance = Clearance(model, config)
    decider = Decider(model, config, ReplanSource(model, config, clearance), clearance)
    limits = MotionLimits.of(model)
    chunks = ChunkMaker(model.joint_names)
    start = MotionState.at_rest(model.home)
    place = model.forward(model.home)[0] - np.array([0.0, 0.0, _BELOW_HOME])
    made: list[TrajectoryChunk] = []
    for line in (False, True) * _ROUNDS:
        goal = TargetGoal(np.zeros(3), line)
        stage = StageDefinition("warm_up", "warm_up", goal, (), needs_target=True)
        try:
            decided = decider.decide(stage, _match(place, None), start, np.zeros((0, 4)))
            stored = decided.motion.to_behavior("warm_up", model.joint_names, Pose(place))
            moved = place + np.array([0.01, 0.01, 0.0])
            again = decider.decide(stage, _match(moved, stored), start, np.zeros((0, 4)))
            reference = Reference(again.motion, 0)
            now_ns = int(again.motion.duration * 0.5e9)
            decider.follow(stage, reference, np.array([0.002, 0.0, 0.0]), now_ns)
            decider.rejoin(stage, reference, reference.state(now_ns), now_ns)
            reference.brake(now_ns, limits)
            kind = ChunkKind.DECISION
            made.append(chunks.make(reference, now_ns, Decision(), kind, phase=0.5))
            beside = place + _BESIDE
            between = 0.5 * (place + _BESIDE + model.forward(model.home)[0])
            obstacle = np.array([[*between, _OBSTACLE]])
            decider.decide(stage, _match(beside, None), start, obstacle)
        except SynthesisError:
            continue  # a robot whose home has no way down is still usable
    return made


def _match(place: FloatArray, behavior: BehaviorValue | None) -> CacheMatch:
    empty = np.zeros(0)
    return CacheMatch(
        decision=Decision(),
        trigger=Trigger.IMAGE,
        hit=behavior is not None,
        is_decision=True,
        miss_reason=MissReason.NONE,
        reason="",
        similarity=1.0,
        threshold=0.0,
        margin=1.0,
        target_similarity=1.0,
        target_minimum=0.0,
        worst_slice="",
        worst_slice_similarity=1.0,
        guard="",
        entry_id=0,
        entry_version=0,
        subtask="warm_up",
        behavior=behavior,
        target=TargetEstimate(Pose(place), np.zeros((6, 6))),
        target_age=0.0,
        vector=np.zeros(64, dtype=np.float32),
        joints=JointSample((), empty, empty, empty, 0),
    )
