"""Whatever stands at the path: the cache starts, keeps what is good, and says what is not."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import random
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from kv_action_router.caching.store import schema
from kv_action_router.caching.store.record import EntryRecord
from kv_action_router.caching.store.replacing import KEPT_ASIDE
from kv_action_router.caching.store.salvage import salvage
from kv_action_router.caching.store.state import PROGRESS, state_row
from kv_action_router.errors import StoreError

PAGE = schema.PAGE_SIZE
A_PAGE = PAGE // 900  # entries of these tests in one page, at most


def report(manager):
    return manager.persistence.report()


def damaged_files(bench) -> list[Path]:
    return sorted(bench.path.parent.glob("*.damaged-*"))


def kept_aside(bench) -> list[tuple]:
    connection = sqlite3.connect(bench.path)
    rows = connection.execute("SELECT entry_id, reason FROM quarantine").fetchall()
    connection.close()
    return rows


# --- files that are ours ------------------------------------------------------------------------


def test_an_empty_file_is_a_new_one(bench) -> None:
    bench.path.parent.mkdir()
    bench.path.touch()
    manager = bench.start()
    assert report(manager).stored
    assert (report(manager).loaded, report(manager).lost) == (0, 0)
    bench.insert(manager, 1)
    bench.stop(manager)
    assert len(bench.start().entries) == 1


@pytest.mark.parametrize("size", [1, 50, 99, 100, 512, PAGE - 1, PAGE, 3 * PAGE, 3 * PAGE + 17])
def test_a_truncated_file_keeps_what_is_left(bench, size: int) -> None:
    bench.filled(40)
    whole = bench.path.read_bytes()
    bench.path.write_bytes(whole[:size])
    good = set(salvage(bench.path).rows)
    manager = bench.start()
    assert set(manager.entries.tasks.slots) == good
    assert report(manager).stored
    assert "it was damaged" in bench.told
    assert [path.read_bytes() for path in damaged_files(bench)] == [whole[:size]]
    if size >= PAGE:
        found = report(manager)
        assert found.loaded + found.lost + found.quarantined in (40, len(good))
    bench.insert(manager, 40)
    bench.stop(manager)
    assert bench.hits(bench.start(), 40)


def test_a_truncated_file_keeps_all_whole_pages(bench) -> None:
    bench.filled(60)
    whole = bench.path.read_bytes()
    bench.path.write_bytes(whole[: len(whole) - PAGE])
    manager = bench.start()
    assert 60 - A_PAGE <= len(manager.entries) < 60
    assert report(manager).lost == 60 - len(manager.entries)
    assert f"{report(manager).lost} lost" in bench.told
    assert all(bench.hits(manager, entry - 1) for entry in manager.entries.tasks.slots)


@pytest.mark.parametrize("seed", range(12))
def test_flipped_bits_cost_what_they_hit_and_nothing_else(bench, seed: int) -> None:
    """One bit in one page: at most the entries of that page are gone, none is wrong."""
    bench.filled(60)
    draw = random.Random(seed)
    content = bytearray(bench.path.read_bytes())
    bit = draw.randrange(8 * len(content))
    content[bit // 8] ^= 1 << bit % 8
    bench.path.write_bytes(bytes(content))
    manager = bench.start()
    found = report(manager)
    assert len(manager.entries) >= 60 - A_PAGE
    assert all(bench.hits(manager, entry - 1) for entry in manager.entries.tasks.slots)
    assert found.loaded + found.quarantined + found.lost >= 60
    assert found.stored


def test_the_first_page_is_not_needed(bench) -> None:
    bench.filled(24)
    content = bench.path.read_bytes()
    bench.path.write_bytes(bytes(PAGE) + content[PAGE:])
    manager = bench.start()
    assert report(manager).loaded == 24
    assert "24 entries loaded" in bench.told


def test_a_broken_row_is_kept_aside(bench) -> None:
    ids = bench.filled(6)
    bench.change(("UPDATE entry SET successes = successes + 1 WHERE entry_id = ?", (ids[2],)))
    manager = bench.start()
    assert set(manager.entries.tasks.slots) == set(ids) - {ids[2]}
    assert report(manager).quarantined == 1
    assert "1 bad and kept aside" in bench.told
    bench.stop(manager)
    assert kept_aside(bench) == [(ids[2], "the checksum is wrong")]
    assert report(bench.start()).quarantined == 0  # told once


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda value: {"coefficients": value.coefficients[:0]}, "points"),
        (lambda value: {"dimensions": (value.dimensions[0],) * 3}, "without repetition"),
        (lambda value: {"coefficients": value.coefficients * float("nan")}, "finite"),
    ],
)
def test_entries_that_no_insertion_takes_are_kept_aside(bench, spoil, reason) -> None:
    """They have a right checksum: a bug or another version wrote them."""
    ids = bench.filled(3)
    value = bench.build.behavior()
    where = {"domain": "r1", "encoder_id": "e1", "intent_id": "touch", "subtask": value.subtask}
    bad = EntryRecord(
        ids[-1] + 1,
        1,
        **where,
        key=bench.build.vector(),
        behavior=dataclasses.replace(value, **spoil(value)),
    )
    columns = ",".join("?" * 10)
    progress = state_row(
        PROGRESS,
        {"schema": schema.VERSION, "last_id": ids[-1] + 1, "decisions": 0, "entries": 4},
    )
    bench.change(
        (f"INSERT INTO entry ({schema.ENTRY_COLUMNS}) VALUES ({columns})", bad.row()),
        ("UPDATE state SET content = ?2, checksum = ?3 WHERE name = ?1", progress),
    )
    manager = bench.start()
    assert set(manager.entries.tasks.slots) == set(ids)
    assert report(manager).quarantined == 1
    assert not manager.query(bench.build.vector(), intent_id="touch").hit
    bench.stop(manager)
    ((entry_id, told),) = kept_aside(bench)
    assert entry_id == ids[-1] + 1
    assert reason in told


def test_missing_rows_are_noticed(bench) -> None:
    ids = bench.filled(6)
    bench.change(("DELETE FROM entry WHERE entry_id = ?", (ids[0],)))
    manager = bench.start()
    assert (report(manager).loaded, report(manager).lost) == (5, 1)
    assert "it should hold 6 entries, and holds 5" in bench.told


def test_a_log_without_its_checkpoint_is_read(bench) -> None:
    """As after kill -9: the entries are in the log only."""
    manager = bench.start()
    ids = [bench.insert(manager, number) for number in range(9)]
    manager.persistence.save()
    copy = bench.path.parent / "copy.sqlite3"
    for suffix in ("", "-wal"):
        shutil.copy(str(bench.path) + suffix, str(copy) + suffix)
    assert set(bench.start(copy).entries.tasks.slots) == set(ids)


def test_a_damaged_file_beside_its_log(bench) -> None:
    """What the log holds is used even where SQLite cannot apply it any more."""
    manager = bench.start()
    ids = [bench.insert(manager, number) for number in range(9)]
    manager.persistence.save()
    copy = bench.path.parent / "copy.sqlite3"
    shutil.copy(str(bench.path) + "-wal", str(copy) + "-wal")
    copy.write_bytes(b"no database at all" * 100)
    assert set(salvage(copy).rows) == set(ids)
    again = bench.start(copy)
    assert set(again.entries.tasks.slots) == set(ids)
    assert "it was damaged" in bench.told


@pytest.mark.parametrize("removed", [False, True])
def test_an_empty_file_beside_its_log(bench, removed: bool) -> None:
    """A file that was cut down comes back from its log; one that was removed does not."""
    manager = bench.start()
    ids = {bench.insert(manager, number) for number in range(9)}
    manager.persistence.save()
    copy = bench.path.parent / "copy.sqlite3"
    shutil.copy(str(bench.path) + "-wal", str(copy) + "-wal")
    if not removed:
        copy.touch()
    again = bench.start(copy)
    assert set(again.entries.tasks.slots) == (set() if removed else ids)
    bench.insert(again, 50)
    bench.stop(again)
    assert len(bench.start(copy).entries) == len(ids) * (not removed) + 1


def test_a_broken_schema_is_damage(bench) -> None:
    """Wherever SQLite finds no table of ours any more, the rows are still there."""
    ids = bench.filled(20)
    content = bench.path.read_bytes()
    bench.path.write_bytes(content.replace(b"CREATE TABLE state", b"CREATE TABLE stat\xd5"))
    manager = bench.start()
    assert report(manager).stored
    assert set(manager.entries.tasks.slots) == set(ids)


def test_an_interrupted_replacement_is_finished(bench) -> None:
    bench.filled(5)
    ready = bench.path.with_name(bench.path.name + ".ready")
    shutil.copy(bench.path, ready)
    bench.path.write_bytes(b"damaged")
    assert report(bench.start()).loaded == 5
    assert not ready.exists()
    assert [path.read_bytes() for path in damaged_files(bench)] == [b"damaged"]


def test_only_the_newest_damaged_files_are_kept(bench) -> None:
    bench.path.parent.mkdir()
    for number in range(KEPT_ASIDE + 2):
        bench.path.write_bytes(f"damaged {number}".encode() * 100)
        bench.stop(bench.start())
    kept = [path.read_bytes()[:9] for path in damaged_files(bench)]
    assert kept == [f"damaged {number}".encode() for number in range(2, KEPT_ASIDE + 2)]


# --- other versions, other programs -------------------------------------------------------------


def test_an_older_schema_is_migrated(bench) -> None:
    ids = bench.filled(5)
    bench.change(("DROP TABLE quarantine",), ("PRAGMA user_version = 1",))
    manager = bench.start()
    assert set(manager.entries.tasks.slots) == set(ids)
    assert f"migrated from version 1 to {schema.VERSION}" in bench.told
    assert not damaged_files(bench)
    bench.insert(manager, 9)
    bench.stop(manager)
    assert kept_aside(bench) == []  # the table is there
    assert len(bench.start().entries) == 6


def newer(bench) -> bytes:
    """Make the file one of a later version, which says so twice, as every version does."""
    progress = state_row(PROGRESS, {"schema": 99, "last_id": 5, "decisions": 0, "entries": 5})
    bench.change(
        ("ALTER TABLE entry ADD COLUMN more TEXT",),
        ("UPDATE state SET content = ?2, checksum = ?3 WHERE name = ?1", progress),
        ("PRAGMA user_version = 99",),
    )
    return bench.path.read_bytes()


def test_a_newer_schema_is_left_alone(bench) -> None:
    bench.filled(5)
    before = newer(bench)
    manager = bench.start()
    assert not report(manager).stored
    assert "newer version (schema 99" in bench.told
    bench.insert(manager, 1)
    with pytest.raises(StoreError, match="newer version"):
        manager.persistence.save()
    bench.stop(manager)
    assert bench.path.read_bytes() == before
    assert not damaged_files(bench)


def test_another_programs_database_is_left_alone(bench) -> None:
    bench.path.parent.mkdir()
    connection = sqlite3.connect(bench.path)
    connection.execute("CREATE TABLE photo (name TEXT)")
    connection.execute("INSERT INTO photo VALUES ('cat')")
    connection.commit()
    connection.close()
    manager = bench.start()
    assert not report(manager).stored
    assert "another program's database" in bench.told
    bench.insert(manager, 1)
    bench.stop(manager)
    connection = sqlite3.connect(bench.path)
    assert connection.execute("SELECT name FROM photo").fetchall() == [("cat",)]
    connection.close()
    assert not damaged_files(bench)


@pytest.mark.parametrize("content", [b"x", b"\0" * 5000, b"<html>" * 3000, os.urandom(20_000)])
def test_what_is_no_database_is_kept_aside(bench, content: bytes) -> None:
    bench.path.parent.mkdir()
    bench.path.write_bytes(content)
    manager = bench.start()
    assert report(manager).stored
    assert [path.read_bytes() for path in damaged_files(bench)] == [content]
    bench.insert(manager, 1)
    assert manager.persistence.save() == 1


def test_a_folder_at_the_path(bench) -> None:
    bench.path.mkdir(parents=True)
    manager = bench.start()
    assert not report(manager).stored
    assert "cannot be written" in bench.told


# --- where nothing can be written -----------------------------------------------------------------


@pytest.fixture
def mounted(bench) -> Iterator:
    """``mount(options)``: a file system of its own in the place of the file's folder."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    libc = ctypes.CDLL(None, use_errno=True)
    folder = str(bench.path.parent).encode()
    mounts = 0

    def mount(options: str, flags: int = 0) -> None:
        nonlocal mounts
        bench.path.parent.mkdir(exist_ok=True)
        if libc.mount(b"tmpfs", folder, b"tmpfs", flags, options.encode()) != 0:
            pytest.skip(f"no file system can be mounted: {os.strerror(ctypes.get_errno())}")
        mounts += not flags

    yield mount
    for manager in list(bench.open):
        bench.open.remove(manager)
        manager.persistence.end()
    for _ in range(mounts):
        libc.umount2(folder, 2)


REMOUNT, READ_ONLY = 32, 1


def test_a_folder_that_can_only_be_read(bench, mounted) -> None:
    mounted("size=4m")
    bench.filled(6)
    before = bench.path.read_bytes()
    mounted("size=4m", REMOUNT | READ_ONLY)
    manager = bench.start()
    assert report(manager).loaded == 6
    assert not report(manager).stored
    assert "in memory only: 6 entries loaded" in bench.told
    assert "cannot be written" in bench.told
    assert all(bench.hits(manager, number) for number in range(6))
    bench.insert(manager, 9)
    with pytest.raises(StoreError, match="nothing is saved"):
        manager.persistence.save()
    assert bench.path.read_bytes() == before


def test_a_full_disk_refuses_and_is_tried_again(bench, mounted) -> None:
    mounted("size=1m,nr_inodes=100")
    manager = bench.start()
    bench.insert(manager, 0)
    assert manager.persistence.save() == 1
    filler = bench.path.parent / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096) == 4096:
            pass
    for number in range(1, 40):
        bench.insert(manager, number)
    with pytest.raises(StoreError, match=r"changes are not saved: .*(full|disk)"):
        manager.persistence.save()
    found = report(manager)
    assert not found.stored
    assert found.unsaved >= 39
    assert found.saves_failed >= 1
    assert bench.hits(manager, 20)  # the cache itself goes on
    filler.unlink()
    assert manager.persistence.save() == 40
    assert report(manager).unsaved == 0
    bench.stop(manager)
    assert report(bench.start()).loaded == 40


def test_a_disk_that_is_full_from_the_beginning(bench, mounted) -> None:
    mounted("size=8k")
    manager = bench.start()
    assert not report(manager).stored
    assert "cannot be written" in bench.told
    bench.insert(manager, 1)
    assert bench.hits(manager, 1)
