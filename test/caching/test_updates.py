"""What execution teaches: insert, merge, revise, count, and what is refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from kv_action_router.contracts import MissReason, UpdateOperation
from kv_action_router.errors import (
    DomainError,
    EntryInvalidError,
    EntryNotFoundError,
    KeyInvalidError,
    StaleVersionError,
)

SUCCESS, FAILURE = UpdateOperation.SUCCESS, UpdateOperation.FAILURE


def fingerprint(manager) -> tuple:
    """Return everything that a refused update must not change."""
    tasks = manager.entries.tasks
    slots = sorted(tasks.slots.items())
    return (
        [tasks.read(slot) for _, slot in slots],
        [tasks.key(slot).tobytes() for _, slot in slots],
        manager.domains.known,
        manager.execution_value(),
    )


class TestInsert:
    def test_gets_ids_from_one_and_version_one(self, build) -> None:
        manager = build.manager()
        first = manager.apply(build.update())
        second = manager.apply(build.update(vector=build.vector(target=50)))
        assert (first.entry_id, first.version) == (1, 1)
        assert (second.entry_id, second.version) == (2, 1)

    def test_a_near_duplicate_replaces_the_value(self, build) -> None:
        manager = build.manager()
        manager.apply(build.update())
        near = build.turned(build.vector(), "scene", 0.99)  # 0.9975 in all
        merged = manager.apply(build.update(vector=near, behavior=build.behavior(mark=0.3)))
        assert (merged.entry_id, merged.version) == (1, 2)
        assert len(manager.entries) == 1
        answer = manager.query(near, intent_id="touch")
        assert answer.similarity == pytest.approx(1.0, abs=1e-5)
        assert answer.behavior.coefficients[1, 0] == 0.3
        assert manager.counted.of_task("r1").merges == 1

    def test_what_is_only_similar_is_added(self, build) -> None:
        manager = build.manager()
        manager.apply(build.update())
        manager.apply(build.update(vector=build.turned(build.vector(), "scene", 0.97)))
        assert len(manager.entries) == 2

    @pytest.mark.parametrize(
        "other",
        [
            {"domain": "r2"},
            {"encoder_id": "e2"},
            {"intent_id": "wipe"},
            {"behavior": "touch_approach_v2"},
            {"vector": 9},
        ],
        ids=["domain", "encoder", "intent", "subtask", "robot"],
    )
    def test_nothing_is_merged_across_partitions(self, build, other: dict) -> None:
        manager = build.manager()
        manager.apply(build.update())
        if "behavior" in other:
            other = {"behavior": build.behavior(subtask=other["behavior"])}
        if "vector" in other:
            other = {"vector": build.vector(robot=other["vector"])}
        manager.apply(build.update(**other))
        assert len(manager.entries) == 2

    def test_a_merge_gives_the_confidence_back(self, build) -> None:
        manager = build.manager()
        manager.apply(build.update())
        for _ in range(2):
            manager.apply(build.update(FAILURE, entry=1, version=1))
        assert not manager.query(build.vector(), intent_id="touch").hit
        manager.apply(build.update())
        assert manager.query(build.vector(), intent_id="touch").hit

    def test_the_capacity_holds(self, build) -> None:
        manager = build.manager(capacity=3)
        for seed in range(30):
            manager.apply(build.update(vector=build.vector(100 + seed, 200 + seed, 300 + seed)))
            assert len(manager.entries) <= 3
        assert manager.counted.of_task("r1").evictions == 27
        assert manager.entries.tasks.pool.used == manager.entries.behaviors.pool.used == 3

    @pytest.mark.parametrize(
        ("changes", "error"),
        [
            ({"vector": np.zeros(64)}, KeyInvalidError),
            ({"vector": np.full(64, np.inf)}, KeyInvalidError),
            ({"vector": np.ones(63)}, KeyInvalidError),
            ({"entry": 4}, EntryInvalidError),
            ({"intent_id": ""}, EntryInvalidError),
            ({"intent_id": "x" * 1000}, EntryInvalidError),
            ({"domain": "a b"}, DomainError),
        ],
    )
    def test_refuses_bad_ones_and_changes_nothing(self, build, changes, error) -> None:
        manager = build.manager()
        manager.apply(build.update())
        before = fingerprint(manager)
        with pytest.raises(error):
            manager.apply(build.update(**changes))
        assert fingerprint(manager) == before
        assert manager.statistics().updates_refused == 1

    def test_refuses_values_without_points_and_the_same_joint_twice(self, build) -> None:
        manager = build.manager()
        empty = dataclasses.replace(build.behavior(), coefficients=np.zeros((0, 3)))
        twice = dataclasses.replace(build.behavior(), dimensions=("a/position",) * 3)
        for value in (empty, twice):
            with pytest.raises(EntryInvalidError):
                manager.apply(build.update(behavior=value))
        assert len(manager.entries) == 0


class TestCompareAndSet:
    def test_revise_raises_the_version(self, build) -> None:
        manager = build.manager()
        manager.apply(build.update())
        update = build.update(
            UpdateOperation.REVISE, entry=1, version=1, behavior=build.behavior(mark=0.2)
        )
        assert manager.apply(update).version == 2
        with pytest.raises(StaleVersionError, match="must be 2, the one of entry 1, got 1"):
            manager.apply(update)
        answer = manager.query(build.vector(), intent_id="touch")
        assert answer.behavior.coefficients[1, 0] == 0.2

    def test_revise_keeps_to_the_subtask(self, build) -> None:
        manager = build.manager()
        manager.apply(build.update())
        with pytest.raises(EntryInvalidError, match="touch_approach_v1"):
            manager.apply(
                build.update(
                    UpdateOperation.REVISE,
                    entry=1,
                    version=1,
                    behavior=build.behavior(subtask="touch_approach_v2"),
                )
            )

    @pytest.mark.parametrize("entry", [0, 3, 2**63, 2**64 - 1])
    @pytest.mark.parametrize("operation", [SUCCESS, FAILURE, UpdateOperation.REVISE])
    def test_unknown_entry_lists_near_ids(self, build, operation, entry: int) -> None:
        manager = build.manager()
        manager.apply(build.update())
        with pytest.raises(EntryNotFoundError, match="near ids: 1"):
            manager.apply(build.update(operation, entry=entry, version=1))
        with pytest.raises(EntryNotFoundError, match="it may read none"):
            manager.apply(build.update(operation, entry=entry, version=1, domain="r2"))

    def test_a_success_of_an_old_version_says_nothing_of_the_new_one(self, build) -> None:
        manager = build.manager()
        manager.apply(build.update())
        manager.apply(build.update())
        with pytest.raises(StaleVersionError):
            manager.apply(build.update(SUCCESS, entry=1, version=1))
        assert manager.apply(build.update(SUCCESS, entry=1, version=2)).version == 2


class TestFailures:
    def test_two_in_a_row_take_the_confidence(self, build) -> None:
        manager = build.manager()
        manager.apply(build.update())
        for operation, hit in ((FAILURE, True), (SUCCESS, True), (FAILURE, True), (FAILURE, False)):
            manager.apply(build.update(operation, entry=1, version=1))
            assert manager.query(build.vector(), intent_id="touch").hit == hit
        answer = manager.query(build.vector(), intent_id="touch")
        assert answer.miss_reason == MissReason.CONFIDENCE
        report = manager.statistics().layers[0]
        assert report.entries_not_confident == 1
        assert report.counters.invalidations_failure == 1

    def test_false_hits_are_counted(self, build) -> None:
        manager = build.manager()
        manager.apply(build.update())
        manager.apply(build.update(FAILURE, entry=1, version=1, false_hit=True))
        manager.apply(build.update(FAILURE, entry=1, version=1))
        assert manager.counted.of_task("r1").false_hits == 1

    def test_a_reader_cannot_take_the_owners_confidence(self, build) -> None:
        manager = build.manager()
        manager.apply(build.update(domain="r2"))
        manager.set_isolation("r2", "r1", isolated=False)
        for _ in range(2):
            manager.apply(build.update(FAILURE, entry=1, version=1))
        match = build.decide(manager)
        assert (match.hit, match.guard) == (False, "reader_trust")
        assert manager.query(build.vector(), domain="r2", intent_id="touch").hit

    def test_a_shared_entry_is_for_reading(self, build) -> None:
        manager = build.manager()
        manager.apply(build.update(domain="r2"))
        revise = build.update(UpdateOperation.REVISE, entry=1, version=1)
        with pytest.raises(EntryNotFoundError):
            manager.apply(revise)
        with pytest.raises(EntryNotFoundError):
            manager.apply(build.update(SUCCESS, entry=1, version=1))
        manager.set_isolation("r2", "r1", isolated=False)
        with pytest.raises(DomainError, match="reading only"):
            manager.apply(revise)


class TestExecution:
    def test_compare_and_set(self, build) -> None:
        manager = build.manager(execution=build.execution(1, 0))
        update = build.update(UpdateOperation.EXECUTION, execution=build.execution(2, 1))
        assert manager.apply(update).execution_changed
        with pytest.raises(StaleVersionError):
            manager.apply(update)
        assert manager.execution_value().version == 2
        with pytest.raises(EntryInvalidError, match="none"):
            manager.apply(build.update(UpdateOperation.EXECUTION))

    def test_hits_are_ticks_with_a_confident_value(self, build) -> None:
        manager = build.manager(execution=build.execution(1, 0))
        manager.on_execution(500, 450)
        manager.on_execution(1000, 900)
        report = manager.statistics().layers[-1]
        assert (report.layer, report.entries) == ("execution", 2)
        assert (report.counters.decisions, report.counters.hits) == (1000, 900)


def test_behavior_hits_are_successes_of_decided_entries(build) -> None:
    manager = build.manager()
    manager.apply(build.update())
    build.decide(manager)
    manager.apply(build.update(SUCCESS, entry=1, version=1))
    counters = manager.counted.of_behavior("r1")
    assert (counters.decisions, counters.hits) == (1, 1)


def test_an_unknown_operation_is_refused(build) -> None:
    with pytest.raises(EntryInvalidError, match="operation must be one of 1"):
        build.manager().apply(dataclasses.replace(build.update(), operation=99))
