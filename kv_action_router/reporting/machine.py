"""What a machine is, as far as figures depend on it."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import psutil

_CPU = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def machine() -> dict[str, Any]:
    """Return processor, cores, memory, kernel and Python of this machine."""
    return {
        "machine": platform.machine(),
        "processor": processor(),
        "virtual": any("hypervisor" in line for line in _cpuinfo() if line.startswith("flags")),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "kernel": platform.release(),
        "governor": _CPU.read_text().strip() if _CPU.is_file() else "not told",
        "python": platform.python_version(),
    }


def processor() -> str:
    """Return the processor's name; empty = not told."""
    for line in _cpuinfo():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return ""


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.is_file() else []
