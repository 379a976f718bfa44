"""A cache as one file that explains itself: for another machine, another program, or a look.

JSON Lines, UTF-8, gzip where the name ends with ``.gz``. The first line says what the file is and
what its fields mean; each other line is one thing (``entry``, ``grant`` or ``execution``); the last
one holds their number and the CRC-32 of all lines before it, so that half a file is not taken for a
whole one. Numbers are written so that they come back bit by bit.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any

import numpy as np

from kv_action_router.caching.domains import check_name
from kv_action_router.caching.layers.behavior import BehaviorSize
from kv_action_router.caching.store.block import check_layout, read_block, sift
from kv_action_router.caching.store.record import EntryRecord
from kv_action_router.caching.store.state import EXECUTION, GRANTS, execution_content
from kv_action_router.caching.store.store import CacheStore
from kv_action_router.caching.store.writer import Changes
from kv_action_router.contracts import BehaviorValue, Pose
from kv_action_router.errors import EntryInvalidError, RouterError, StoreError

FORMAT = "kv_action_router cache"
VERSION = 1
SAVE_TIMEOUT_S = 60.0
_UNLIMITED = BehaviorSize(1_000_000, 1_000_000, 1000)
_MEANING = {
    "key": "64 numbers: target 0:16, scene 16:40, body 40:56, robot 56:64",
    "behavior.knots": "s",
    "behavior.coefficients": "of a clamped B-spline; columns as in dimensions, in rad or m",
    "behavior.target": "position in m, quaternion x y z w, in the robot's base frame",
    "last_used": "decisions",
}
_PLAIN = tuple(entry.name for entry in fields(EntryRecord) if entry.name not in ("key", "behavior"))


@dataclass(frozen=True, slots=True)
class Moved:
    """What an export or import moved; ``refused`` says why entries were not taken, by old id."""

    entries: int
    grants: int
    execution_values: int
    refused: dict[int, str]


def export(store: CacheStore, path: Path) -> Moved:
    """Write all that a store holds, which is read to its end, into a file.

    Raises:
        OSError: it cannot be written; what was there before is still there.
    """
    part = path.with_name(path.name + ".part")
    counts = {"entry": 0, "grant": 0, "execution": 0}
    try:
        with _open(part, "w") as file:
            writer = _Lines(file)
            writer.put({"format": FORMAT, "version": VERSION, "written": _now(), "means": _MEANING})
            for rows in store.rows():
                for row in rows:
                    writer.put({"entry": _plain(EntryRecord.of(row))})
                    counts["entry"] += 1
            for owner, reader in sorted(store.state.grants):
                writer.put({"grant": [owner, reader]})
                counts["grant"] += 1
            for domain, stored in sorted(store.state.execution.items()):
                writer.put({"execution": {"domain": domain, **execution_content(stored)}})
                counts["execution"] += 1
            writer.put({"end": sum(counts.values()), "crc32": writer.checksum})
        with part.open("rb") as done:
            os.fsync(done.fileno())
        part.replace(path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
    return Moved(counts["entry"], counts["grant"], counts["execution"], {})


def load_into(store: CacheStore, path: Path) -> Moved:
    """Add all that a file holds to a store, under new ids; close neither.

    An execution value is taken only where the store has none of its domain.

    Raises:
        StoreError: it is no such file, or not a whole one, or cannot be saved; nothing was added.
        OSError: it cannot be read.
    """
    changes, refused = Changes(), {}
    grants, values = set(store.state.grants), 0
    last = store.state.last_id
    for rows in store.rows():
        last = max(last, *(row[0] for row in rows)) if rows else last
    for number, (kind, content) in enumerate(_read(path), start=2):
        try:
            if kind == "entry":
                record = _entry(content)
                if reason := _why_not(record):
                    refused[record.entry_id] = reason
                    continue
                last += 1
                changes.entries[last] = _renumbered(record, last)
            elif kind == "grant":
                owner, reader = content
                grants.add((check_name("owner", owner), check_name("reader", reader)))
            elif content["domain"] not in store.state.execution:
                name = EXECUTION + check_name("domain", content.pop("domain"))
                changes.state[name] = content
                values += 1
        except (KeyError, TypeError, ValueError, RouterError) as error:
            raise StoreError(f"{path}, line {number}, must be a {kind}: {error}") from error
    added = len(grants - store.state.grants)
    if added:
        changes.state[GRANTS] = sorted(grants)
    changes.last_id, changes.decisions = last, store.state.decisions
    store.start(0)
    store.give(changes)
    store.save(SAVE_TIMEOUT_S)
    return Moved(len(changes.entries), added, values, refused)


# --- inside ---


class _Lines:
    """Writes lines of JSON and keeps the checksum of what was written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.checksum = 0

    def put(self, content: dict[str, Any]) -> None:
        line = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        self._file.write(line)
        self.checksum = zlib.crc32(line, self.checksum)


def _open(path: Path, mode: str) -> Any:
    zipped = ".gz" in path.suffixes
    return gzip.open(path, mode + "b") if zipped else path.open(mode + "b")


def _read(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield kind and content of each line, after the whole file was found to be good."""
    found: list[tuple[str, Any]] = []
    checksum, ended = 0, False
    try:
        with _open(path, "r") as file:
            head = file.readline(65_536)
            first = json.loads(head)
            if not isinstance(first, dict) or first.get("format") != FORMAT:
                raise StoreError(f"{path} must begin with the format {FORMAT!r}")
            if first.get("version") != VERSION:
                known = f"version {VERSION} of {FORMAT!r}"
                raise StoreError(f"{path} must be {known}, got {first.get('version')!r}")
            checksum = zlib.crc32(head)
            for line in file:
                ((kind, content), *rest) = json.loads(line).items()
                if kind == "end":
                    whole = (content, rest) == (len(found), [("crc32", checksum)])
                    if not whole or file.read(1):
                        raise StoreError(f"{path} is damaged: its end does not fit")
                    ended = True
                    break
                if kind not in ("entry", "grant", "execution"):
                    raise StoreError(f"{path} holds a {kind!r}, which nobody knows")
                found.append((kind, content))
                checksum = zlib.crc32(line, checksum)
    except (ValueError, AttributeError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise StoreError(f"{path} is damaged: {error}") from error
    if not ended:
        raise StoreError(f"{path} is damaged: its end is missing")
    yield from found


def _plain(record: EntryRecord) -> dict[str, Any]:
    content: dict[str, Any] = {name: getattr(record, name) for name in _PLAIN}
    content["key"] = [float(number) for number in record.key]
    value = record.behavior
    content["behavior"] = None
    if value is not None:
        target = None
        if value.target is not None:
            target = [value.target.position.tolist(), value.target.orientation.tolist()]
        content["behavior"] = {
            "dimensions": list(value.dimensions),
            "degree": value.degree,
            "knots": value.knots.tolist(),
            "coefficients": value.coefficients.tolist(),
            "phase": value.phase,
            "decay": value.decay.tolist(),
            "target": target,
        }
    return content


def _entry(content: dict[str, Any]) -> EntryRecord:
    plain = {name: content[name] for name in _PLAIN}
    key = np.array(content["key"], dtype=np.float32)
    if key.shape != (64,):
        raise EntryInvalidError(f"key must be 64 numbers, got {key.shape}")
    found, behavior = content["behavior"], None
    if found is not None:
        target = found["target"]
        behavior = BehaviorValue(
            subtask=plain["subtask"],
            dimensions=tuple(found["dimensions"]),
            degree=int(found["degree"]),
            knots=np.array(found["knots"], dtype=float),
            coefficients=np.array(found["coefficients"], dtype=float),
            phase=float(found["phase"]),
            decay=np.array(found["decay"], dtype=float),
            target=None if target is None else Pose(*(np.array(part) for part in target)),
        )
    return EntryRecord(**plain, key=key, behavior=behavior)


def _why_not(record: EntryRecord) -> str:
    """Return why an insertion would refuse an entry; empty = it would not."""
    try:
        row = record.row()
        check_layout(record.layout, _UNLIMITED)
        _, refused = sift(read_block(record.layout, [row]), [row], _UNLIMITED)
    except (RouterError, ValueError) as error:
        return str(error)
    return next(iter(refused.values()), "")


def _renumbered(record: EntryRecord, entry_id: int) -> EntryRecord:
    return EntryRecord(
        **{
            entry.name: getattr(record, entry.name)
            for entry in fields(EntryRecord)
            if entry.name != "entry_id"
        },
        entry_id=entry_id,
    )


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
