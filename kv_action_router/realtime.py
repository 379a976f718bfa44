"""Real-time set-up of a process; what is not permitted is said in one line and left out.

A FIFO thread beside normal ones in one Python process gains nothing: the interpreter lock hands its
priority down to whoever holds it. So the *whole process* is scheduled first, the loop thread above.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

SWITCH_INTERVAL = 0.0002  # [s] longest time that one Python thread keeps another waiting

_MCL_CURRENT, _MCL_FUTURE, _MCL_ONFAULT = 1, 2, 4


def schedule_process(priority: int) -> str:
    """Put every thread of this process under SCHED_FIFO; threads made later inherit it.

    Args:
        priority: 1 to 99; 0 changes nothing.

    Returns:
        Why it was not granted, for people; empty when it was, or was not asked for.
    """
    if priority <= 0:
        return ""
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        for task in Path("/proc/self/task").iterdir():
            try:
                os.sched_setscheduler(int(task.name), os.SCHED_FIFO, os.sched_param(priority))
            except ProcessLookupError:
                continue  # ended meanwhile
    except (PermissionError, OSError) as error:
        return (
            f"no real-time scheduling (SCHED_FIFO {priority}): {error.strerror or error}; runs on "
            "with normal scheduling. Grant it by CAP_SYS_NICE, or by an rtprio line in "
            "/etc/security/limits.d"
        )
    return ""


def schedule_thread(priority: int) -> bool:
    """Put the calling thread under SCHED_FIFO; return whether it was granted."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(min(99, priority)))
    except (PermissionError, OSError):
        return False
    return True


def is_realtime() -> bool:
    """Return whether the calling thread is under a real-time policy."""
    return os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR)


def lock_memory() -> str:
    """Keep present and future pages in memory once they were touched.

    Returns:
        Why it was not granted, for people; empty when it was.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if limit != resource.RLIM_INFINITY and os.geteuid() != 0:
        # Granted under a limit, it would make a later allocation fail: worse than a page fault.
        return (
            f"memory is not locked: the limit is {limit // 1024} KiB, not unlimited; runs on. "
            "Grant it by a memlock line in /etc/security/limits.d"
        )
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(_MCL_CURRENT | _MCL_FUTURE | _MCL_ONFAULT) != 0:
        return f"memory is not locked: {os.strerror(ctypes.get_errno())}; runs on"
    return ""


def set_affinity(processors: Sequence[int]) -> str:
    """Bind every thread of this process to some processors; a negative number = all.

    Returns:
        Why it was not done, for people; empty when it was, or was not asked for.
    """
    wanted = {number for number in processors if number >= 0}
    if not wanted:
        return ""
    try:
        for task in Path("/proc/self/task").iterdir():
            try:
                os.sched_setaffinity(int(task.name), wanted)
            except ProcessLookupError:
                continue
    except OSError as error:
        there = ", ".join(str(number) for number in sorted(os.sched_getaffinity(0)))
        return f"not bound to processors {sorted(wanted)}: {error.strerror}; there are {there}"
    return ""


def rest_garbage() -> None:
    """Switch the cyclic collector off: a pass takes milliseconds and holds the lock."""
    gc.collect()
    gc.freeze()
    gc.disable()


def resume_garbage() -> None:
    """Switch the cyclic collector on again and let it do what was left."""
    gc.enable()
    gc.unfreeze()
    gc.collect()
