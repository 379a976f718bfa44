"""The end-to-end policies that a pipeline is compared with, in a process of their own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from harness.setting import interpreter_of_comparisons
from kv_action_router.reporting.statistics import distribution

POLICIES = ("eager_320x240", "onnxruntime_320x240", "eager_224x224", "onnxruntime_224x224")
_PROGRAM = Path(__file__).resolve().parents[1] / "baseline.py"
_TIMEOUT_S = 600.0


class EndToEnd:
    """Times of each policy, measured in parts.

    Where they cannot be run (``make bench`` installs what they need), their figures say why.
    """

    def __init__(self, frames: int) -> None:
        self._frames = max(1, frames)
        self._times: dict[str, list[float]] = {name: [] for name in POLICIES}
        self._about: dict[str, dict[str, Any]] = {name: {} for name in POLICIES}

    def measure(self) -> None:
        """Measure one more part of each policy."""
        try:
            found = self._run()
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            trouble = str(error).strip().splitlines()[-1]
            self._about = {name: {"trouble": trouble} for name in POLICIES}
            return
        for name, policy in found.items():
            self._times[name] += policy.pop("times_ms")
            self._about[name] = policy

    def figures(self) -> dict[str, Any]:
        """Return times a frame [ms] and size of each policy, or its trouble."""
        figures = {name: dict(about) for name, about in self._about.items()}
        for name, times in self._times.items():
            if times:
                figures[name]["ms"] = distribution(times)
        return figures

    def _run(self) -> dict[str, Any]:
        command = [str(interpreter_of_comparisons()), "-P", str(_PROGRAM), *POLICIES]
        done = subprocess.run(
            [*command, "--frames", str(self._frames)],
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
        if done.returncode:
            raise ValueError(done.stderr or f"{_PROGRAM.name} ended with code {done.returncode}")
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found
