"""What is written into the tables, and how."""

from __future__ import annotations

import sqlite3

from kv_action_router.caching.store import schema
from kv_action_router.caching.store.lock import Note
from kv_action_router.caching.store.record import Row
from kv_action_router.caching.store.salvage import Salvaged
from kv_action_router.caching.store.state import PROGRESS, read_state, state_row


def insert_rows(connection: sqlite3.Connection, rows: list[Row]) -> None:
    """Insert entries; those of the same id are replaced."""
    connection.executemany(
        f"INSERT OR REPLACE INTO entry ({schema.ENTRY_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?)", rows
    )


def write_state(connection: sqlite3.Connection, row: tuple[str, str, int]) -> None:
    """Write a piece of state in the place of the one of the same name."""
    connection.execute("DELETE FROM state WHERE name = ?", row[:1])
    connection.execute("INSERT INTO state (name, content, checksum) VALUES (?, ?, ?)", row)


def write_progress(
    connection: sqlite3.Connection, last_id: int, decisions: int, note: Note
) -> None:
    """Write the numbers that go on after a restart, and those that tell what is missing."""
    content = {
        "schema": schema.VERSION,
        "last_id": last_id,
        "decisions": decisions,
        "entries": note.entries,
        "series": note.series,
        "commits": note.commits,
    }
    write_state(connection, state_row(PROGRESS, content))


def fill(connection: sqlite3.Connection, found: Salvaged) -> None:
    """Write what was salvaged into an empty database."""
    schema.migrate(connection)
    connection.execute("BEGIN IMMEDIATE")
    insert_rows(connection, list(found.rows.values()))
    state = dict(found.state)
    state.pop(PROGRESS, None)
    connection.executemany(
        "INSERT INTO state (name, content, checksum) VALUES (?, ?, ?)",
        [row[1:] for row in state.values()],
    )
    progress = read_state(found.state)
    last_id = max((progress.last_id, *found.rows, *(row[0] for row in found.broken)))
    note = Note(progress.series, progress.commits, len(found.rows))
    write_progress(connection, last_id, progress.decisions, note)
    connection.execute("COMMIT")
