"""One manager a file: a lock that ends with the process that holds it, however it ends.

The lock file also says what was committed last. The database cannot: cut off or damaged, the end of
its log is no part of it any more, and what is left looks whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from dataclasses import astuple, dataclass
from pathlib import Path

from kv_action_router.errors import StoreInUseError

_PID_SIZE = 16  # a line of that length
_NOTE = struct.Struct("21s21s21s")  # three lines, so that each note takes the place of the last


@dataclass(frozen=True)
class Note:
    """What a file held after a commit.

    Attributes:
        series: number of the database, drawn when it was made.
        commits: since then.
        entries: in the file.
    """

    series: int
    commits: int
    entries: int


class FileLock:
    """Lock on ``<file>.lock``, in which the holder's process id stands, and the last note.

    The lock is the kernel's (``flock``): it is gone when its holder is, so a file that was left
    behind by ``kill -9`` is free. The lock file stays; removing it would race with the next holder.

    Attributes:
        found: note that the last holder has left; None = there is none that can be read.
    """

    def __init__(self, file: Path) -> None:
        """Take the lock.

        Raises:
            StoreInUseError: somebody holds it; names the process.
            OSError: there can be no lock file here.
        """
        self._path = file.with_name(file.name + ".lock")
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            held = os.read(self._descriptor, _PID_SIZE).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            self._descriptor = -1
            if not isinstance(error, BlockingIOError):
                raise
            raise StoreInUseError(
                f"store_path must name a file of this manager alone, got {str(file)!r}, in use by "
                f"pid {held or 'unknown'}: give each robot a robot_id or store_path of its own"
            ) from error
        self.found: Note | None = None
        with contextlib.suppress(OSError):  # a full disk: the lock holds, only the name is missing
            self.found = self._read_note()
            os.pwrite(self._descriptor, f"{os.getpid():<{_PID_SIZE - 1}d}\n".encode(), 0)

    def note(self, note: Note) -> None:
        """Say what was committed, after it was synced; where that cannot be written, nothing."""
        if self._descriptor < 0:
            return
        lines = (f"{number:<20d}\n".encode() for number in astuple(note))
        with contextlib.suppress(OSError):
            os.pwrite(self._descriptor, _NOTE.pack(*lines), _PID_SIZE)

    def release(self) -> None:
        """Let go; no error when that was done before."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _read_note(self) -> Note | None:
        content = os.pread(self._descriptor, _NOTE.size, _PID_SIZE)
        try:
            return Note(*(int(line) for line in _NOTE.unpack(content)))
        except (struct.error, ValueError):
            return None
