"""A cache's file with many entries, and what loading it costs a process of its own."""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from kv_action_router.caching.config import CachingConfig
from kv_action_router.caching.manager import CacheManager
from kv_action_router.caching.store.record import EntryRecord
from kv_action_router.caching.store.store import CacheStore
from kv_action_router.caching.store.writer import Changes
from kv_action_router.contracts import BehaviorValue, Pose
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.config import SynthesisConfig

ROBOT_ID = "benchmark"
_DEGREE = 5
_BLOCK = 5_000
_SAVE_S = 120.0


def write_entries(path: Path, count: int, seed: int = 1) -> None:
    """Write a store with entries of the size that the planner makes for six joints."""
    from stored_keys import World  # stands beside the programs

    for old in path.parent.glob(f"{path.name}*"):
        old.unlink()
    keys = World(1, seed).draw(count, seed).keys  # of one robot, as those of a cache's file are
    model, points = RobotModel.load("ur5e"), SynthesisConfig().coefficients
    inner = np.linspace(0.0, 1.0, points - _DEGREE + 1)
    behavior = BehaviorValue(
        subtask="benchmark_v1",
        dimensions=tuple(f"{name}/position" for name in model.joint_names),
        degree=_DEGREE,
        knots=np.concatenate([np.zeros(_DEGREE), inner, np.ones(_DEGREE)]),
        coefficients=np.tile(model.home, (points, 1)),
        phase=0.0,
        decay=np.ones(model.n),
        target=Pose(),
    )
    store = CacheStore(path)
    for _ in store.rows():  # a store is read to its end before it is written
        pass
    store.start(0)
    for first in range(1, count + 1, _BLOCK):
        changes = Changes(last_id=count, decisions=count)
        for entry in range(first, min(first + _BLOCK, count + 1)):
            changes.entries[entry] = EntryRecord(
                entry_id=entry,
                version=1,
                domain=ROBOT_ID,
                encoder_id="analytic_v1",
                intent_id="benchmark",
                subtask="benchmark_v1",
                key=keys[entry - 1],
                behavior=behavior,
            )
        store.give(changes)
        store.save(_SAVE_S)
    store.close()


def load(path: Path, capacity: int) -> dict[str, Any]:
    """Load a store as the manager does; return time [s], entries and memory of them [MB]."""
    config = CachingConfig(robot_id=ROBOT_ID, capacity=capacity)
    model = RobotModel.load("ur5e")
    gc.collect()
    before = psutil.Process().memory_info().rss
    manager = CacheManager(config, model)
    begin = time.monotonic()
    told = manager.persistence.begin(CacheStore(path))
    seconds = time.monotonic() - begin
    held = sum(report.entries for report in manager.statistics().layers if report.layer == "task")
    gc.collect()
    taken = (psutil.Process().memory_info().rss - before) / 1e6
    manager.persistence.end()
    return {"seconds": seconds, "entries": held, "rss_mb": taken, "told": told}


def main() -> int:
    """Load a store; print the figures as one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--capacity", type=int, required=True)
    options = parser.parse_args()
    sys.stdout.write(json.dumps(load(options.file, options.capacity)) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
