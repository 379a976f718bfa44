"""Reads what is left of a damaged file, page by page, without SQLite.

SQLite gives up where its tree is broken. The rows stand in leaf pages that explain themselves, and
each row has its checksum, so that all rows in pages that are whole can be found wherever the tree
is broken, also with the first page gone. The format is https://www.sqlite.org/fileformat2.html:
1.6 (b-tree pages), 2.1 (records), 4.1 (write-ahead log).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kv_action_router.caching.store.record import Row, is_whole
from kv_action_router.caching.store.schema import PAGE_SIZE
from kv_action_router.caching.store.state import StateRow, is_whole_state

_TABLE_LEAF = 0x0D
_LARGEST_LOCAL = PAGE_SIZE - 35  # of a record in its leaf page
_LEAST_LOCAL = (PAGE_SIZE - 12) * 32 // 255 - 23
_LARGEST_RECORD = 64 * 1024 * 1024
_WAL_HEADER, _FRAME_HEADER = 32, 24
_INTEGER_SIZES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_ENTRY_WIDTH, _STATE_WIDTH = 10, 4


@dataclass
class Salvaged:
    """What was found: rows by entry id, small state by name, and rows that are not whole."""

    rows: dict[int, Row] = field(default_factory=dict)
    state: dict[str, StateRow] = field(default_factory=dict)
    broken: list[tuple[Any, ...]] = field(default_factory=list)


def salvage(path: Path) -> Salvaged:
    """Read all rows that a file and its write-ahead log still hold.

    Of an entry that is found twice the newer one counts.

    Raises:
        OSError: the file cannot be read at all.
    """
    pages = _Pages(path)
    found = Salvaged()
    broken: dict[int, tuple[Any, ...]] = {}
    for rowid, values in pages.records():
        if len(values) == _ENTRY_WIDTH:
            row = (rowid, *values[1:])
            if not is_whole(row):
                broken[rowid] = row
            elif rowid not in found.rows or _age(row) > _age(found.rows[rowid]):
                found.rows[rowid] = row
        elif len(values) == _STATE_WIDTH:
            state = (rowid, *values[1:])
            if is_whole_state(state):
                known = found.state.get(state[1])
                if known is None or known[0] < rowid:
                    found.state[state[1]] = state
    found.broken = [row for rowid, row in broken.items() if rowid not in found.rows]
    return found


def first_page(path: Path) -> bytes:
    """Return the first page of a file as its log leaves it."""
    return _Pages(path).page(1)


def _age(row: tuple[Any, ...]) -> tuple[int, int, int]:
    return row[1], row[2] + row[3], row[6]


class _Pages:
    """Pages of a database, the committed ones of its log over those of the file."""

    def __init__(self, path: Path) -> None:
        self._file = path.read_bytes()
        self._log: dict[int, bytes] = {}
        log = path.with_name(path.name + "-wal")
        if log.is_file():
            self._read_log(log.read_bytes())
        self._count = max(-(-len(self._file) // PAGE_SIZE), max(self._log, default=0))

    def records(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Yield row id and columns of every record in a table's leaf page that can be read."""
        for number in range(1, self._count + 1):
            page = self.page(number)
            start = 100 if number == 1 else 0
            if len(page) < start + 8 or page[start] != _TABLE_LEAF:
                continue
            (count,) = struct.unpack_from(">H", page, start + 3)
            for index in range(min(count, PAGE_SIZE // 4)):
                try:
                    (place,) = struct.unpack_from(">H", page, start + 8 + 2 * index)
                    yield self._cell(page, place)
                except (IndexError, struct.error, ValueError, UnicodeError):
                    continue  # not a record, or one whose page ends too early

    def page(self, number: int) -> bytes:
        """Return a page, numbered from 1; less than a page where the file ends."""
        if number in self._log:
            return self._log[number]
        return self._file[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]

    def _read_log(self, log: bytes) -> None:
        """Take the frames of the log's present generation, up to its last commit.

        Their checksums are not looked at: rows have their own.
        """
        salts, pending = log[16:24], {}
        size = _FRAME_HEADER + PAGE_SIZE
        for begin in range(_WAL_HEADER, len(log) - size + 1, size):
            number, commit = struct.unpack_from(">II", log, begin)
            if log[begin + 8 : begin + 16] != salts or not 0 < number < 2**31:
                break
            pending[number] = log[begin + _FRAME_HEADER : begin + size]
            if commit:
                self._log.update(pending)
                pending = {}

    def _cell(self, page: bytes, place: int) -> tuple[int, tuple[Any, ...]]:
        size, place = _varint(page, place)
        rowid, place = _varint(page, place)
        if size > _LARGEST_RECORD:
            raise ValueError("no record is that long")
        return rowid, _columns(self._payload(page, place, size))

    def _payload(self, page: bytes, place: int, size: int) -> bytes:
        if size <= _LARGEST_LOCAL:
            return page[place : place + size]
        local = _LEAST_LOCAL + (size - _LEAST_LOCAL) % (PAGE_SIZE - 4)
        local = local if local <= _LARGEST_LOCAL else _LEAST_LOCAL
        parts = [page[place : place + local]]
        (following,) = struct.unpack_from(">I", page, place + local)
        missing = size - local
        while missing > 0:
            overflow = self.page(following) if 0 < following <= self._count else b""
            (following,) = struct.unpack_from(">I", overflow)
            parts.append(overflow[4 : 4 + missing])
            missing -= PAGE_SIZE - 4
        return b"".join(parts)


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for index in range(8):
        byte = data[place + index]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + index + 1
    return value << 8 | data[place + 8], place + 9


def _columns(record: bytes) -> tuple[Any, ...]:
    end, place = _varint(record, 0)
    kinds = []
    while place < end:
        kind, place = _varint(record, place)
        kinds.append(kind)
    values: list[Any] = []
    for kind in kinds:
        if kind in _INTEGER_SIZES:
            size = _INTEGER_SIZES[kind]
            values.append(int.from_bytes(record[place : place + size], "big", signed=True))
        elif kind in (0, 8, 9):
            size = 0
            values.append((None, 0, 1)[max(0, kind - 7)])
        elif kind >= 12:
            size = (kind - 12) // 2
            raw = record[place : place + size]
            values.append(raw.decode() if kind % 2 else raw)
        else:
            raise ValueError("a kind of column that we never write")
        if len(record) < place + size:
            raise ValueError("the record ends too early")
        place += size
    return tuple(values)
