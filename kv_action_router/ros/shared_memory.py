"""Shared memory that killed processes leave behind: Fast DDS frees it at an orderly end only.

Needs no ROS.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

_FOLDER = Path("/dev/shm")
_PREFIXES = ("fastdds_", "fastrtps_")  # the second up to Jazzy
_LOCK = "_el"


def segments(folder: Path = _FOLDER) -> set[str]:
    """Return the names of Fast DDS's lock files, one a segment."""
    if not folder.is_dir():
        return set()
    names = {file.name for file in folder.iterdir()}
    return {name for name in names if name.startswith(_PREFIXES) and name.endswith(_LOCK)}


def opened_here(names: set[str]) -> set[str]:
    """Return which of these segments this process has open: they live as long as it does."""
    mine = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            mine.add(descriptor.readlink().name)
    return names & mine


def remove_orphans(before: set[str], folder: Path = _FOLDER) -> None:
    """Remove the segments that appeared since ``before`` and whose owner is dead.

    Each living owner holds a lock on its segment's lock file, so a lock that can be had proves that
    nobody uses the segment.
    """
    for name in segments(folder) - before:
        with contextlib.suppress(OSError):
            lock = os.open(folder / name, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                segment = name.removesuffix(_LOCK)
                for file in (segment, f"sem.{segment}_mutex", name):
                    (folder / file).unlink(missing_ok=True)
            finally:
                os.close(lock)


@contextlib.contextmanager
def without_orphans() -> Iterator[None]:
    """Remove what processes that were killed meanwhile have left behind."""
    before = segments()
    try:
        yield
    finally:
        remove_orphans(before)
