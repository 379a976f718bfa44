"""One manager a file: a lock that ends with the process that holds it, however it ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from kv_action_router.errors import StoreInUseError


class FileLock:
    """Lock on ``<file>.lock``, in which the holder's process id stands.

    The lock is the kernel's (``flock``): it is gone when its holder is, so a file that was left
    behind by ``kill -9`` is free. The lock file stays; removing it would race with the next holder.
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
            held = os.read(self._descriptor, 32).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            self._descriptor = -1
            if not isinstance(error, BlockingIOError):
                raise
            raise StoreInUseError(
                f"store_path must name a file of this manager alone, got {str(file)!r}, in use by "
                f"pid {held or 'unknown'}: give each robot a robot_id or store_path of its own"
            ) from error
        with contextlib.suppress(OSError):  # a full disk: the lock holds, only the name is missing
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let go; no error when that was done before."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
