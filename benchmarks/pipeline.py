"""How long the five nodes need from image to command: hit, miss, after an invalidation.

    .venv/bin/python benchmarks/pipeline.py [--cycles 10000] [--only separate] [--check]

The real nodes in processes of their own, and the four soft ones composed; image pairs, rendered
once, at 100.7 Hz; the physics of arm and drives without a camera. A decision is asked for as soon
as the one before is in force. In the same run: the floor (``floor.py``), the end-to-end baseline
(``baseline.py``) and the cache off, which is a decision whose subtask the cache has never seen.
Floor and baseline are measured before and after, since a shared machine's speed changes. Writes
``build/reports/bench/pipeline.json``; with ``--check`` it exits with 1 and names each figure that
falls short. Warm-ups are left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import floor
import numpy as np

from harness import pipeline_figures, rows
from harness.console import wide_console
from harness.driven import measure
from harness.end_to_end import EndToEnd
from harness.phases import PERIOD_NS, WARM_UP, Phase, period_of
from harness.pipeline_bounds import BOUNDS
from harness.pipeline_table import show
from harness.setting import ros_setting, setting
from kv_action_router.reporting.benchmark import conclude, write
from kv_action_router.ros.arguments import Arguments

CAMERA_RATE = 30.0  # [Hz]


def phases(cycles: int, period_ns: int = PERIOD_NS) -> list[Phase]:
    """Return what is measured in one system; ``cycles`` hits on an idle machine, less of others."""
    fifth, tenth = max(1, cycles // 5), max(1, cycles // 10)
    at_rate = partial(Phase, period_ns=period_ns)
    return [
        at_rate("hit", "hit", cycles),
        at_rate("hit_loaded", "hit", fifth, busy_cores=1),
        at_rate("miss", "miss", fifth, new_subtasks=True),
        at_rate("miss_loaded", "miss", tenth, new_subtasks=True, busy_cores=1),
        at_rate("invalidated", "miss", max(1, cycles // 20), invalidates=True),
        Phase("hit_camera_rate", "hit", tenth, period_ns=period_of(CAMERA_RATE)),
        Phase(
            "camera_rate",
            "hit",
            max(1, cycles // 500),
            period_ns=period_of(CAMERA_RATE),
            hold_s=0.8,
        ),
    ]


class Floors:
    """The floor of each kind of system, measured in parts; of the composed one fewer cycles."""

    def __init__(self, kinds: Sequence[str], cycles: int, folder: Path) -> None:
        self._cycles = {"separate": max(1, cycles), "composed": max(1, cycles // 4)}
        self._folder = folder
        self._found: dict[str, list[rows.Rows]] = {kind: [] for kind in kinds}

    def measure(self) -> None:
        """Measure one more part."""
        for kind, found in self._found.items():
            folder = self._folder / f"floor_{kind}_{len(found)}"
            found.append(floor.measure(self._cycles[kind], folder, composed=kind == "composed"))

    def figures(self) -> dict[str, Any]:
        """Return the figures of all parts together, by kind."""
        return {
            kind: floor.figures(np.concatenate(found), self._cycles[kind] * len(found))
            for kind, found in self._found.items()
        }


def main() -> int:
    """Measure, print and write the figures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=10_000, help="hits on the idle machine")
    parser.add_argument("--frames", type=int, default=200, help="of each end-to-end policy")
    parser.add_argument("--image-rate", type=float, default=100.0, help="in Hz")
    parser.add_argument("--only", choices=("separate", "composed"))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("build/reports/bench/pipeline.json"))
    options = parser.parse_args()
    console = wide_console()
    folder = options.output.with_suffix("")
    kinds = (options.only,) if options.only else ("separate", "composed")
    report: dict[str, Any] = {
        "setting": setting(
            **ros_setting(), cycles=options.cycles, warm_up=WARM_UP, rate=options.image_rate
        )
    }
    floors = Floors(kinds, options.cycles // 2, folder)
    policies = EndToEnd(options.frames // 2)

    def measure_references() -> None:
        floors.measure()
        policies.measure()

    with console.status("floor and end-to-end policies"):
        measure_references()
    for kind in kinds:
        # the composed path is judged by means and a miss's tail: a quarter of the cycles does
        cycles = options.cycles if kind == "separate" else max(1, options.cycles // 4)
        plan = phases(cycles, period_of(options.image_rate))
        with console.status(f"pipeline, {kind}"):
            report[kind] = measure(plan, folder / kind, Arguments(composed=kind == "composed"))
        write(report, options.output)  # a run that is cut short keeps what it has measured
    with console.status("floor and end-to-end policies"):
        measure_references()
    report |= {"floor": floors.figures(), "end_to_end": policies.figures()}
    report["ratios"] = pipeline_figures.ratios(report)
    console.print(show(report))
    return conclude(report, BOUNDS, options.output, console, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
