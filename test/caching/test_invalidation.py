"""Throwing entries away: every scope, a reason is required, bad requests change nothing."""

from __future__ import annotations

import numpy as np
import pytest

from kv_action_router.caching.invalidation import Cause, Invalidation, Scope
from kv_action_router.caching.layers.execution import KEPT_VERSIONS
from kv_action_router.contracts import SLOT, UpdateOperation
from kv_action_router.errors import DomainError, EntryNotFoundError, InputError


@pytest.fixture
def manager(build):
    """Entries 1 and 2 (touch, wipe) of r1, and 3 of r2."""
    made = build.manager(execution=build.execution(1, 0))
    made.apply(build.update())
    made.apply(build.update(intent_id="wipe"))
    made.apply(build.update(domain="r2"))
    return made


@pytest.mark.parametrize(
    ("request_", "left", "count"),
    [
        (Invalidation(Scope.ENTRY, "test", entry_id=1), {2, 3}, 1),
        (Invalidation(Scope.ENTRY, "test", entry_id=3, domain="r2"), {1, 2}, 1),
        (Invalidation(Scope.TASK, "test", intent_id="wipe"), {1, 3}, 1),
        (Invalidation(Scope.LAYER, "test", layer="task"), {3}, 2),
        (Invalidation(Scope.LAYER, "test", layer="behavior"), {1, 2, 3}, 2),
        (Invalidation(Scope.LAYER, "test", layer="execution"), {1, 2, 3}, 2),
        (Invalidation(Scope.DOMAIN, "test"), {3}, 2),
        (Invalidation(Scope.DOMAIN, "test", domain="r2"), {1, 2}, 1),
        (Invalidation(Scope.ALL, "test"), set(), 3),
    ],
)
def test_scopes(manager, request_: Invalidation, left: set[int], count: int) -> None:
    assert manager.invalidate(request_) == count
    assert set(manager.entries.tasks.slots) == left


@pytest.mark.parametrize(
    ("request_", "error", "message"),
    [
        (Invalidation(Scope.ALL, ""), InputError, "reason must be 1 to"),
        (Invalidation(Scope.ALL, " \n"), InputError, "reason must be 1 to"),
        (Invalidation(Scope.ALL, "x" * 1001), InputError, "reason must be 1 to"),
        (Invalidation(0, "test"), InputError, "scope must be one of 1"),
        (Invalidation(Scope.ENTRY, "t", entry_id=0), EntryNotFoundError, r"\(near ids: 1, 2\)"),
        (Invalidation(Scope.ENTRY, "t", entry_id=2**64 - 1), EntryNotFoundError, "near ids: 1, 2"),
        (Invalidation(Scope.ENTRY, "t", entry_id=3), EntryNotFoundError, "may read, got 3"),
        (Invalidation(Scope.TASK, "test"), InputError, "intent_id"),
        (Invalidation(Scope.TASK, "t", intent_id="wpie"), EntryNotFoundError, "near names: wipe"),
        (Invalidation(Scope.LAYER, "t", layer="Task"), InputError, "task, behavior, execution"),
        (Invalidation(Scope.DOMAIN, "test", domain="r3"), DomainError, "near names: r"),
        (Invalidation(Scope.LAYER, "t", layer="execution", domain="r2"), EntryNotFoundError, "r2"),
    ],
)
def test_bad_requests(manager, request_: Invalidation, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        manager.invalidate(request_)
    assert set(manager.entries.tasks.slots) == {1, 2, 3}
    assert manager.execution_value().version == 1


def test_a_shared_entry_is_not_thrown_away_by_its_reader(manager) -> None:
    manager.set_isolation("r2", "r1", isolated=False)
    with pytest.raises(DomainError, match="got 3 of 'r2', which is shared for reading only"):
        manager.invalidate(Invalidation(Scope.ENTRY, "test", entry_id=3))
    assert set(manager.entries.tasks.slots) == {1, 2, 3}


def test_a_task_entry_without_behavior_is_filled_by_the_next_insertion(manager, build) -> None:
    manager.invalidate(Invalidation(Scope.LAYER, "new tool", layer="behavior"))
    assert not manager.query(build.vector(), intent_id="touch").hit
    assert manager.apply(build.update()).entry_id == 1
    assert manager.query(build.vector(), intent_id="touch").hit


def test_the_execution_value_goes_back_to_the_one_at_activation(manager, build) -> None:
    manager.invalidate(Invalidation(Scope.LAYER, "gearbox changed", layer="execution"))
    value = manager.execution_value()
    assert (value.version, value.base_version) == (2, 1)
    assert value.provenance == "version 1 again: gearbox changed (file)"


def test_the_execution_value_goes_back_to_a_version_that_is_kept(manager, build) -> None:
    derating, limit = SLOT["derating"], SLOT["stage_effort_limit"]
    at_first = manager.execution_value()
    learned = []
    for version in (2, 3):
        slots = at_first.slots.copy()
        slots[:, limit], slots[0, derating] = 1.0 / version, 0.5
        value = build.execution(
            version, version - 1, slots=slots, confident=np.array([False, True]), provenance="stall"
        )
        manager.apply(build.update(UpdateOperation.EXECUTION, execution=value))
        learned.append(value)
    for version, slots in ((2, learned[0].slots), (3, learned[1].slots), (0, at_first.slots)):
        before = manager.execution_value().version
        request = Invalidation(Scope.LAYER, "checked", layer="execution", entry_id=version)
        assert manager.invalidate(request) == 2
        value = manager.execution_value()
        assert (value.version, value.base_version) == (before + 1, before)
        assert value.slots[:, limit].tolist() == slots[:, limit].tolist()
        assert value.slots[:, derating].tolist() == [1.0, 1.0]  # the injector sees what is hot
        assert value.confident.tolist() == [True, True]
        assert value.provenance.startswith(f"version {version or 1} again: checked (")
    assert learned[0].slots[0, derating] == 0.5  # what is kept is not written into


def test_a_version_that_is_not_kept_is_refused_and_the_kept_ones_are_named(manager, build) -> None:
    for version in range(2, KEPT_VERSIONS + 5):
        value = build.execution(version, version - 1)
        manager.apply(build.update(UpdateOperation.EXECUTION, execution=value))
    request = Invalidation(Scope.LAYER, "test", layer="execution", entry_id=3)
    with pytest.raises(EntryNotFoundError, match=r"one that is kept \(5, 6, .*36\), got 3"):
        manager.invalidate(request)
    assert manager.execution_value().version == KEPT_VERSIONS + 4


@pytest.mark.parametrize("cause", Cause)
def test_counted_by_cause_in_both_layers(manager, cause: Cause) -> None:
    manager.invalidate(Invalidation(Scope.DOMAIN, "test", cause=cause))
    for counters in (manager.counted.of_task("r1"), manager.counted.of_behavior("r1")):
        assert getattr(counters, f"invalidations_{cause.name.lower()}") == 2
    assert manager.counted.of_task("r2").invalidations_request == 0


def test_slots_are_given_back(manager, build) -> None:
    for _ in range(50):
        manager.invalidate(Invalidation(Scope.ALL, "test"))
        manager.apply(build.update())
    assert manager.entries.tasks.pool.used == 1
    assert manager.entries.behaviors.pool.used == 1
    assert len(manager._keeper.removed) <= 256
