"""What the end of a damaged log held is missing: it is noticed, counted and told."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from kv_action_router.caching.store.lock import FileLock, Note
from kv_action_router.caching.store.store import CacheStore
from kv_action_router.contracts import UpdateOperation


def left_by_a_kill(bench, to: Path) -> None:
    """Leave a file as a killed process does: three commits of two entries each, all in the log."""
    manager = bench.start()
    for number in range(6):
        bench.insert(manager, number)
        if number % 2:
            manager.persistence.save()
    for suffix in ("", "-wal", ".lock"):
        shutil.copy(f"{bench.path}{suffix}", f"{to}{suffix}")
    bench.stop(manager)


@pytest.mark.parametrize("damage", ["cut", "flip", "remove"])
def test_commits_at_the_end_of_a_damaged_log_are_missed(bench, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "killed.sqlite3"
    left_by_a_kill(bench, path)
    log = Path(f"{path}-wal")
    content = bytearray(log.read_bytes())
    if damage == "remove":
        log.unlink()
    elif damage == "cut":
        log.write_bytes(content[: len(content) - 100])
    else:
        content[-100] ^= 1
        log.write_bytes(content)
    manager = bench.start(path)
    report = manager.persistence.report()
    assert report.loaded + report.lost == 6
    assert report.lost >= 2
    assert "commits are missing" in bench.told
    assert f"{report.lost} lost" in bench.told
    bench.insert(manager, 50)
    bench.stop(manager)
    again = bench.start(path)
    assert again.persistence.report().lost == 0
    assert "missing" not in bench.told


def test_a_missing_change_of_an_entry_is_told_though_no_entry_is(bench, tmp_path: Path) -> None:
    manager = bench.start()
    entry = bench.insert(manager, 1)
    manager.persistence.save()
    older = tmp_path / "older.sqlite3"
    for suffix in ("", "-wal"):
        shutil.copy(f"{bench.path}{suffix}", f"{older}{suffix}")
    manager.apply(bench.build.update(UpdateOperation.SUCCESS, entry=entry, version=1))
    bench.stop(manager)
    shutil.copy(f"{bench.path}.lock", f"{older}.lock")
    store = CacheStore(older)
    assert store.wants_attention
    assert any("1 commits are missing" in note for note in store.notes)
    assert store.report().lost == 0
    store.close()


def test_a_file_that_was_emptied_has_lost_all(bench) -> None:
    bench.filled(5)
    os.truncate(bench.path, 0)
    assert bench.start().persistence.report().lost == 5


def test_nothing_is_missed_of_a_file_that_was_removed_or_replaced(bench, tmp_path: Path) -> None:
    bench.filled(5)
    bench.path.unlink()
    manager = bench.start()
    assert manager.persistence.report().lost == 0
    assert "missing" not in bench.told
    for number in range(3):
        bench.insert(manager, number)
        manager.persistence.save()
    bench.stop(manager)
    other = tmp_path / "other.sqlite3"
    manager = bench.start(other)
    bench.insert(manager, 1)
    bench.stop(manager)
    shutil.copy(other, bench.path)  # another cache, with fewer commits
    assert bench.start().persistence.report().lost == 0
    assert "missing" not in bench.told


def test_a_lock_file_of_an_earlier_release_says_nothing(bench) -> None:
    bench.filled(2)
    Path(f"{bench.path}.lock").write_text("4711\n")
    assert bench.start().persistence.report().lost == 0
    assert "2 entries loaded" in bench.told


def test_the_note_is_what_was_written_last(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "c.sqlite3")
    assert lock.found is None
    for note in (Note(7, 10**6, 123456), Note(7, 1, 2)):
        lock.note(note)
    lock.release()
    lock.note(Note(7, 99, 99))  # no longer its holder: nothing is written
    again = FileLock(tmp_path / "c.sqlite3")
    assert again.found == Note(7, 1, 2)
    again.release()
