"""Something comes too near at a random moment of the task, seen by the camera: what the arm does.

    .venv/bin/python benchmarks/hazard.py [--runs 20] [--seed 1] [--check]

All five stages in one process, simulated time, rendered images. At a random moment of the approach
a box is put beside the target, where the tool is going, on a side that leaves the target in view;
and taken away a while after the arm has backed off. A moment at which the arm is so near already
that it could not stand any more is drawn again. Where the rest of the way leads past the box, the
arm goes on slowly instead: those are counted apart, and more are drawn until ``--runs`` stood in
the way. Measured:
how far the arm backs off, the horn, the time from the first image that shows the box to the
decision to leave the path, and from the first image without it to the resumed motion; that nothing
was touched, and how near the arm came to the box. Writes ``build/reports/hazard.json``; with
``--check`` it exits with 1 and names each figure that falls short.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ.setdefault("MUJOCO_GL", "egl")

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from kv_action_router.contracts import FloatArray, TaskStatus
from kv_action_router.errors import InputError
from kv_action_router.reporting.benchmark import conclude
from kv_action_router.reporting.bounds import Bound, at
from kv_action_router.reporting.statistics import quantiles, share_of
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.cell import Samples
from kv_action_router.simulation.episode import Episode, EpisodeConfig
from kv_action_router.simulation.sight import rendered_images

SIZE: FloatArray = np.array([0.08, 0.08, 0.20])  # [m] of the box
LONGEST = 25.0  # [s] of a task
EARLIEST, LATEST = 0.08, 0.55  # [s] after the task's beginning at which the box comes
BESIDE_TARGET = 0.021  # [m] between the target's middle and the box
REACTION = 0.15  # [s] an image's period, its way through the stages, the decision
DECELERATION = 4.0  # [m/s^2] of the tip
SPARE = 0.02  # [m]
DRAWS = 5  # at most as many boxes as hazards that are wanted, times this
BESIDE = 0.4  # [s] that the box stays once the arm waits
BOUNDS = (
    Bound("hazards that interrupted the task", at("interrupted"), ">=", 20),
    Bound("boxes that were touched", at("touched"), "==", 0),
    Bound("distance that was kept, least [cm]", at("kept_cm", "min"), ">=", 1.0),
    Bound("tasks that did not end", at("failed"), "==", 0),
    Bound("stages begun again after they ended", at("restarted"), "==", 0),
    Bound("backed off least [cm]", at("backed_off_cm", "min"), ">=", 9.0),
    Bound("backed off most [cm]", at("backed_off_cm", "max"), "<=", 11.0),
    Bound("runs without the horn", at("silent"), "==", 0),
    Bound("resumed after the first image without it, max [ms]", at("resume_ms", "max"), "<=", 100),
)


@dataclass
class Run:
    """What came of one hazard; times in s, NaN = it did not come to that."""

    moment: float
    placed: bool = False
    nearest: float = math.inf
    touched: str = ""
    interrupted: bool = False
    ended: bool = False
    backed_off: float = math.nan
    horn: list[float] = field(default_factory=list)
    first_command: float = math.nan
    resumed: float = math.nan
    stages: list[str] = field(default_factory=list)
    reason: str = ""


class Hazard:
    """Puts the box in, watches, takes it away. One run."""

    def __init__(self, episode: Episode, moment: float, side: float) -> None:
        self.run = Run(moment)
        self._side = side
        self._episode = episode
        self._model = RobotModel.load(episode.config.simulation.robot)
        self._begin_ns = episode.robot.now_ns
        self._placed = self._removed = False
        self._seen_ns = self._gone_ns = self._leave_ns = 0
        self._stood: FloatArray | None = None

    def __call__(self, samples: Samples) -> None:
        """Look at one step."""
        episode, run = self._episode, self.run
        now_ns, stack = samples.now_ns, episode.synthesis.synthesizer.tasks.stack
        run.horn += [
            output.value
            for output in episode.injection.controller.command.auxiliary
            if output.name == "horn"
        ]
        if not stack.active:
            return
        if samples.image_due:
            if self._placed and not self._seen_ns:
                self._seen_ns = now_ns
            if self._removed and not self._gone_ns:
                self._gone_ns = now_ns
        inserted = len(stack.frames) > 1
        name = f"{stack.frame.definition.name}/{stack.stage.name}"
        if not run.stages or run.stages[-1] != name:
            run.stages.append(name)
        box = episode.robot.plant.box
        if box.present:
            run.nearest = min(run.nearest, box.distance())
            run.touched = run.touched or box.touched_by
        if not self._placed and (now_ns - self._begin_ns) * 1e-9 >= run.moment:
            self._placed = run.placed = self._place()
        if inserted and not run.interrupted:
            run.interrupted = True
            run.first_command = (now_ns - self._seen_ns) * 1e-9
        if inserted and stack.frame.begun and self._stood is None:
            self._stood = episode.robot.plant.tip.copy()
        if inserted and stack.stage.name == "wait" and not stack.awaiting and not self._leave_ns:
            self._leave_ns = now_ns + round(BESIDE * 1e9)
            run.backed_off = float(np.linalg.norm(episode.robot.plant.tip - self._stood))
        if self._leave_ns and not self._removed and now_ns >= self._leave_ns:
            episode.robot.plant.box.remove()
            self._removed = True
        goes_on = stack.status == TaskStatus.RUNNING and not stack.awaiting and not inserted
        if self._gone_ns and goes_on and math.isnan(run.resumed):
            run.resumed = (now_ns - self._gone_ns) * 1e-9

    def _place(self) -> bool:
        """Put the box beside the target; return whether the arm can still stand before it."""
        plant = self._episode.robot.plant
        jacobian = self._model.jacobian(np.array(plant.position))
        speed = float(np.linalg.norm((jacobian @ plant.velocity)[:3]))
        away = np.array((math.cos(self._side), math.sin(self._side)))
        x, y = plant.target[:2] + away * (BESIDE_TARGET + 0.5 * SIZE[0])
        try:
            plant.place_box(float(x), float(y), SIZE, self._side)
        except InputError:
            return False
        needed = speed * REACTION + speed**2 / (2.0 * DECELERATION) + SPARE
        if plant.box.distance() >= needed:
            return True
        plant.box.remove()
        return False


def one(seed: int, moment: float, side: float) -> Run:
    """Run the task once with a hazard at a moment [s], on a side of the target [rad]."""
    config = EpisodeConfig()
    simulation = dataclasses.replace(config.simulation, seed=seed)
    with Episode(rendered_images, dataclasses.replace(config, simulation=simulation)) as episode:
        episode.run(config.settle)
        episode.robot.place_target()
        episode.synthesis.start(episode.task, "hazard", episode.robot.now_ns)
        hazard = Hazard(episode, moment, side)
        episode.on_step = hazard
        stack = episode.synthesis.synthesizer.tasks.stack
        stop = episode.injection.controller.modes.stop
        end_ns = episode.robot.now_ns + round(LONGEST * 1e9)
        while stack.active and not stop.engaged and episode.robot.now_ns < end_ns:
            episode.step()
        hazard.run.ended = stack.outcome.success
        hazard.run.reason = stack.outcome.message or stop.reason
        return hazard.run


def restarts(stages: list[str], task: str) -> int:
    """Return how many stages of a task were begun again after a later one had begun."""
    own = [name for name in stages if name.startswith(f"{task}/")]
    order = list(dict.fromkeys(own))
    places = [order.index(name) for name in own]
    return sum(after < before for before, after in pairwise(places))


def summarize(runs: list[Run], task: str) -> dict[str, Any]:
    """Return the figures of all runs."""
    seen = [run for run in runs if run.interrupted]

    def spread(values: list[float]) -> dict[str, float | None]:
        known = [value for value in values if not math.isnan(value)]
        return quantiles(known, min=0.0, p50=0.5, max=1.0)

    return {
        "runs": len(runs),
        "boxes": sum(run.placed for run in runs),
        "interrupted": len(seen),
        "passed_slowly": sum(run.placed and not run.interrupted for run in runs),
        "touched": sum(bool(run.touched) for run in runs),
        "rates": {
            "ended": share_of(sum(run.ended for run in runs), len(runs)),
            "touched": share_of(sum(bool(run.touched) for run in runs), len(runs)),
        },
        "kept_cm": spread([run.nearest * 1e2 for run in runs if run.placed]),
        "failed": sum(not run.ended for run in runs),
        "restarted": sum(restarts(run.stages, task) for run in runs),
        "silent": sum(1.0 not in run.horn or 0.0 not in run.horn for run in seen),
        "backed_off_cm": spread([run.backed_off * 1e2 for run in seen]),
        "first_command_ms": spread([run.first_command * 1e3 for run in seen]),
        "resume_ms": spread([run.resumed * 1e3 for run in seen]),
        "reasons": [run.reason for run in runs if not run.ended],
        "each": [asdict(run) for run in runs],
    }


def main() -> int:
    """Run the hazards, print and write the figures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("build/reports/hazard.json"))
    options = parser.parse_args()
    random, runs = np.random.default_rng(options.seed), []  # type: ignore[var-annotated]
    with threadpool_limits(1):
        while (
            sum(run.interrupted for run in runs) < options.runs and len(runs) < DRAWS * options.runs
        ):
            moment = float(random.uniform(EARLIEST, LATEST))
            side = float(random.uniform(0.5 * math.pi, 1.5 * math.pi))  # the camera sees the rest
            runs.append(one(options.seed + len(runs), moment, side))
    report = summarize(runs, EpisodeConfig().task)
    table = Table("figure", "value", title=f"{options.runs} hazards, seed {options.seed}")
    for name, value in report.items():
        if name != "each":
            table.add_row(name, json.dumps(value))
    console = Console()
    console.print(table)
    return conclude(report, BOUNDS, options.output, console, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
