"""The cache's file: opened at configure, loaded once, written in the background, closed."""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from kv_action_router.caching.store import opening, schema
from kv_action_router.caching.store.lock import FileLock, Note
from kv_action_router.caching.store.record import Row, is_whole
from kv_action_router.caching.store.report import StoreReport
from kv_action_router.caching.store.state import (
    PROGRESS,
    StoredState,
    is_whole_state,
    read_state,
)
from kv_action_router.caching.store.tables import write_progress
from kv_action_router.caching.store.writer import Changes, Writer
from kv_action_router.errors import StoreError

READ_ROWS = 512
QUARANTINE_ROWS = 10_000
_NOT_WHOLE = "the checksum is wrong"


class CacheStore:
    """One file, one manager.

    Use: make it, read :meth:`rows` to the end, :meth:`quarantine` what is bad, :meth:`start`; from
    then on give it changes. Until ``start`` it belongs to one thread, then any thread may call.
    """

    def __init__(self, path: Path) -> None:
        """Open the file at a path, made if need be with its folder.

        A link is followed first: lock, log and what is kept aside stand beside the file itself, so
        two ways to one file meet in one lock.

        Raises:
            StoreInUseError: another process has it.
            StoreError: not even memory can be had.
        """
        path = self.path = Path(os.path.realpath(path))
        self._lock: FileLock | None = None
        self._writer: Writer | None = None
        self._loaded = 0
        self._quarantined = 0
        self._lost = 0
        removed = not path.exists()  # who removed the file means it
        self._opened = self._open(path)
        self._lost = self._opened.lost
        self.state = self._read_state()
        self._missing = 0 if removed else self._look_for_missing()
        self.state.series = self.state.series or secrets.randbelow(2**63) + 1
        self.quarantine([(row, _NOT_WHOLE) for row in self._opened.broken])

    @property
    def stored(self) -> bool:
        """Whether what is written reaches the disk."""
        return self._opened.stored

    @property
    def notes(self) -> list[str]:
        """What people should know about how it was found."""
        return list(self._opened.notes)

    def kept_aside(self) -> dict[str, int]:
        """Return how many rows are kept aside, by reason; until :meth:`start`."""
        rows = self._opened.connection.execute(
            "SELECT reason, count(*) FROM quarantine GROUP BY reason ORDER BY reason"
        )
        return dict(rows.fetchall())

    # --- loading ---

    def rows(self) -> Iterator[list[Row]]:
        """Yield all rows that are whole; the others are quarantined at the end.

        Nothing else may be asked of the store before the last of them came.
        """
        broken: list[tuple[tuple[Any, ...], str]] = []
        cursor = self._opened.connection.execute(
            f"SELECT {schema.ENTRY_COLUMNS} FROM entry ORDER BY entry_id"
        )
        # SQLite reads without the interpreter's lock: the next rows come while these are taken in.
        with ThreadPoolExecutor(1, "cache_reader") as reader:
            ahead = reader.submit(cursor.fetchmany, READ_ROWS)
            while rows := ahead.result():
                ahead = reader.submit(cursor.fetchmany, READ_ROWS)
                good = [row for row in rows if is_whole(row)]
                if len(good) < len(rows):
                    broken += [(row, _NOT_WHOLE) for row in rows if not is_whole(row)]
                yield good
        self.quarantine(broken)

    def beyond(self, capacity: int) -> list[Row]:
        """Return the rows that do not fit, those that were used longest ago."""
        if self._count() <= capacity:
            return []
        return self._opened.connection.execute(
            f"SELECT {schema.ENTRY_COLUMNS} FROM entry ORDER BY last_used DESC, entry_id DESC "
            f"LIMIT -1 OFFSET ?",
            (capacity,),
        ).fetchall()

    def quarantine(self, bad: Sequence[tuple[tuple[Any, ...], str]]) -> None:
        """Keep rows aside, each with the reason, and take them out of the entries.

        Raises:
            StoreError: that cannot be written.
        """
        if not bad:
            return
        self._quarantined += len(bad)
        connection = self._opened.connection
        now = time.time()
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                "INSERT INTO quarantine (at, reason, entry_id, layout, numbers, counters) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                [_kept_aside(now, row, reason) for row, reason in bad],
            )
            connection.execute(
                "DELETE FROM quarantine WHERE number <= (SELECT max(number) FROM quarantine) - ?",
                (QUARANTINE_ROWS,),
            )
            connection.executemany(
                "DELETE FROM entry WHERE entry_id = ?", [(row[0],) for row, _ in bad]
            )
            self.state.commits += 1
            write_progress(connection, self.state.last_id, self.state.decisions, self._note())
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._to_memory(f"{self.path} cannot be written ({error})")

    def start(self, loaded: int) -> None:
        """Begin to write; so many entries were loaded."""
        self._loaded = loaded
        connection = self._opened.connection
        if not self.stored:
            connection.close()
            return
        self._told(self._note())
        self._writer = Writer(connection, self._note(), self._told)

    # --- writing ---

    def give(self, changes: Changes) -> None:
        """Take changes to be written; returns at once."""
        if self._writer is not None:
            self._writer.give(changes)

    def save(self, timeout_s: float) -> int:
        """Return the number of entries in the file, once the disk has all that was given.

        Raises:
            StoreError: it does not, and why.
        """
        if self._writer is None:
            raise StoreError(f"nothing is saved: {self.report().where}")
        return self._writer.save(timeout_s)

    def report(self) -> StoreReport:
        """Return the state of the store."""
        writer = self._writer
        if not self.stored or writer is None:
            return StoreReport(
                where="; ".join(["the cache is kept in memory", *self._opened.notes]),
                loaded=self._loaded,
                quarantined=self._quarantined,
                lost=self._lost,
            )
        return StoreReport(
            stored=not writer.failure,
            where=f"{self.path}: {writer.failure}" if writer.failure else str(self.path),
            loaded=self._loaded,
            quarantined=self._quarantined,
            lost=self._lost,
            unsaved=writer.unsaved,
            saves=writer.saves,
            saves_failed=writer.saves_failed,
        )

    def summary(self) -> str:
        """Return one line about how it began, for people."""
        parts = [f"{self._loaded} entries loaded"]
        if self._quarantined:
            parts.append(f"{self._quarantined} bad and kept aside")
        if self._lost:
            parts.append(f"{self._lost} lost")
        where = str(self.path) if self.stored else "in memory only"
        return f"cache {where}: " + ", ".join(parts + self._opened.notes)

    @property
    def wants_attention(self) -> bool:
        """Whether the summary is bad news."""
        bad = self._quarantined or self._lost or self._missing or self._opened.broken
        return bool(not self.stored or bad)

    def close(self) -> str:
        """Write what is pending, close the file, let go of it; return what went wrong, if any."""
        wrong = ""
        if self._writer is not None:
            left = self._writer.close()
            if left:
                why = self._writer.failure or "the disk is too slow"
                wrong = f"{left} changes were not saved: {why}"
        else:
            self._opened.connection.close()
        if self._lock is not None and (self._writer is None or self._writer.ended):
            self._lock.release()
        return wrong

    # --- inside ---

    def _open(self, path: Path) -> opening.Opened:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(path)
        except OSError as error:
            return opening.read_only(path, f"{path} cannot be written ({error})")
        try:
            return opening.open_database(path)
        except BaseException:
            self._lock.release()
            raise

    def _read_state(self) -> StoredState:
        rows = self._opened.connection.execute(
            "SELECT number, name, content, checksum FROM state ORDER BY number"
        ).fetchall()
        whole = {row[1]: row for row in rows if is_whole_state(row)}
        state = read_state(whole)
        state.bad += [str(row[1]) for row in rows if not is_whole_state(row)]
        if state.bad:
            self._opened.notes.append(f"not used: {', '.join(state.bad)}")
        if PROGRESS not in whole and rows:
            self._opened.notes.append("how many entries it should hold is not known")
        return state

    def _look_for_missing(self) -> int:
        """Return how many commits are missing at the end: the lock file knows of later ones."""
        last = self._lock.found if self._lock is not None else None
        if last is None or not self.stored or self.state.series not in (0, last.series):
            return 0  # nobody knows, or another file has taken the place of that one
        missing = max(0, last.commits - self.state.commits)
        if missing:
            gone = last.entries - self._count() - len(self._opened.broken)
            self._lost = max(self._lost, gone)
            self._opened.notes.append(
                f"{missing} commits are missing (a log that was cut or damaged, or an older copy)"
            )
        return missing

    def _note(self) -> Note:
        return Note(self.state.series, self.state.commits, self._count())

    def _told(self, note: Note) -> None:
        if self._lock is not None:
            self._lock.note(note)

    def _count(self) -> int:
        return int(self._opened.connection.execute("SELECT count(*) FROM entry").fetchone()[0])

    def _to_memory(self, reason: str) -> None:
        self._opened.stored = False
        self._opened.notes.append(reason)


def _kept_aside(now: float, row: tuple[Any, ...], reason: str) -> tuple[Any, ...]:
    entry_id, counters, layout, numbers = row[0], row[1:7], row[7], row[8]
    return now, reason[:1000], entry_id, layout, numbers, repr((*counters, row[9]))
