"""From whatever stands at a path to a database that can be used, or the reason why there is none.

| at the path | what is done |
|---|---|
| nothing, or an empty file without a log | a new database |
| ours, whole | used; an older version is migrated in place |
| ours, damaged | rows that are whole go into a new database, the old file is kept aside |
| no database, no row of ours in it | kept aside; a new database |
| another program's database | left alone; the cache stays in memory |
| ours, of a newer version | left alone; the cache stays in memory |
| folder or file that cannot be written | its rows are read; the cache stays in memory |
"""

from __future__ import annotations

import sqlite3
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kv_action_router.caching.store import replacing, schema
from kv_action_router.caching.store.salvage import Salvaged, first_page, salvage
from kv_action_router.caching.store.state import (
    PROGRESS,
    StateRow,
    is_whole_state,
    read_state,
)
from kv_action_router.caching.store.tables import fill
from kv_action_router.errors import StoreError

# A message of SQLite that quotes a damaged name is no text, and cannot even be raised.
_UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
_REFUSALS = frozenset(
    (
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_NOLFS,
    )
)


@dataclass
class Opened:
    """A database that was opened.

    Attributes:
        connection: to the file or, where it cannot be written, to a copy in memory.
        stored: what is written reaches a file.
        notes: what people should know, each a clause.
        broken: rows that are not whole, from a damaged file.
        lost: entries that the file should hold and that are not there, not even broken.
    """

    connection: sqlite3.Connection
    stored: bool
    notes: list[str] = field(default_factory=list)
    broken: list[tuple[Any, ...]] = field(default_factory=list)
    lost: int = 0


class _DamagedError(Exception):
    """It should be ours, and SQLite cannot read all of it."""


class _NotOursError(Exception):
    """It must be left alone."""


def open_database(path: Path) -> Opened:
    """Open the database at a path; its folder exists, its lock is held. Never fails for its state.

    Raises:
        StoreError: not even a database in memory can be had.
    """
    try:
        replacing.finish(path)
        try:
            return _open_good(path)
        except _DamagedError as damage:
            return _recover(path, str(damage))
    except _NotOursError as reason:
        return _in_memory(Salvaged(), f"{path} {reason}")
    except (OSError, sqlite3.Error) as error:
        return read_only(path, f"{path} cannot be written ({error})")


def read_only(path: Path, reason: str) -> Opened:
    """Return a copy in memory of what a file holds that cannot be written."""
    try:
        found = salvage(path) if path.is_file() else Salvaged()
    except OSError as error:
        found, reason = Salvaged(), f"{reason}, nor read ({error})"
    return _in_memory(found, reason)


# --- inside ---


def _open_good(path: Path) -> Opened:
    fresh = not path.exists() or path.stat().st_size == 0
    if fresh:
        _look_at_log(path)
    else:
        _look_at_head(path)
    try:
        connection = schema.connect(path)
    except _UNREADABLE as error:
        if _is_refusal(error):
            raise
        raise _DamagedError(str(error)) from error
    try:
        if not fresh:
            _examine(connection)
        version = schema.migrate(connection)
        connection.execute("BEGIN IMMEDIATE")  # a file that can only be read refuses this
        connection.execute("ROLLBACK")
        schema.sync_folder(path.parent)
    except Exception as error:
        connection.close()
        if isinstance(error, _UNREADABLE) and not _is_refusal(error):
            raise _DamagedError(str(error)) from error
        raise
    migrated = 0 < version < schema.VERSION
    notes = [f"migrated from version {version} to {schema.VERSION}"] if migrated else []
    return Opened(connection, stored=True, notes=notes)


def _is_refusal(error: Exception) -> bool:
    """Say whether it is no damage: no permission, no room, somebody else's lock."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _REFUSALS


def _look_at_log(path: Path) -> None:
    """Let no log stand beside a new file: it would be taken for the new file's own."""
    log = path.with_name(path.name + "-wal")
    if not log.exists() or not log.stat().st_size:
        return
    if path.exists():
        raise _DamagedError("it is empty, beside a log that is not")
    log.rename(replacing.name_aside(log))  # who removed the file means it


def _look_at_head(path: Path) -> None:
    """Let nothing be opened, and so changed, that is not ours."""
    with path.open("rb") as file:
        page = file.read(schema.PAGE_SIZE)
    if not page.startswith(schema.MAGIC):
        raise _DamagedError("it does not begin as a database does")
    ours, version, tables = _head(page)
    if not ours or not 0 < version <= schema.VERSION:
        ours, version, tables = _head(first_page(path))  # which may stand in the log only
    if ours and 0 < version <= schema.VERSION:
        return
    if not ours and not version and not tables:
        return  # killed between its making and its first table
    if _says_ours(path):
        raise _DamagedError("its header is damaged")
    raise _NotOursError(
        f"was written by a newer version (schema {version}, this one knows {schema.VERSION})"
        if ours
        else "is another program's database"
    )


def _head(page: bytes) -> tuple[bool, int, int]:
    """Return what a database's first page says: whether it is ours, its version, its tables."""
    page = page.ljust(105, b"\0")
    (version,) = struct.unpack_from(">I", page, 60)
    (application,) = struct.unpack_from(">I", page, 68)
    (tables,) = struct.unpack_from(">H", page, 103)
    return application == schema.APPLICATION_ID, version, tables


def _examine(connection: sqlite3.Connection) -> None:
    """Find out whether SQLite can read all of a file of ours.

    Raises:
        _DamagedError, sqlite3.DatabaseError: it cannot.
    """
    if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        return
    verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise _DamagedError(str(verdict).splitlines()[-1])
    rows = connection.execute("SELECT number, name, content, checksum FROM state").fetchall()
    expected = read_state(_newest(rows)).entries
    count = connection.execute("SELECT count(*) FROM entry").fetchone()[0]
    if expected is not None and expected != count:
        raise _DamagedError(f"it should hold {expected} entries, and holds {count}")


def _says_ours(path: Path) -> bool:
    """Say whether a file, whose header says something else, tells a version that is known here."""
    row = salvage(path).state.get(PROGRESS)
    return row is not None and f'"schema":{schema.VERSION}' in row[2]


def _newest(rows: list[StateRow]) -> dict[str, StateRow]:
    return {row[1]: row for row in sorted(rows) if is_whole_state(row)}


def _recover(path: Path, damage: str) -> Opened:
    """Write what is whole into a new database, which takes the path; keep the old file aside."""
    found = salvage(path)
    try:
        replacing.prepare(path, found)
    except (OSError, sqlite3.Error) as error:
        reason = f"{path} is damaged ({damage}) and cannot be written anew ({error})"
        return _report(_in_memory(found, reason), found)
    aside = replacing.finish(path)
    opened = _open_good(path)
    opened.notes.append(f"it was damaged ({damage}); the damaged file is kept as {aside}")
    return _report(opened, found)


def _report(opened: Opened, found: Salvaged) -> Opened:
    opened.broken = found.broken
    expected = read_state(found.state).entries
    if expected is not None:
        opened.lost = max(0, expected - len(found.rows) - len(found.broken))
    return opened


def _in_memory(found: Salvaged, reason: str) -> Opened:
    try:
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        fill(connection, found)
    except sqlite3.Error as error:
        raise StoreError(f"no database can be made in memory: {error}") from error
    return _report(Opened(connection, stored=False, notes=[reason]), found)
