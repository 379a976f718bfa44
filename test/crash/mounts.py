"""Small and read-only file systems, where this process may mount one."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_READ_ONLY, _REMOUNT, _DETACH = 1, 32, 2


class CannotMountError(Exception):
    """There is no permission to mount; the message is the reason."""


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    """Mount a file system in memory on a folder for as long as the context lasts.

    Raises:
        CannotMountError: it is not allowed here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _mount(folder, options, 0)
    try:
        yield
    finally:
        ctypes.CDLL(None).umount2(bytes(folder), _DETACH)


def make_read_only(folder: Path) -> None:
    """Let nobody write into a file system that was mounted here, root included."""
    _mount(folder, "", _REMOUNT | _READ_ONLY)


def fill(folder: Path) -> Path:
    """Fill a file system to the last byte; return the file that does it."""
    path = folder / "filler"
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096) == 4096:
                pass
        except OSError:
            pass
    return path


def _mount(folder: Path, options: str, flags: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(b"tmpfs", bytes(folder), b"tmpfs", flags, options.encode()) != 0:
        raise CannotMountError(f"mount: {os.strerror(ctypes.get_errno())}")
