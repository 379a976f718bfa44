"""The thread that writes what changed, in batches, each synced when it is committed."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kv_action_router.caching.store.lock import Note
from kv_action_router.caching.store.record import EntryRecord
from kv_action_router.caching.store.schema import ENTRY_COLUMNS
from kv_action_router.caching.store.state import state_row
from kv_action_router.caching.store.tables import write_progress, write_state
from kv_action_router.errors import StoreError

BATCH_PERIOD_S = 0.2  # changes are collected that long
BATCH_ENTRIES = 1000  # in one transaction
RETRY_S = (1.0, 2.0, 5.0, 10.0, 30.0)
CLOSE_TIMEOUT_S = 1.5

_UPDATE = (
    "UPDATE entry SET version=?2, successes=?3, failures=?4, failures_in_row=?5, confident=?6, "
    "last_used=?7, layout=?8, numbers=?9, checksum=?10 WHERE entry_id=?1"
)
_INSERT = f"INSERT INTO entry ({ENTRY_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?)"


@dataclass
class Changes:
    """What the file does not say yet.

    Attributes:
        entries: by id, as it is now; None = gone.
        state: JSON content by name; None = gone.
        last_id: highest entry id that was ever given.
        decisions: clock of ``last_used``.
    """

    entries: dict[int, EntryRecord | None] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    last_id: int = 0
    decisions: int = 0

    def __len__(self) -> int:
        return len(self.entries) + len(self.state)

    def add(self, newer: Changes) -> None:
        """Take newer changes on top."""
        self.entries.update(newer.entries)
        self.state.update(newer.state)
        self.last_id = max(self.last_id, newer.last_id)
        self.decisions = max(self.decisions, newer.decisions)

    def parts(self) -> Iterable[Changes]:
        """Yield the same in pieces of at most ``BATCH_ENTRIES`` entries, the state first."""
        ids = list(self.entries)
        for begin in range(0, max(1, len(ids)), BATCH_ENTRIES):
            entries = {name: self.entries[name] for name in ids[begin : begin + BATCH_ENTRIES]}
            state = self.state if begin == 0 else {}
            yield Changes(entries, state, self.last_id, self.decisions)


class Writer:
    """Writes changes in the background. Any thread gives, none waits unless it asks to.

    Invariants: a change is pending until a commit that holds it was synced; a batch that is refused
    (disk full) is tried again, and newer changes of the same entry take the place of older ones, so
    that there is never more pending than the cache holds.
    """

    def __init__(
        self, connection: sqlite3.Connection, found: Note, committed: Callable[[Note], None]
    ) -> None:
        """Write to an open database.

        Args:
            connection: to it.
            found: what it holds.
            committed: told of each commit, by the thread, after it was synced.
        """
        self._connection = connection
        self._note = found
        self._committed = committed
        self._pending = Changes()
        self._writing = Changes()
        self._given = 0  # changes that were given so far
        self._durable = 0  # of these, how many the disk has
        self._urgent = False
        self._closing = False
        self._given_up = False
        self._failure = ""
        self._failures_in_row = 0
        self.saves = 0
        self.saves_failed = 0
        self._condition = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="store", daemon=True)
        self._thread.start()

    @property
    def entries(self) -> int:
        """Entries in the file."""
        return self._note.entries

    @property
    def unsaved(self) -> int:
        """Changes that the disk does not have yet."""
        return len(self._pending) + len(self._writing)

    @property
    def failure(self) -> str:
        """Why the last batch was refused; empty = it was not."""
        return self._failure

    def give(self, changes: Changes) -> None:
        """Take changes; returns at once."""
        with self._condition:
            self._pending.add(changes)
            self._given += 1
            self._condition.notify_all()

    def save(self, timeout_s: float) -> int:
        """Wait until all that was given is on the disk; return the entries there.

        Raises:
            StoreError: it is not, and why.
        """
        until = time.monotonic() + timeout_s
        with self._condition:
            goal, failed = self._given, self.saves_failed
            self._urgent = True
            self._condition.notify_all()
            while self._durable < goal:
                left = until - time.monotonic()
                if self.saves_failed > failed:
                    raise StoreError(f"{self.unsaved} changes are not saved: {self._failure}")
                if left <= 0.0 or not self._thread.is_alive():
                    why = self._failure or f"not done within {timeout_s:g} s"
                    raise StoreError(f"{self.unsaved} changes are not saved: {why}")
                self._condition.wait(left)
            return self._note.entries

    def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> int:
        """Write what is pending and end; return the number of changes that could not be written."""
        with self._condition:
            self._closing = True
            self._condition.notify_all()
        self._thread.join(timeout_s)
        if not self._thread.is_alive():
            self._connection.close()
        return self.unsaved

    @property
    def ended(self) -> bool:
        """Whether the thread has ended, and the file is closed."""
        return not self._thread.is_alive()

    # --- the thread ---

    def _run(self) -> None:
        while self._wait_for_work():
            with self._condition:
                batch, self._pending = self._pending, Changes()
                self._writing = batch
                goal = self._given
            try:
                for part in batch.parts():
                    self._write(part)
                    with self._condition:
                        for name in part.entries:
                            del batch.entries[name]
            except Exception as error:  # whatever it is, nothing is lost and it is told
                self._failed(batch, f"{type(error).__name__}: {error}")
            else:
                with self._condition:
                    self._writing = Changes()
                    self._durable = goal
                    self._failure, self._failures_in_row = "", 0
                    self.saves += 1
                    self._condition.notify_all()

    def _wait_for_work(self) -> bool:
        """Wait for changes and then for more of them; False = closed, and nothing is left to do."""
        with self._condition:
            while not self._pending and not self._closing:
                if self._urgent:
                    self._durable, self._urgent = self._given, False
                    self._condition.notify_all()
                self._condition.wait()
            pause = BATCH_PERIOD_S
            if self._failures_in_row:
                pause = RETRY_S[min(self._failures_in_row, len(RETRY_S)) - 1]
            until = time.monotonic() + pause
            while not self._urgent and not self._closing:
                left = until - time.monotonic()
                if left <= 0.0:
                    break
                self._condition.wait(left)
            self._urgent = False
            return len(self._pending) > 0 and not self._given_up

    def _failed(self, batch: Changes, reason: str) -> None:
        with self._condition:
            batch.add(self._pending)
            self._pending, self._writing = batch, Changes()
            self._failure = reason
            self._failures_in_row += 1
            self.saves_failed += 1
            self._given_up = self._closing
            self._condition.notify_all()

    def _write(self, part: Changes) -> None:
        connection, entries = self._connection, self._note.entries
        connection.execute("BEGIN IMMEDIATE")
        try:
            for entry_id, record in part.entries.items():
                if record is None:
                    cursor = connection.execute("DELETE FROM entry WHERE entry_id=?", (entry_id,))
                    entries -= cursor.rowcount
                    continue
                row = record.row()
                if connection.execute(_UPDATE, row).rowcount == 0:
                    connection.execute(_INSERT, row)
                    entries += 1
            self._write_state(part.state)
            note = Note(self._note.series, self._note.commits + 1, entries)
            write_progress(connection, part.last_id, part.decisions, note)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._note = note
        self._committed(note)

    def _write_state(self, state: Mapping[str, Any]) -> None:
        for name, content in state.items():
            if content is None:
                self._connection.execute("DELETE FROM state WHERE name=?", (name,))
            else:
                write_state(self._connection, state_row(name, content))
