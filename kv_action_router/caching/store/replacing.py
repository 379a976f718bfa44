"""Puts a new database in the place of a damaged one, which is kept aside.

The new one is written under another name, synced, and then called ``.ready``: from there on, the
swap is finished at the next start wherever it is interrupted.
"""

from __future__ import annotations

import calendar
import os
import time
from pathlib import Path

from kv_action_router.caching.store import schema
from kv_action_router.caching.store.salvage import Salvaged
from kv_action_router.caching.store.tables import fill

KEPT_ASIDE = 3  # damaged files of one store; older ones are removed
_STAMP = "%Y%m%dT%H%M%S"  # of their names, UTC


def prepare(path: Path, found: Salvaged) -> None:
    """Write a new database, whole, beside a damaged one.

    Raises:
        OSError, sqlite3.Error: there is no room for it; nothing was changed.
    """
    fresh = path.with_name(path.name + ".new")
    remove(fresh)
    try:
        connection = schema.connect(fresh)
        try:
            fill(connection, found)
        finally:
            connection.close()
        with fresh.open("rb") as file:
            os.fsync(file.fileno())
        fresh.rename(_ready(path))
        schema.sync_folder(path.parent)
    finally:
        remove(fresh)


def finish(path: Path) -> Path | None:
    """Put a new database, once complete, in the place of a damaged one; repeatable at any point.

    Returns:
        Where the damaged file is kept; None = there was nothing to do.
    """
    ready = _ready(path)
    if not ready.exists():
        return None
    aside = name_aside(path)
    log = path.with_name(path.name + "-wal")
    # The log goes first: it must never stand beside a database that it is not of.
    if log.exists():
        log.rename(aside.with_name(aside.name + "-wal"))
    if path.exists():
        path.rename(aside)
    ready.rename(path)
    schema.sync_folder(path.parent)
    for file in _aside(path)[:-KEPT_ASIDE]:
        remove(file)
    return aside


def name_aside(path: Path) -> Path:
    """Return a name that no file has, later ones after earlier ones.

    The system's clock may have been set back since the last one, or begin in 1970 at each start:
    the newest file must not pass for the oldest, which is removed.
    """
    now_ns = time.time_ns()
    if kept := _aside(path):
        now_ns = max(now_ns, _named_ns(kept[-1]) + 1)
    stamp = time.strftime(_STAMP, time.gmtime(now_ns // 10**9))
    return path.with_name(f"{path.name}.damaged-{stamp}.{now_ns % 10**9:09d}Z")


def _aside(path: Path) -> list[Path]:
    """Return the damaged files that are kept, oldest first; others' of such names are not ours."""
    return sorted(
        file for file in path.parent.glob(f"{path.name}.damaged-*Z") if _named_ns(file) >= 0
    )


def _named_ns(file: Path) -> int:
    """Return the time in a damaged file's name [ns]; -1 = it is no such name."""
    seconds, _, rest = file.name.rpartition(".damaged-")[2].rstrip("Z").partition(".")
    try:
        return calendar.timegm(time.strptime(seconds, _STAMP)) * 10**9 + int(rest)
    except ValueError:
        return -1


def remove(path: Path) -> None:
    """Remove a database with its log, if it is there."""
    for name in (path.name, path.name + "-wal", path.name + "-shm"):
        path.with_name(name).unlink(missing_ok=True)


def _ready(path: Path) -> Path:
    return path.with_name(path.name + ".ready")
