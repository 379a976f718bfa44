"""What the collision guard costs a decision, and what the test of a motion costs the synthesizer.

    .venv/bin/python benchmarks/guard.py [--rounds 300] [--check]

Motions that the planner makes, tested as the cache manager tests them: from a measured start that
is not quite the motion's own to a target that has moved by a centimeter, against no obstacles, 256
of them out of reach, and 256 around the way that nothing touches. One BLAS thread, hot; the cases
take turns, so that all see the same machine. Times are of the processor (``thread_time_ns``): on a
shared machine the wall clock tells what the others do. Writes ``build/reports/guard.json``; with
``--check``
it exits with 1 and names each figure that falls short.
"""

from __future__ import annotations

import argparse
import json
import time
from array import array
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from kv_action_router.caching.collision_guard import CollisionGuard
from kv_action_router.caching.config import CachingConfig
from kv_action_router.caching.guards import Candidate
from kv_action_router.contracts import (
    BehaviorValue,
    FloatArray,
    JointSample,
    ObstacleSpheres,
    Pose,
    SeenObstacles,
    TargetEstimate,
)
from kv_action_router.reporting.benchmark import conclude
from kv_action_router.reporting.bounds import Bound, at
from kv_action_router.reporting.statistics import quantiles
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.replan import ReplanSource
from kv_action_router.synthesis.source import PlanRequest
from kv_action_router.synthesis.spline import MotionState
from kv_action_router.tasks.definition import load_task

OUT_OF_THE_WAY = 0.10  # [m] that the obstacles around the way keep from it
LIMIT_US = 1000.0
MOTIONS = ("approach", "far approach")

BOUNDS = tuple(
    Bound(f"{motion}, 256 around, p50 [us]", at(motion, "256 around", "p50"), "<=", LIMIT_US)
    for motion in MOTIONS
)


def motions(robot: RobotModel) -> dict[str, BehaviorValue]:
    """Return an approach from home, and one from a quarter of a turn beside it."""
    stage = load_task("touch_target").stages[0]
    source = ReplanSource(robot, SynthesisConfig())
    found = {}
    target = Pose(np.array([0.5, 0.12, 0.01]))
    for name, turn in zip(MOTIONS, (0.0, 0.5 * np.pi), strict=True):
        start = robot.home + turn * np.eye(robot.n)[0]
        motion = source.plan(
            PlanRequest(stage, MotionState.at_rest(start), target, np.zeros((0, 4)))
        )
        found[name] = motion.to_behavior(stage.subtask, robot.joint_names, target)
    return found


def around(robot: RobotModel, behavior: BehaviorValue) -> FloatArray:
    """Return as many small obstacles as a message holds, beside the arm's way (256, 4)."""
    generator = np.random.default_rng(1)
    arm = np.concatenate([robot.link_spheres(q).copy() for q in behavior.coefficients])
    found: list[FloatArray] = []
    while len(found) < ObstacleSpheres.MAXIMUM:
        place = generator.uniform([0.0, -0.6, 0.05], [0.8, 0.6, 0.8])
        away = np.linalg.norm(arm[:, :3] - place, axis=1) - arm[:, 3]
        if away.min() > OUT_OF_THE_WAY:
            found.append(np.array([*place, 0.03]))
    return np.array(found)


def measure(rounds: int) -> dict[str, Any]:
    """Return the figures [us]."""
    robot = RobotModel.load()
    cases = []
    for name, behavior in motions(robot).items():
        beside = around(robot, behavior)
        far = beside + np.array([0.0, 0.0, 5.0, 0.0])
        assert behavior.target is not None
        moved = Pose(behavior.target.position + np.array([0.01, -0.01, 0.0]))
        candidate = Candidate("", 1, 1, "", "", 1.0, 1.0, TargetEstimate(moved, np.eye(6)))
        start = behavior.coefficients[0] + 0.01
        zero = np.zeros(robot.n)
        joints = JointSample(robot.joint_names, start, zero, zero, 0)
        for label, spheres in (("none", far[:0]), ("256 far", far), ("256 around", beside)):
            seen = SeenObstacles(spheres, 0)
            guard = CollisionGuard(robot, CachingConfig(), lambda seen=seen: seen, lambda: 0)
            assert guard.check(candidate, joints, behavior) is None
            cases.append((name, label, guard, candidate, joints, behavior, array("d")))
    for _ in range(rounds):
        for _, _, guard, candidate, joints, behavior, times in cases:
            begin = time.thread_time_ns()
            guard.check(candidate, joints, behavior)
            times.append((time.thread_time_ns() - begin) * 1e-3)
    figures: dict[str, Any] = {name: {} for name in MOTIONS}
    for name, label, _, _, _, behavior, times in cases:
        figures[name]["duration_s"] = float(behavior.knots[-1])
        figures[name][label] = quantiles(times[len(times) // 5 :], least=0.0, p50=0.5, p99=0.99)
    return figures


def main() -> int:
    """Measure, print and write the figures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("build/reports/guard.json"))
    options = parser.parse_args()
    threadpool_limits(limits=1)
    figures = measure(options.rounds)
    table = Table("motion", "obstacles", "guard [us]", title=f"{options.rounds} rounds")
    for motion in MOTIONS:
        for label in ("none", "256 far", "256 around"):
            table.add_row(motion, label, json.dumps(figures[motion][label]))
    console = Console()
    console.print(table)
    return conclude(figures, BOUNDS, options.output, console, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
