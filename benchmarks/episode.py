"""All five stages around the simulated arm in one process, without ROS: what the pipeline does.

    .venv/bin/python benchmarks/episode.py [--task tighten_m3_screw] [--perception onnx]
                                           [--cycles 20] [--check]

Simulated time, rendered images. A task with screws runs in the cell with screws. Writes
``build/reports/episode.json`` (``episode_<task>.json`` of another task than touch_target,
``episode_onnx.json`` and the like of another perception than segmentation); with
``--check`` it exits with 1 and names each figure that falls short.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("MUJOCO_GL", "egl")

from rich.console import Console
from rich.table import Table

from harness.setting import setting
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.reporting.benchmark import conclude
from kv_action_router.reporting.bounds import Bound, at
from kv_action_router.reporting.statistics import quantiles, share_of
from kv_action_router.simulation.config import cell_of
from kv_action_router.simulation.episode import Cycle, Episode, EpisodeConfig
from kv_action_router.simulation.sight import rendered_images
from kv_action_router.tasks.stages import TaskDefinition

COMMON = (
    Bound("failed cycles", at("failed"), "==", 0),
    Bound("peak force [N]", at("peak_force_n"), "<=", 30.0),
    Bound("task hits over decisions, last half", at("late_hit_rate"), ">=", 0.8),
    Bound("false hits", at("false_hits"), "==", 0),
)
TOUCH = (
    Bound("touch error max [mm]", at("touch_error_mm", "max"), "<=", 5.0),
    Bound("tracking error [mrad]", at("tracking_error_mrad"), "<=", 10.0),
)
SCREW = (
    Bound("torque off, worst of all [share]", at("torque_off"), "<=", 0.10),
    Bound("search [mm]", at("longest_search_mm"), "<=", 40.0),
)
TOUCHING, SCREWING = "touch_target", "tighten_m3_screw"
SPINDLE = "spindle_joint"


def summarize(cycles: list[Cycle]) -> dict[str, Any]:
    """Return the figures of a run."""
    late = cycles[len(cycles) // 2 :]
    succeeded = sum(cycle.success for cycle in cycles)
    false = sum(cycle.false_hits for cycle in cycles)
    return {
        "cycles": len(cycles),
        "failed": len(cycles) - succeeded,
        "rates": {
            "cycles": share_of(succeeded, len(cycles)),
            "task_hits": hits_of(cycles),
            "late_task_hits": hits_of(late),
            "false_hits": share_of(false, max(false, sum(cycle.task_hits for cycle in cycles))),
        },
        "decisions": sum(cycle.decisions for cycle in cycles),
        "task_hits": sum(cycle.task_hits for cycle in cycles),
        "behavior_hits": sum(cycle.behavior_hits for cycle in cycles),
        "false_hits": false,
        "late_hit_rate": sum(cycle.task_hits for cycle in late)
        / max(1, sum(cycle.decisions for cycle in late)),
        "touch_error_mm": quantiles(
            [cycle.touch_error * 1e3 for cycle in cycles], p50=0.5, p95=0.95, max=1.0
        ),
        "peak_force_n": max(cycle.peak_force for cycle in cycles),
        "tracking_error_mrad": max(cycle.tracking_error for cycle in cycles) * 1e3,
        "longest_cycle_s": max(cycle.duration for cycle in cycles),
        "reasons": [cycle.reason for cycle in cycles if not cycle.success],
    }


def hits_of(cycles: list[Cycle]) -> dict[str, Any]:
    """Return task hits over decisions, with exact bounds."""
    return share_of(sum(c.task_hits for c in cycles), sum(c.decisions for c in cycles))


def of_screws(cycles: list[Cycle], commanded: float) -> dict[str, Any]:
    """Return the figures of a run that drives screws, each list with one number a cycle."""
    torque = [cycle.final_torque for cycle in cycles]
    stages = dict.fromkeys(name for cycle in cycles for name in cycle.stages)
    return {
        "commanded_torque_nm": commanded,
        "final_torque_nm": torque,
        "advance_mm": [cycle.advance * 1e3 for cycle in cycles],
        "search_mm": [cycle.search * 1e3 for cycle in cycles],
        "torque_off": max(abs(value / commanded - 1.0) for value in torque),
        "longest_search_mm": max(cycle.search for cycle in cycles) * 1e3,
        "stage_s": {
            name: quantiles(
                [cycle.stages[name] for cycle in cycles if name in cycle.stages], p50=0.5, max=1.0
            )
            for name in stages
        },
    }


def commanded_torque(task: TaskDefinition) -> float:
    """Return the largest torque that a task's stages let the spindle give [N m]."""
    limits = [
        stage.execution[SPINDLE]["stage_effort_limit"]
        for stage in task.stages
        if SPINDLE in stage.execution
    ]
    return max(limits)


def main() -> int:
    """Run the cycles, print and write the figures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=(TOUCHING, SCREWING), default=TOUCHING)
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--perception", choices=("segmentation", "onnx"), default="segmentation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, help="build/reports/episode.json, or of the task")
    options = parser.parse_args()
    screws = options.task == SCREWING
    config = EpisodeConfig(
        task=options.task,
        encoding=EncoderConfig(perception=options.perception),
        simulation=cell_of("screw" if screws else "touch", seed=options.seed),
    )
    name = "episode" if options.task == TOUCHING else f"episode_{options.task}"
    if options.perception != "segmentation":
        name += f"_{options.perception}"
    output = options.output or Path(f"build/reports/{name}.json")
    with Episode(rendered_images, config) as episode:
        cycles = [episode.touch() for _ in range(options.cycles)]
    figures = summarize(cycles)
    if screws:
        figures |= of_screws(cycles, commanded_torque(episode.task))
    figures["encode_image_cpu_ms"] = 1e-3 * episode.times.table()["encode image"][1]
    title = f"{options.task}, {options.perception}: {options.cycles} cycles, seed {options.seed}"
    table = Table("figure", "value", title=title)
    for name, value in figures.items():
        table.add_row(name, json.dumps(value))
    console = Console()
    console.print(table)
    figures["setting"] = setting(
        task=options.task,
        perception=options.perception,
        cycles=options.cycles,
        seed=options.seed,
    )
    bounds = (*COMMON, *(SCREW if screws else TOUCH))
    return conclude(figures, bounds, output, console, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
