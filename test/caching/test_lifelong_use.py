"""A cache over a long time: what is used stays, what is not makes room, duplicates become one."""

from __future__ import annotations

import numpy as np
import pytest

from kv_action_router.contracts import UpdateOperation

USED = 4  # situations that come again and again
ROOM = 6


@pytest.mark.parametrize("policy", ["least_useful", "least_recently_used"])
def test_what_is_used_outlives_a_stream_of_what_comes_once(build, policy: str) -> None:
    manager = build.manager(capacity=ROOM, eviction=policy)
    regular = [build.vector(target=seed) for seed in range(1, USED + 1)]
    ids = [manager.apply(build.update(vector=vector)).entry_id for vector in regular]
    for once in range(25):
        for decision, vector in enumerate(regular, 1 + once * (USED + 1)):
            match = build.decide(manager, decision, build.key(vector))
            assert match.hit
            manager.apply(
                build.update(
                    UpdateOperation.SUCCESS, entry=match.entry_id, version=match.entry_version
                )
            )
        manager.apply(build.update(vector=build.vector(target=100 + once)))
    assert len(manager.entries) == ROOM
    assert all(manager.entries.alive(entry_id) for entry_id in ids)
    assert manager.counted.of_task("r1").evictions == 25 - (ROOM - USED)
    assert [manager.entries.get(entry_id).successes for entry_id in ids] == [25] * USED


def test_many_near_duplicates_are_one_entry(build) -> None:
    manager = build.manager()
    generator = np.random.default_rng(1)
    for _ in range(200):
        near = build.turned(build.vector(), "scene", float(generator.uniform(0.985, 1.0)))
        manager.apply(build.update(vector=near))
    assert len(manager.entries) == 1
    assert manager.counted.of_task("r1").merges == 199
    assert manager.entries.get(1).version == 200
    assert manager.entries.behaviors.pool.used == 1


def test_an_entry_without_confidence_is_the_first_to_go(build) -> None:
    manager = build.manager(capacity=2)
    for seed in (1, 2):
        manager.apply(build.update(vector=build.vector(target=seed)))
    for _ in range(2):
        manager.apply(build.update(UpdateOperation.FAILURE, entry=2, version=1, false_hit=True))
    assert not manager.entries.get(2).confident
    applied = manager.apply(build.update(vector=build.vector(target=3)))
    assert applied.evicted == 2
