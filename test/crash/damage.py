"""Damages copies of a file, opens them, and compares what is found with what was left whole."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import load
import mounts

from kv_action_router.caching.store import schema
from kv_action_router.caching.store.record import Row
from kv_action_router.caching.store.state import PROGRESS, state_row
from kv_action_router.errors import StoreError

BOUNDARY = 4096
COMMIT = 8  # entries in one commit of the log that is left
WITH_LOG = ("", "-wal", ".lock")


@dataclass
class Outcome:
    """What became of the copies of one kind of damage.

    Attributes:
        runs: copies.
        whole: entries that the damage had left whole, over all runs.
        loaded: of these, how many were found again.
        quarantined, lost: as the store counted them.
        in_memory: runs after which nothing is kept.
        wrong: what must not be, in words; empty = all is well.
        skipped: why it was not tried.
    """

    runs: int = 0
    whole: int = 0
    loaded: int = 0
    quarantined: int = 0
    lost: int = 0
    in_memory: int = 0
    wrong: list[str] = field(default_factory=list)
    skipped: str = ""


class Original:
    """A file with so many entries, closed, and its rows."""

    def __init__(self, path: Path, entries: int) -> None:
        self.path = path
        manager, _ = load.start(path)
        for number in range(entries):
            load.insert(manager, number)
            if number % COMMIT == COMMIT - 1 or number == entries - 1:
                manager.persistence.save()
        self.log_copy = path.with_name("with_log.sqlite3")  # as a killed process leaves it
        for suffix in WITH_LOG:
            shutil.copy(f"{path}{suffix}", f"{self.log_copy}{suffix}")
        manager.persistence.end()
        self.rows = load.rows(manager)
        self.content = path.read_bytes()

    def whole_in(self, content: bytes) -> set[int]:
        """Return the entries whose row stands in some bytes, from its layout to its checksum."""
        return {name for name, row in self.rows.items() if _cell(row) in content}


def truncated(original: Original, folder: Path, sizes: Iterable[int]) -> Outcome:
    """Cut the file."""
    return _damaged(original, folder, (original.content[:size] for size in sizes), exact=True)


def flipped(original: Original, folder: Path, runs: int, draw: random.Random) -> Outcome:
    """Flip 1 to 64 bits anywhere; the rows of a page whose head is hit may go with it."""

    def contents() -> Iterable[bytes]:
        for _ in range(runs):
            content = bytearray(original.content)
            for _ in range(draw.choice((1, 1, 1, 4, 64))):
                bit = draw.randrange(8 * len(content))
                content[bit // 8] ^= 1 << bit % 8
            yield bytes(content)

    return _damaged(original, folder, contents(), exact=False)


def unusual(original: Original, folder: Path) -> dict[str, Outcome]:
    """Try what is no damage: empty, foreign, of other versions, where nothing can be written."""
    everything = set(original.rows)
    cases: dict[str, tuple[Callable[[Path], None], set[int], bool]] = {
        "zero length": (lambda path: path.write_bytes(b""), set(), True),
        "not there": (lambda path: path.unlink(), set(), True),
        "no database": (lambda path: path.write_bytes(b"<html>" * 5000), set(), True),
        "another program's": (_foreign, set(), False),
        "older schema": (_older, everything, True),
        "newer schema": (_newer, set(), False),
    }
    outcomes = {}
    for name, (change, whole, stored) in cases.items():
        path, outcome = fresh(folder), Outcome()
        shutil.copy(original.path, path)
        change(path)
        before = path.read_bytes() if path.exists() else b""
        look(outcome, original, path, name, whole)
        if outcome.in_memory == stored:
            outcome.wrong.append(f"{name}: {'not ' if stored else ''}kept in the file")
        if not stored and path.read_bytes() != before:
            outcome.wrong.append(f"{name}: the file was changed")
        outcomes[name] = outcome
    outcomes["read-only folder"] = _in_mount(_read_only, original, folder)
    outcomes["full disk"] = _in_mount(_full_disk, original, folder)
    outcomes["full disk from the start"] = _in_mount(_full_from_the_start, original, folder)
    return outcomes


# --- inside ---


def _cell(row: Row) -> bytes:
    size = next(size for size in (1, 2, 3, 4, 6) if row[9] < 2 ** (8 * size - 1))  # as SQLite does
    return row[7] + row[8] + row[9].to_bytes(size, "big")


def fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder / "cache.sqlite3"


def _damaged(
    original: Original, folder: Path, contents: Iterable[bytes], *, exact: bool
) -> Outcome:
    outcome = Outcome()
    for run, content in enumerate(contents):
        path = fresh(folder)
        path.write_bytes(content)
        whole = original.whole_in(content)
        spared = whole if exact else whole - _beside_hit_heads(original, content)
        look(outcome, original, path, f"run {run}", spared, whole)
    return outcome


def _beside_hit_heads(original: Original, content: bytes) -> set[int]:
    """Return the entries of those pages whose head, cell pointers or record heads differ."""
    beside: set[int] = set()
    size = schema.PAGE_SIZE
    for begin in range(0, len(content), size):
        before, after = original.content[begin : begin + size], content[begin : begin + size]
        inside = original.whole_in(before)
        rest_before, rest_after = before, after
        for name in inside:
            cell = _cell(original.rows[name])
            at = before.find(cell)
            rest_before = rest_before[:at] + bytes(len(cell)) + rest_before[at + len(cell) :]
            rest_after = rest_after[:at] + bytes(len(cell)) + rest_after[at + len(cell) :]
        if rest_before != rest_after:
            beside |= inside
    return beside


def look(
    outcome: Outcome,
    original: Original,
    path: Path,
    run: str,
    spared: set[int],
    whole: set[int] | None = None,
) -> set[int]:
    """Open a file, write down and return what is found; ``spared`` entries must be there."""
    outcome.runs += 1
    outcome.whole += len(spared if whole is None else whole)
    try:
        manager, told = load.start(path)
    except Exception as error:
        outcome.wrong.append(f"{run}: does not start: {type(error).__name__}: {error}")
        return set()
    report = manager.persistence.report()
    found = load.rows(manager)
    outcome.loaded += len(found)
    outcome.quarantined += report.quarantined
    outcome.lost += report.lost
    outcome.in_memory += not report.stored
    if any(original.rows.get(name) != row for name, row in found.items()):
        outcome.wrong.append(f"{run}: an entry is not what it was ({told})")
    if missing := spared - set(found):
        outcome.wrong.append(f"{run}: {len(missing)} good entries are missing ({told})")
    if report.stored:
        entry = load.insert(manager, 10**9)
        manager.persistence.save()
        manager.persistence.end()
        again, told = load.start(path)
        if set(load.rows(again)) != {*found, entry} or again.persistence.report().lost:
            outcome.wrong.append(f"{run}: the next start is not what was loaded and added ({told})")
        manager = again
    manager.persistence.end()
    return set(found)


def _change(path: Path, *statements: tuple) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(*statement)
    connection.commit()
    connection.close()


def _foreign(path: Path) -> None:
    path.unlink()
    _change(path, ("CREATE TABLE photo (name TEXT)",), ("INSERT INTO photo VALUES ('cat')",))


def _older(path: Path) -> None:
    _change(path, ("DROP TABLE quarantine",), ("PRAGMA user_version = 1",))


def _newer(path: Path) -> None:
    content = {"schema": 99, "last_id": 1, "decisions": 0, "entries": 1}
    row = state_row(PROGRESS, content)
    _change(
        path,
        ("ALTER TABLE entry ADD COLUMN more TEXT",),
        ("UPDATE state SET content = ?2, checksum = ?3 WHERE name = ?1", row),
        ("PRAGMA user_version = 99",),
    )


def _in_mount(
    case: Callable[[Outcome, Original, Path], None], original: Original, folder: Path
) -> Outcome:
    outcome = Outcome()
    path = fresh(folder)
    try:
        case(outcome, original, path)
    except mounts.CannotMountError as error:
        outcome.skipped = str(error)
    return outcome


def _read_only(outcome: Outcome, original: Original, path: Path) -> None:
    with mounts.mounted(path.parent, "size=8m"):
        shutil.copy(original.path, path)
        mounts.make_read_only(path.parent)
        look(outcome, original, path, "read-only folder", set(original.rows))
        if not outcome.in_memory:
            outcome.wrong.append("read-only folder: it says that it is kept")


def _full_disk(outcome: Outcome, original: Original, path: Path) -> None:
    """Fill a disk of 1 MB under a cache: it goes on, refuses to confirm, and catches up."""
    with mounts.mounted(path.parent, "size=1m"):
        manager, _ = load.start(path)
        load.insert(manager, 0)
        manager.persistence.save()
        filler = mounts.fill(path.parent)
        for number in range(1, 40):
            load.insert(manager, number)
        try:
            manager.persistence.save()
            outcome.wrong.append("full disk: confirmed what cannot be written")
        except StoreError:
            pass
        filler.unlink()
        if manager.persistence.save() != 40:
            outcome.wrong.append("full disk: did not catch up when there was room again")
        manager.persistence.end()
        outcome.runs, outcome.whole = 1, 40
        again, _ = load.start(path)
        outcome.loaded = len(load.rows(again))
        if load.rows(again) != {name: original.rows[name] for name in range(1, 41)}:
            outcome.wrong.append("full disk: an entry is not what it was")
        again.persistence.end()


def _full_from_the_start(outcome: Outcome, original: Original, path: Path) -> None:
    with mounts.mounted(path.parent, "size=8k"):
        look(outcome, original, path, "full disk from the start", set())
        if not outcome.in_memory:
            outcome.wrong.append("full disk from the start: it says that it is kept")
