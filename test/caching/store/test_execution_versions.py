"""Versions of execution values that can be gone back to are there after a restart."""

from __future__ import annotations

import dataclasses

import pytest

from kv_action_router.caching.invalidation import Invalidation, Scope
from kv_action_router.caching.layers.execution import KEPT_VERSIONS
from kv_action_router.caching.store.store import CacheStore
from kv_action_router.contracts import UpdateOperation
from kv_action_router.errors import EntryNotFoundError


def learned(bench, manager, count: int) -> None:
    """Put so many versions in force on top of the present one, each with its number in a slot."""
    for _ in range(count):
        last = manager.execution_value()
        slots = last.slots.copy()
        slots[0, 3] = last.version + 1
        value = dataclasses.replace(
            last, slots=slots, version=last.version + 1, base_version=last.version
        )
        manager.apply(bench.build.update(UpdateOperation.EXECUTION, execution=value))


def back_to(manager, version: int) -> float:
    """Go back to a version of the execution value; return its number in the slot."""
    layer = Invalidation(Scope.LAYER, "checked", layer="execution", entry_id=version)
    assert manager.invalidate(layer) == 2
    return float(manager.execution_value().slots[0, 3])


def test_versions_to_go_back_to_outlive_a_restart(bench) -> None:
    first = bench.build.execution(1, 0)
    manager = bench.start(execution=first)
    learned(bench, manager, 4)
    bench.stop(manager)
    again = bench.start(execution=first)
    assert back_to(again, 3) == 3.0
    assert again.execution_value().version == 6
    bench.stop(again)
    third = bench.start(execution=first)
    assert back_to(third, 6) == 3.0
    assert back_to(third, 5) == 5.0
    assert back_to(third, 0) == first.slots[0, 3]


def test_as_many_versions_are_stored_as_are_kept(bench) -> None:
    first = bench.build.execution(1, 0)
    manager = bench.start(execution=first)
    learned(bench, manager, KEPT_VERSIONS + 8)
    bench.stop(manager)
    store = CacheStore(bench.path)
    assert sorted(number for _, number in store.state.versions) == [*range(10, KEPT_VERSIONS + 10)]
    store.close()
    again = bench.start(execution=first)
    with pytest.raises(EntryNotFoundError, match="one that is kept"):
        back_to(again, 9)
    assert back_to(again, 10) == 10.0


def test_versions_of_another_file_of_execution_values_are_none(bench) -> None:
    first = bench.build.execution(1, 0)
    manager = bench.start(execution=first)
    learned(bench, manager, 2)
    bench.stop(manager)
    slots = first.slots.copy()
    slots[0, 4] = 0.9
    again = bench.start(execution=dataclasses.replace(first, slots=slots))
    with pytest.raises(EntryNotFoundError, match="one that is kept"):
        back_to(again, 2)
    bench.stop(again)
    store = CacheStore(bench.path)
    assert sorted(number for _, number in store.state.versions) == [4]
    store.close()


def test_a_version_that_is_damaged_costs_itself_only(bench) -> None:
    first = bench.build.execution(1, 0)
    manager = bench.start(execution=first)
    learned(bench, manager, 3)
    bench.stop(manager)
    bench.change(("UPDATE state SET content = '{}' WHERE name = 'execution_version/r1/2'",))
    again = bench.start(execution=first)
    assert "not used: execution_version/r1/2" in bench.told
    with pytest.raises(EntryNotFoundError, match=r"\(1, 3, 4\)"):
        back_to(again, 2)
    assert back_to(again, 3) == 3.0
