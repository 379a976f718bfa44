"""What a cache has learned is there after a restart."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from kv_action_router.caching.invalidation import Invalidation, Scope
from kv_action_router.caching.store import schema
from kv_action_router.caching.store.record import EntryRecord
from kv_action_router.caching.store.recorder import record_of
from kv_action_router.caching.store.store import CacheStore
from kv_action_router.contracts import UpdateOperation
from kv_action_router.errors import StoreError, StoreInUseError


def everything(manager) -> dict[int, tuple]:
    """Return all entries as rows."""
    return {name: record_of(manager.entries, name).row() for name in manager.entries.tasks.slots}


def test_all_entries_come_back_as_they_were(bench) -> None:
    manager = bench.start()
    ids = [bench.insert(manager, number) for number in range(20)]
    update = bench.build.update
    for _ in range(3):
        manager.apply(update(UpdateOperation.SUCCESS, entry=ids[0], version=1))
    manager.apply(update(UpdateOperation.FAILURE, entry=ids[1], version=1))
    for _ in range(2):
        manager.apply(update(UpdateOperation.FAILURE, entry=ids[2], version=1))
    revised = bench.build.behavior(mark=0.7)
    manager.apply(update(UpdateOperation.REVISE, entry=ids[3], version=1, behavior=revised))
    manager.invalidate(Invalidation(Scope.ENTRY, "test", entry_id=ids[4]))
    bench.build.decide(manager, 5, bench.build.key(bench.vector(5)))
    before = everything(manager)
    assert manager.persistence.save() == 19
    bench.stop(manager)

    again = bench.start()
    assert "19 entries loaded" in bench.told
    assert everything(again) == before
    assert again.entries.tasks.read(again.entries.tasks.slots[ids[2]]).confident is False
    assert again.inspector.entry(ids[3]).behavior.coefficients[-1, 0] == 0.7
    assert all(bench.hits(again, number) for number in range(5, 20))
    assert bench.insert(again, 30) == 21  # an id is never given twice


def test_behaviors_that_were_thrown_away_stay_away(bench) -> None:
    manager = bench.start()
    bench.insert(manager, 1)
    manager.invalidate(Invalidation(Scope.LAYER, "test", layer="behavior"))
    bench.stop(manager)
    again = bench.start()
    assert len(again.entries) == 1
    assert again.entries.occupancy()["r1"].behaviors == 0
    assert not bench.hits(again, 1)


def test_what_was_thrown_away_does_not_come_back(bench) -> None:
    bench.filled(8)
    manager = bench.start()
    manager.invalidate(Invalidation(Scope.ALL, "test"))
    assert manager.persistence.save() == 0
    bench.stop(manager)
    again = bench.start()
    assert len(again.entries) == 0
    assert bench.insert(again, 1) == 9


def test_grants_come_back_and_go(bench) -> None:
    manager = bench.start()
    bench.insert(manager, 1, domain="r2")
    manager.set_isolation("r2", "r1", isolated=False)
    bench.stop(manager)
    again = bench.start()
    assert again.domains.grants == {("r2", "r1")}
    assert bench.hits(again, 1)
    again.set_isolation("r2", "r1", isolated=True)
    bench.stop(again)
    third = bench.start()
    assert third.domains.grants == set()
    assert not bench.hits(third, 1)


def test_execution_values_go_on_where_they_were(bench) -> None:
    first = bench.build.execution(1, 0)
    hot = bench.build.execution(2, 1, confident=np.array([False, True]), provenance="a: hot")
    manager = bench.start(execution=first)
    manager.apply(bench.build.update(UpdateOperation.EXECUTION, execution=hot))
    bench.stop(manager)
    again = bench.start(execution=first)
    value = again.execution_value()
    assert (value.version, value.base_version, value.provenance) == (2, 1, "a: hot")
    assert value.confident.tolist() == [False, True]
    assert np.array_equal(value.slots, hot.slots)
    bench.stop(again)

    slots = first.slots.copy()
    slots[0, 3] = 7.0
    edited = dataclasses.replace(first, slots=slots)
    third = bench.start(execution=edited)
    value = third.execution_value()
    assert (value.version, value.base_version) == (3, 2)  # newer than what anybody has seen
    assert np.array_equal(value.slots, slots)
    assert "the file's, which was changed" in bench.told
    bench.stop(third)
    assert bench.start(execution=edited).execution_value().version == 3


def test_commits_are_synced_and_freed_pages_overwritten(bench) -> None:
    bench.filled(1)
    connection = schema.connect(bench.path)
    names = ("synchronous", "journal_mode", "secure_delete", "locking_mode", "application_id")
    set_to = {name: schema.pragma(connection, name) for name in names}
    connection.close()
    assert set_to == {
        "synchronous": 2,  # FULL: the log is synced at each commit
        "journal_mode": "wal",
        "secure_delete": 1,
        "locking_mode": "exclusive",
        "application_id": schema.APPLICATION_ID,
    }


def test_the_writers_own_connection_is_synced(bench) -> None:
    bench.start()
    connection = bench.open[0].persistence._store._opened.connection
    assert schema.pragma(connection, "synchronous") == 2
    assert schema.pragma(connection, "journal_mode") == "wal"


def test_a_second_manager_is_told_who_has_the_file(bench) -> None:
    manager = bench.start()
    with pytest.raises(StoreInUseError, match=f"in use by pid {os.getpid()}"):
        CacheStore(bench.path)
    bench.insert(manager, 1)
    assert manager.persistence.save() == 1  # the first one is not disturbed
    bench.stop(manager)
    assert len(bench.start().entries) == 1


@pytest.mark.parametrize("whole", [True, False])
def test_a_link_leads_to_the_file_and_to_its_lock(bench, tmp_path: Path, whole: bool) -> None:
    bench.filled(3)
    link = tmp_path / "elsewhere" / "link.sqlite3"
    link.parent.mkdir()
    link.symlink_to(bench.path)
    if not whole:
        bench.path.write_bytes(b"no database")
    store = CacheStore(link)
    assert store.path == bench.path.resolve()
    with pytest.raises(StoreInUseError, match=f"in use by pid {os.getpid()}"):
        CacheStore(bench.path)
    assert sum(len(rows) for rows in store.rows()) == (3 if whole else 0)
    store.close()
    assert link.is_symlink()
    assert schema.connect(bench.path).execute("SELECT count(*) FROM entry").fetchone()[0] == (
        3 if whole else 0
    )


def test_a_link_that_leads_nowhere_keeps_the_cache_in_memory(bench, tmp_path: Path) -> None:
    loop = tmp_path / "loop.sqlite3"
    loop.symlink_to(loop)
    manager = bench.start(loop)
    assert not manager.statistics().store.stored
    assert "loop.sqlite3" in bench.told
    bench.insert(manager, 1)
    assert bench.hits(manager, 1)


def test_what_exceeds_the_capacity_is_kept_aside(bench) -> None:
    manager = bench.start()
    ids = [bench.insert(manager, number) for number in range(8)]
    for decision, number in enumerate((0, 2, 4), start=1):
        bench.build.decide(manager, decision, bench.build.key(bench.vector(number)))
    bench.stop(manager)
    again = bench.start(capacity=3)
    assert set(again.entries.tasks.slots) == {ids[0], ids[2], ids[4]}  # those used last
    assert again.persistence.report().quarantined == 5
    assert "5 bad and kept aside" in bench.told


def test_a_cache_without_a_store_says_so(bench) -> None:
    manager = bench.build.manager()
    with pytest.raises(StoreError, match="nothing is saved: the cache is kept in memory"):
        manager.persistence.save()
    assert manager.persistence.end() == ""
    assert not manager.statistics().store.stored


def test_eight_threads_and_a_restart_lose_nothing(bench) -> None:
    manager = bench.start(capacity=400)
    barrier = threading.Barrier(8)

    def work(thread: int) -> set[int]:
        mine = set()
        barrier.wait(10.0)
        for round_ in range(15):
            number = 20 * thread + round_
            entry = bench.insert(manager, number)
            mine.add(entry)
            assert bench.hits(manager, number)
            if round_ % 3 == 0:
                manager.invalidate(Invalidation(Scope.ENTRY, "test", entry_id=entry))
                mine.discard(entry)
            if round_ % 5 == 0:
                manager.persistence.save()
        return mine

    with ThreadPoolExecutor(8) as pool:
        kept = set().union(*pool.map(work, range(8)))
    before = everything(manager)
    assert set(before) == kept
    bench.stop(manager)
    assert everything(bench.start(capacity=400)) == before


CHILD = """
import importlib.util, sys
from pathlib import Path
spec = importlib.util.spec_from_file_location("builders", sys.argv[1])
builders = importlib.util.module_from_spec(spec)
sys.modules["builders"] = builders
spec.loader.exec_module(builders)
from kv_action_router.caching.store.store import CacheStore
build = builders.Build()
manager = build.manager(capacity=64)
manager.persistence.begin(CacheStore(Path(sys.argv[2])))
vectors = [build.vector(100 + n, 200 + n, 300 + n) for n in range(40)]
if sys.argv[3] == "save":
    for vector in vectors:
        manager.apply(build.update(vector=vector))
    print(manager.persistence.save())
else:
    answers = [manager.query(vector, intent_id="touch") for vector in vectors]
    print(sum(answer.hit and answer.similarity > 0.999999 for answer in answers))
"""


@pytest.mark.timeout(200)
def test_keys_match_after_a_restart_with_another_hash_seed(tmp_path: Path) -> None:
    builders = Path(__file__).parents[1] / "conftest.py"
    for seed, verb in (("1", "save"), ("77", "match")):
        done = subprocess.run(
            [sys.executable, "-c", CHILD, str(builders), str(tmp_path / "c.sqlite3"), verb],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=90,
        )
        assert done.stdout.strip() == "40", done.stderr


def test_a_records_partition_survives(bench) -> None:
    manager = bench.start()
    name = bench.insert(manager, 1, domain="r2", encoder_id="编码", intent_id="拧紧 M3")
    before = record_of(manager.entries, name)
    bench.stop(manager)
    again = bench.start()
    after: EntryRecord = record_of(again.entries, name)
    assert after.row() == before.row()
    assert (after.domain, after.encoder_id, after.intent_id) == ("r2", "编码", "拧紧 M3")
