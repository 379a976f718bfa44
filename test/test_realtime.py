"""What is not permitted is said in one line, and the process runs on."""

from __future__ import annotations

import errno
import gc
import os
import resource
import subprocess
import sys

import pytest

from kv_action_router import realtime


def test_priority_0_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_setscheduler", None)  # a call would raise
    assert realtime.schedule_process(0) == ""


def test_refused_scheduling_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    interval = sys.getswitchinterval()
    line = realtime.schedule_process(60)
    sys.setswitchinterval(interval)
    assert line.startswith("no real-time scheduling (SCHED_FIFO 60): Operation not permitted")
    assert "CAP_SYS_NICE" in line
    assert "\n" not in line
    assert not realtime.schedule_thread(65)


def test_memory_is_not_locked_under_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8 << 20, 8 << 20))
    line = realtime.lock_memory()
    assert "the limit is 8192 KiB" in line


def test_affinity_names_what_is_there() -> None:
    assert realtime.set_affinity([-1]) == ""
    assert "not bound to processors [4000]" in realtime.set_affinity([4000])


def test_garbage_collector_rests_and_resumes() -> None:
    realtime.rest_garbage()
    try:
        assert not gc.isenabled()
        assert gc.get_freeze_count() > 0
    finally:
        realtime.resume_garbage()
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_whole_process_is_scheduled_where_that_is_permitted() -> None:
    """In a process of its own: every thread that is there already, and those made later."""
    program = (
        "import os, threading\n"
        "from kv_action_router import realtime\n"
        "hold = threading.Event()\n"
        "threading.Thread(target=hold.wait, daemon=True).start()\n"
        "line = realtime.schedule_process(5)\n"
        "threading.Thread(target=hold.wait, daemon=True).start()\n"
        "tasks = os.listdir('/proc/self/task')\n"
        "policies = {os.sched_getscheduler(int(task)) for task in tasks}\n"
        "print(len(tasks) >= 3, policies == {os.SCHED_FIFO}, line or realtime.is_realtime())\n"
        "hold.set()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    if "no real-time scheduling" in done.stdout:
        pytest.skip("SCHED_FIFO is not permitted here")
    assert done.stdout.split() == ["True", "True", "True"]
