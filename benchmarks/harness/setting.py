"""Under which conditions a benchmark was run: every report holds this."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

import psutil

from kv_action_router.cli.demo import commit

_CPU = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def setting(**more: Any) -> dict[str, Any]:
    """Return machine, load and software; what a benchmark knows beyond that is added.

    ``load`` is the one-minute average when the benchmark began, ``busy_percent`` what all other
    processes took of all cores in a quarter of a second before it.
    """
    return {
        "commit": commit(),
        "machine": platform.machine(),
        "processor": processor(),
        "virtual": _is_virtual(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "kernel": platform.release(),
        "governor": _CPU.read_text().strip() if _CPU.is_file() else "not told",
        "load": os.getloadavg()[0],
        "busy_percent": psutil.cpu_percent(0.25),
        "python": platform.python_version(),
        "ros_distro": os.environ.get("ROS_DISTRO", "unknown"),
        "realtime": realtime_is_permitted(),
        **more,
    }


def ros_setting() -> dict[str, str]:
    """Return middleware and executor, where ROS is installed."""
    from rclpy.utilities import get_rmw_implementation_identifier

    try:
        from rclpy.experimental import EventsExecutor as Executor
    except ImportError:
        from rclpy.executors import SingleThreadedExecutor as Executor
    return {"rmw": get_rmw_implementation_identifier(), "executor": Executor.__name__}


def processor() -> str:
    """Return the processor's name; empty = not told."""
    for line in _cpuinfo():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return ""


def realtime_is_permitted() -> bool:
    """Return whether this process may use SCHED_FIFO; nothing stays changed."""
    before, parameter = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        os.sched_setscheduler(0, before, parameter)
    except OSError:
        return False
    return True


def interpreter_of_comparisons() -> Path:
    """Return the interpreter that finds what this package is compared with (``make bench``)."""
    return Path(__file__).resolve().parents[2] / ".venv-bench" / "bin" / "python"


def this_interpreter() -> str:
    """Return the interpreter that runs this benchmark."""
    return sys.executable


def _is_virtual() -> bool:
    return any("hypervisor" in line for line in _cpuinfo() if line.startswith("flags"))


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.is_file() else []
