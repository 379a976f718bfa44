"""The file: an SQLite database of ours, its versions, and how it is opened.

| table | what |
|---|---|
| entry | one row an entry (``record.py``) |
| state | grants, execution values, numbers that go on: name, JSON, CRC-32 of both |
| quarantine | rows that were found bad, kept aside with the reason; the newest 10,000 |

Commits are synced (``synchronous=FULL``): what was committed survives a killed process, and a power
cut as far as the drive keeps its promises. Freed pages are overwritten (``secure_delete``), so that
a scan of a damaged file finds no entry that was thrown away.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

APPLICATION_ID = 0x6B766172  # "kvar"
PAGE_SIZE = 16_384  # six entries of an arm a page
MAGIC = b"SQLite format 3\0"
CHECKPOINT_PAGES = 250

ENTRY_COLUMNS = (
    "entry_id, version, successes, failures, failures_in_row, confident, last_used, "
    "layout, numbers, checksum"
)

# Entry n leads from version n to n + 1; a new file goes through all of them.
MIGRATIONS = (
    """
    CREATE TABLE entry (
        entry_id INTEGER PRIMARY KEY,
        version INTEGER NOT NULL,
        successes INTEGER NOT NULL,
        failures INTEGER NOT NULL,
        failures_in_row INTEGER NOT NULL,
        confident INTEGER NOT NULL,
        last_used INTEGER NOT NULL,
        layout BLOB NOT NULL,
        numbers BLOB NOT NULL,
        checksum INTEGER NOT NULL
    );
    CREATE TABLE state (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        content TEXT NOT NULL,
        checksum INTEGER NOT NULL
    );
    """,
    """
    CREATE TABLE quarantine (
        number INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        reason TEXT NOT NULL,
        entry_id INTEGER NOT NULL,
        layout,
        numbers,
        counters TEXT NOT NULL
    );
    """,
)
VERSION = len(MIGRATIONS)


def connect(path: Path | str) -> sqlite3.Connection:
    """Open a file for one manager: no other process reads or writes it meanwhile.

    Raises:
        sqlite3.Error: it is no database, is damaged, or cannot be written.
    """
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1.0)
    # A damaged text must not end a query: its checksum says what it is.
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    try:
        connection.execute(f"PRAGMA page_size={PAGE_SIZE}")
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")  # no -shm file, which may be truncated
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA secure_delete=ON")
        connection.execute("PRAGMA cell_size_check=ON")
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}")
    except Exception:
        connection.close()
        raise
    return connection


def pragma(connection: sqlite3.Connection, name: str) -> int | str:
    """Return what a pragma is set to."""
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def migrate(connection: sqlite3.Connection) -> int:
    """Bring a file of ours, or an empty one, to this version; return the version that it had."""
    before = int(pragma(connection, "user_version"))
    for version in range(before, VERSION):
        connection.executescript(
            f"BEGIN IMMEDIATE; {MIGRATIONS[version]}"
            f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={version + 1}; COMMIT;"
        )
    return before


def sync_folder(folder: Path) -> None:
    """Let the names in a folder reach the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
