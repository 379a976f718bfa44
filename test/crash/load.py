"""A cache under load: a sequence of changes that a seed determines, and what it leads to."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kv_action_router.caching.config import CachingConfig
from kv_action_router.caching.invalidation import Invalidation, Scope
from kv_action_router.caching.manager import CacheManager
from kv_action_router.caching.store.record import Row
from kv_action_router.caching.store.recorder import record_of
from kv_action_router.caching.store.store import CacheStore
from kv_action_router.contracts import BehaviorValue, Decision, EntryUpdate, Pose, UpdateOperation

JOINTS = ("shoulder", "elbow", "wrist")
CAPACITY = 400
SUBTASK = "touch_approach_v1"


@dataclass(frozen=True)
class Arm:
    """Three joints."""

    joint_names: tuple[str, ...] = JOINTS
    lower: Any = field(default_factory=lambda: np.full(3, -3.0))
    upper: Any = field(default_factory=lambda: np.full(3, 3.0))
    continuous: Any = field(default_factory=lambda: np.zeros(3, dtype=bool))
    spindles: Any = field(default_factory=lambda: np.zeros(3, dtype=bool))


def make_manager() -> CacheManager:
    """Return an empty cache."""
    return CacheManager(CachingConfig(robot_id="r1", capacity=CAPACITY), Arm())


def start(path: Path) -> tuple[CacheManager, str]:
    """Return a cache that is kept in a file, and what it tells about it."""
    manager = make_manager()
    return manager, manager.persistence.begin(CacheStore(path))


def key_of(number: int) -> np.ndarray:
    """Return a key that is like no other number's (64,)."""
    key = np.random.default_rng(number).normal(size=64).astype(np.float32)
    key[56:] = 1.0
    return key


def behavior_of(number: int) -> BehaviorValue:
    """Return the motion of a number."""
    points, degree = 12, 5
    inner = np.linspace(0.0, 2.0, points - degree + 1)
    return BehaviorValue(
        subtask=SUBTASK,
        dimensions=tuple(f"{joint}/position" for joint in JOINTS),
        degree=degree,
        knots=np.concatenate([np.zeros(degree), inner, np.full(degree, 2.0)]),
        coefficients=np.random.default_rng(number).uniform(-1.0, 1.0, (points, 3)),
        phase=0.0,
        decay=np.ones(3),
        target=Pose(),
    )


def update(operation: UpdateOperation, **fields: Any) -> EntryUpdate:
    """Return an update of robot r1."""
    empty = {
        "entry_id": 0,
        "entry_version": 0,
        "vector": np.zeros(64, dtype=np.float32),
        "behavior": None,
        "execution": None,
        "error": 0.0,
        "false_hit": False,
        "reason": "test",
    }
    decision = Decision(domain="r1", robot_id="r1", encoder_id="e1", intent_id="touch")
    return EntryUpdate(decision=decision, operation=operation, **{**empty, **fields})


def insert(manager: CacheManager, number: int) -> int:
    """Insert the entry of a number; return its id."""
    change = update(UpdateOperation.INSERT, vector=key_of(number), behavior=behavior_of(number))
    return manager.apply(change).entry_id


def changes(manager: CacheManager, seed: int) -> Iterator[int]:
    """Change the cache without end, as the seed and the present entries say; yield the count."""
    draw, count = random.Random(seed), 0
    while True:
        ids = sorted(manager.entries.tasks.slots)
        choice = draw.random() if len(ids) < CAPACITY // 2 else 0.7
        if not ids or choice < 0.5:
            insert(manager, draw.randrange(2**31))
        else:
            name = draw.choice(ids)
            version = manager.entries.get(name).version
            if choice < 0.6:
                manager.apply(update(UpdateOperation.SUCCESS, entry_id=name, entry_version=version))
            elif choice < 0.7:
                value = behavior_of(draw.randrange(2**31))
                manager.apply(
                    update(
                        UpdateOperation.REVISE,
                        entry_id=name,
                        entry_version=version,
                        behavior=value,
                    )
                )
            else:
                manager.invalidate(Invalidation(Scope.ENTRY, "test", entry_id=name))
        count += 1
        yield count


def rows(manager: CacheManager) -> dict[int, Row]:
    """Return all entries as they would be stored."""
    found = {}
    for name in manager.entries.tasks.slots:
        record = record_of(manager.entries, name)
        assert record is not None
        found[name] = record.row()
    return found


def digest(manager: CacheManager) -> int:
    """Return a number that tells one state of the entries from another."""
    state = sorted((name, row[9]) for name, row in rows(manager).items())
    return zlib.crc32(repr((state, manager.entries.last_id)).encode())
