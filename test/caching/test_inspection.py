"""Looking into the cache: what is shown, to whom, and what a wrong question is told."""

from __future__ import annotations

import numpy as np
import pytest

from kv_action_router.caching.inspection import LIST_LIMIT
from kv_action_router.caching.invalidation import Invalidation, Scope
from kv_action_router.contracts import EntryUpdate, UpdateOperation
from kv_action_router.errors import DomainError, EntryNotFoundError, InputError


def filled(build, count: int = 5):
    """Return a cache with entries 1 to ``count`` in the robot's own domain."""
    manager = build.manager()
    for seed in range(count):
        manager.apply(insertion(build, seed))
    return manager


def insertion(build, seed: int, **decision) -> EntryUpdate:
    return build.update(vector=build.vector(10 + seed, 30 + seed, 50 + seed), **decision)


def test_an_entry_is_shown_as_it_was_inserted(build) -> None:
    manager = build.manager()
    update = insertion(build, 1)
    manager.apply(update)
    manager.apply(build.update(UpdateOperation.FAILURE, entry=1, version=1))
    found = manager.inspector.entry(1)
    assert found.vector == pytest.approx(update.vector, abs=1e-6)
    assert np.array_equal(found.behavior.coefficients, update.behavior.coefficients)
    info = found.info
    assert (info.entry_id, info.version, info.domain) == (1, 1, "r1")
    assert (info.encoder_id, info.intent_id, info.subtask) == ("e1", "touch", build.subtask)
    assert (info.successes, info.failures, info.failures_in_row) == (0, 1, 1)
    assert info.confident and info.has_behavior


def test_unused_for_counts_decisions(build) -> None:
    manager = filled(build, 2)
    key = build.key(build.vector(10, 30, 50))
    for decision in (1, 2, 3):
        assert build.decide(manager, decision, key).entry_id == 1
    assert manager.inspector.entry(1).info.unused_for == 0
    assert manager.inspector.entry(2).info.unused_for == 3


def test_an_entry_without_its_behavior_says_so(build) -> None:
    manager = filled(build, 1)
    manager.invalidate(Invalidation(Scope.LAYER, "test", layer="behavior"))
    found = manager.inspector.entry(1)
    assert found.behavior is None
    assert not found.info.has_behavior


def test_pages_cover_all_entries_once(build) -> None:
    manager = filled(build)
    seen, after = [], 0
    for left in (3, 1, 0):
        infos, remaining = manager.inspector.listed(after=after, limit=2)
        assert remaining == left
        seen += [info.entry_id for info in infos]
        after = seen[-1]
    assert seen == [1, 2, 3, 4, 5]
    assert manager.inspector.listed(after=2**64 - 1) == ([], 0)


def test_lists_are_narrowed_by_intent_and_subtask(build) -> None:
    manager = filled(build, 2)
    manager.apply(insertion(build, 7, intent_id="press"))
    listed = manager.inspector.listed
    assert [info.entry_id for info in listed(intent_id="press")[0]] == [3]
    assert len(listed(subtask=build.subtask)[0]) == 3
    assert listed(subtask="other_v1") == ([], 0)


@pytest.mark.parametrize("entry_id", [0, 6, 2**63, 2**64 - 1])
def test_an_unknown_entry_gets_near_ids(build, entry_id: int) -> None:
    with pytest.raises(EntryNotFoundError, match=r"got \d+ \(near ids: \d+, \d+, \d+\)"):
        filled(build).inspector.entry(entry_id)


def test_near_ids_are_only_those_that_may_be_read(build) -> None:
    manager = filled(build, 3)
    manager.apply(insertion(build, 8, domain="r2"))
    with pytest.raises(EntryNotFoundError, match=r"got 1 \(near ids: 4\)"):
        manager.inspector.entry(1, "r2")
    manager.invalidate(Invalidation(Scope.DOMAIN, "test", domain="r2"))
    with pytest.raises(EntryNotFoundError, match="it may read none"):
        manager.inspector.entry(1, "r2")


@pytest.mark.parametrize("limit", [-1, LIST_LIMIT + 1])
def test_a_limit_out_of_bounds_is_refused(build, limit: int) -> None:
    with pytest.raises(InputError, match=f"limit must be 0 .* to {LIST_LIMIT}, got {limit}"):
        filled(build).inspector.listed(limit=limit)


def test_an_unknown_domain_gets_near_names(build) -> None:
    inspector = filled(build).inspector
    for ask in (lambda: inspector.entry(1, "r11"), lambda: inspector.listed("r11")):
        with pytest.raises(DomainError, match="near names: r1"):
            ask()


def test_domains_tell_what_they_hold_and_who_reads_them(build) -> None:
    manager = filled(build, 2)
    manager.apply(insertion(build, 8, domain="r2"))
    manager.set_isolation("r1", "7bot", isolated=False)
    manager.set_isolation("r1", "r2", isolated=False)
    bot, own, other = manager.inspector.domains()
    assert (bot.name, bot.entries, bot.readers) == ("7bot", 0, ())
    assert (own.name, own.is_own, own.entries, own.readers) == ("r1", True, 2, ("7bot", "r2"))
    assert (other.name, other.is_own, other.entries) == ("r2", False, 1)


def test_nothing_is_shared_while_another_robot_claims_the_identity(build) -> None:
    manager = filled(build, 1)
    manager.set_isolation("r1", "r2", isolated=False)
    manager.domains.sharing_refused = "robot_id 'r1' is claimed by /two/cache_manager too"
    with pytest.raises(DomainError, match="must not be shared while robot_id 'r1' is claimed"):
        manager.set_isolation("r1", "r3", isolated=False)
    assert "r3" not in manager.domains.known
    assert manager.inspector.entry(1, "r2").info.domain == "r1"  # what is in force stays
    assert manager.set_isolation("r1", "r2", isolated=True) == []
