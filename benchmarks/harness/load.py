"""Load on the machine, made on purpose: processes that keep cores or the memory bus busy."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

# The starter may be under SCHED_FIFO, which children inherit: load is what ordinary programs are.
_ORDINARY = "import os; os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))\n"
_SPIN = _ORDINARY + "while True: pass"
_COPY = _ORDINARY + (
    "import numpy\n"
    "source = numpy.ones({size} // 8); target = numpy.empty_like(source)\n"
    "print('ready', flush=True)\n"
    "while True: numpy.copyto(target, source)"
)
_COPIED = 256 * 1024 * 1024  # [bytes] larger than any cache


def all_cores() -> int:
    """Return the number of cores."""
    return os.cpu_count() or 1


@contextlib.contextmanager
def busy_cores(count: int) -> Iterator[None]:
    """Keep some cores busy with a process of normal priority each."""
    with _processes([_SPIN] * count):
        yield


@contextlib.contextmanager
def busy_memory(count: int) -> Iterator[None]:
    """Let some processes of normal priority copy memory without a pause."""
    with _processes([_COPY.format(size=_COPIED)] * count) as started:
        for process in started:
            assert process.stdout is not None  # asked for below
            process.stdout.readline()
        yield


@contextlib.contextmanager
def _processes(programs: list[str]) -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    try:
        for program in programs:
            command = [sys.executable, "-P", "-c", program]
            started.append(subprocess.Popen(command, stdout=subprocess.PIPE))
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()
