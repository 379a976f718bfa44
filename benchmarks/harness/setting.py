"""Under which conditions a benchmark was run: every report holds this."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import psutil

from kv_action_router.cli.demo import commit
from kv_action_router.reporting.machine import machine


def setting(**more: Any) -> dict[str, Any]:
    """Return machine, load and software; what a benchmark knows beyond that is added.

    ``load`` is the one-minute average when the benchmark began, ``busy_percent`` what all other
    processes took of all cores in a quarter of a second before it.
    """
    return {
        "commit": commit(),
        **machine(),
        "load": os.getloadavg()[0],
        "busy_percent": psutil.cpu_percent(0.25),
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
