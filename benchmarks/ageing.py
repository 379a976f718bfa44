"""48 h in which the drives age, with and without calibration: what it does to the cache's hits.

    .venv/bin/python benchmarks/ageing.py [--hours 48] [--seed 1] [--check]

All stages around the simulated arm with its physics, in simulated time; efforts are commanded.
The drives age at the pace of years: torque constant, friction and resistance go on by two hours
between two checkpoints, and the windings warm to what the work asks of them. At each checkpoint the
arm runs a few cycles of ``touch_target``. Nothing else is scripted: an aged drive gives less than
it is sent, the arm strays, and a motion that strays from its path by more than its stage's
``path_tolerance`` is a false hit; entries lose their confidence, and what is planned anew strays
too. One arm is not calibrated before the end; the other is after every two hours.

Writes ``build/reports/ageing.json``; with ``--check`` it exits with 1 and names each figure that
falls short.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from harness.setting import setting
from kv_action_router.contracts import SLOT, FloatArray
from kv_action_router.encoding.warm_up import limit_threads
from kv_action_router.monitoring.calibration.calibration import CalibrationReport, DriveCalibration
from kv_action_router.reporting.benchmark import conclude
from kv_action_router.reporting.bounds import Bound, at
from kv_action_router.reporting.statistics import share_of
from kv_action_router.robots.execution_values import load_execution_value
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.cell import RobotCell, Samples
from kv_action_router.simulation.episode import Episode, EpisodeConfig
from kv_action_router.simulation.shells.injection import execution_update
from kv_action_router.simulation.sight import TrueTarget

NEVER, ALWAYS = "not calibrated", "every 2 h"
PERIOD = 2  # h between two checkpoints, and of the calibration
FILLING = 6  # cycles with new drives, from an empty cache
CYCLES = 3  # at each checkpoint
AFTERWARDS = 10  # cycles after the last calibration
WINDOW = 8  # h at the beginning and at the end that are compared
SETTLED = 6  # cycles at the end that tell whether the hits are back
# Pace of years: half of the drives lose more than a third of their torque in 48 h.
WEAR = {"torque_constant_loss": 0.01, "friction_rise": 0.06, "resistance_rise": 0.002}

BOUNDS = (
    # As the monitor's own row, hit_rate_fallen: less is no decay.
    Bound("decay of behavior hits without calibration", at(NEVER, "decay"), ">=", 0.15),
    Bound("hits seen to decay by the monitor", at(NEVER, "hit_rate_fallen"), ">=", 1),
    Bound("behavior hits after the fit, over those at first", at(NEVER, "recovered"), ">=", 0.95),
    Bound("behavior hits with calibration, over those at first", at(ALWAYS, "kept"), ">=", 0.95),
    Bound("error of fitted torque constants", at(NEVER, "constant_error"), "<=", 0.02),
    Bound("the same, calibrated all along", at(ALWAYS, "constant_error"), "<=", 0.02),
    Bound("drives of six that were fitted after 48 h", at(NEVER, "fitted"), ">=", 5),
    Bound("tasks that failed, calibrated all along", at(ALWAYS, "failed"), "==", 0),
)


@dataclass
class Checkpoint:
    """What the cycles at one age came to.

    Attributes:
        hours: of age.
        decisions: of all stages.
        hits: of the behavior layer among them: motions that were reused and did what they should.
        false_hits: motions that were reused and did not.
        strayed: largest distance from the set-point [rad].
        failed: tasks.
        torque_share: of the torque constant that is left, weakest drive.
        compensated: effort sent over the one that should be given, weakest drive.
        temperature: of the warmest winding [degC].
        fallen: events of the monitor's row ``hit_rate_fallen``.
    """

    hours: float
    decisions: int = 0
    hits: int = 0
    false_hits: int = 0
    strayed: float = 0.0
    failed: int = 0
    torque_share: float = 1.0
    compensated: float = 1.0
    temperature: float = 0.0
    fallen: int = 0


@dataclass
class Course:
    """One arm's 48 hours.

    Attributes:
        checkpoints: from new drives to old ones.
        afterwards: decisions and hits in each cycle after the last calibration.
        strayed: after the last calibration, largest distance from the set-point [rad].
        fitted: drives that the last calibration fitted or found unchanged.
        constant_error: of the torque constants in force at the end, of the fitted drives.
        said: by the last calibration.
        took: computing time of the last fit [s].
    """

    checkpoints: list[Checkpoint] = field(default_factory=list)
    afterwards: list[tuple[int, int]] = field(default_factory=list)
    strayed: float = 0.0
    fitted: int = 0
    constant_error: float = 0.0
    said: str = ""
    took: float = 0.0


class AgeingArm:
    """The episode of one arm, and what makes it older and calibrates it."""

    def __init__(self, seed: int) -> None:
        """Build everything with new drives."""
        config = EpisodeConfig()
        simulation = dataclasses.replace(config.simulation, seed=seed, **WEAR)
        self.episode = Episode(
            lambda _plant, _config: TrueTarget(seed),
            dataclasses.replace(config, simulation=simulation),
        )
        robot = RobotModel.load(simulation.robot)
        self.calibration = DriveCalibration(robot, load_execution_value(simulation.robot))
        assert isinstance(self.episode.robot, RobotCell)
        self.plant = self.episode.robot.plant
        self._losses: FloatArray = np.zeros(robot.n)  # sum of squared currents [A^2]
        self._drive_samples = 0
        self.episode.on_step = self._count_losses

    def run(self, hours: float, cycles: int) -> Checkpoint:
        """Run cycles at an age."""
        checkpoint = Checkpoint(hours)
        before = self._counted()
        for _ in range(cycles):
            cycle = self.episode.touch()
            checkpoint.strayed = max(checkpoint.strayed, cycle.tracking_error)
            checkpoint.failed += not cycle.success
            checkpoint.fallen += sum("answers less often" in text for text in cycle.reports)
            self.episode.synthesis.decisions.clear()
        after = self._counted()
        counts = [new - old for new, old in zip(after, before, strict=True)]
        checkpoint.decisions, checkpoint.hits, checkpoint.false_hits = counts
        limits = self.episode.injection.controller.drives.limits
        checkpoint.torque_share = float(self.plant.wear.torque_share.min())
        checkpoint.compensated = max(limits.effort_scale)
        checkpoint.temperature = float(self.plant.drives.thermal.temperature.max())
        return checkpoint

    def grow_old(self, hours: float) -> None:
        """Let the time pass until an age: the work goes on as it did, and the windings with it."""
        passed = (hours - self.plant.wear.hours) * 3600.0
        mean = self._losses / max(1, self._drive_samples) * self.plant.wear.resistance
        self.plant.drives.thermal.step(mean, passed)
        self._losses, self._drive_samples = np.zeros(len(mean)), 0
        self.plant.grow_old(hours)
        self.episode.monitoring.collector.clear()  # hours on, what was kept is too old to count

    def calibrate(self) -> CalibrationReport:
        """Fit what was collected; let cache and injector have what comes of it."""
        collector, manager = self.episode.monitoring.collector, self.episode.caching.manager
        value = manager.execution_value()
        assert value is not None
        report = self.calibration.fit(collector.rows(), value)
        if report.value is not None:
            manager.apply(execution_update(report.value, report.value.provenance))
            self.episode.injection.hear([], manager.execution_value())
        return report

    def constant_error(self, report: CalibrationReport) -> float:
        """Return the largest error of the fitted drives' torque constants in force."""
        value = self.episode.injection.controller.drives.limits.value
        inside = value.slots[:, SLOT["torque_constant"]] / self.plant.wear.torque_constant - 1.0
        fitted = ["torque_constant" in fit.slots for fit in report.fits]
        return float(np.abs(inside[fitted]).max(initial=0.0))

    def _counted(self) -> tuple[int, int, int]:
        """Return decisions, motions that were reused and did what they should, and false hits."""
        manager = self.episode.caching.manager
        task = manager.counted.of_task(manager.config.own_domain)
        behavior = manager.counted.of_behavior(manager.config.own_domain)
        return task.decisions, behavior.hits, behavior.false_hits

    def _count_losses(self, samples: Samples) -> None:
        if samples.drives is not None:
            self._losses = self._losses + np.square(samples.drives.current)
            self._drive_samples += 1


def run(name: str, hours: int, seed: int) -> Course:
    """Run one arm's hours."""
    limit_threads()
    arm, course = AgeingArm(seed), Course()
    with arm.episode:
        arm.run(0.0, FILLING)
        for age in range(0, hours + 1, PERIOD):
            arm.grow_old(float(age))
            course.checkpoints.append(arm.run(float(age), CYCLES))
            if name == ALWAYS:
                arm.calibrate()
        if name == NEVER:
            begun = time.thread_time()
            report = arm.calibrate()
            course.took = time.thread_time() - begun
            course.said = str(report)
        for _ in range(AFTERWARDS):
            done = arm.run(float(hours), 1)
            course.afterwards.append((done.decisions, done.hits))
            course.strayed = done.strayed
        if name == ALWAYS:
            report = arm.calibrate()
            course.said = str(report)
        course.fitted = sum("torque_constant" in fit.slots for fit in report.fits)
        course.constant_error = arm.constant_error(report)
    return course


def share(counts: Sequence[tuple[int, int]]) -> float:
    """Return hits over decisions."""
    decisions = sum(pair[0] for pair in counts)
    return sum(pair[1] for pair in counts) / max(1, decisions)


def rate(points: Sequence[Checkpoint]) -> dict[str, Any]:
    """Return hits over decisions with exact bounds."""
    return share_of(sum(point.hits for point in points), sum(point.decisions for point in points))


def summarize(course: Course) -> dict[str, Any]:
    """Return the figures of a course."""
    points = course.checkpoints
    last = points[-1].hours
    first = share([(p.decisions, p.hits) for p in points if p.hours < WINDOW])
    late = share([(p.decisions, p.hits) for p in points if p.hours > last - WINDOW])
    lowest = min(
        share([(p.decisions, p.hits) for p in points[i : i + WINDOW // PERIOD]])
        for i in range(len(points) - WINDOW // PERIOD + 1)
    )
    fallen = next((point.hours for point in points if point.fallen), None)
    return {
        "rates": {
            "behavior_hits_first": rate([p for p in points if p.hours < WINDOW]),
            "behavior_hits_late": rate([p for p in points if p.hours > last - WINDOW]),
        },
        "behavior_hits_first": first,
        "behavior_hits_late": late,
        "decay": 1.0 - late / first,
        "kept": lowest / first,
        "recovered": share(course.afterwards[-SETTLED:]) / first,
        "false_hits": sum(point.false_hits for point in points),
        "failed": sum(point.failed for point in points),
        "hit_rate_fallen": sum(point.fallen for point in points),
        "hit_rate_fallen_at_h": fallen,
        "strayed_first_mrad": points[0].strayed * 1e3,
        "strayed_late_mrad": points[-1].strayed * 1e3,
        "strayed_afterwards_mrad": course.strayed * 1e3,
        "fitted": course.fitted,
        "constant_error": course.constant_error,
        "fit_s": course.took,
        "last_calibration": course.said,
        "checkpoints": [dataclasses.asdict(point) for point in points],
    }


def show(report: dict[str, Any], console: Console) -> None:
    """Print the two arms beside each other."""
    table = Table("figure", *report, title="48 h of ageing")
    for name in report[NEVER]:
        if name not in ("checkpoints", "last_calibration"):
            values = (figures[name] for figures in report.values())
            table.add_row(name, *(f"{v:.4g}" if isinstance(v, float) else str(v) for v in values))
    console.print(table)
    course = Table("age [h]", "torque left", *(f"{name}: hits, strayed [mrad]" for name in report))
    for rows in zip(*(figures["checkpoints"] for figures in report.values()), strict=True):
        cells = (f"{row['hits']} of {row['decisions']}, {row['strayed'] * 1e3:.1f}" for row in rows)
        course.add_row(f"{rows[0]['hours']:g}", f"{rows[0]['torque_share']:.2f}", *cells)
    console.print(course)
    console.print(f"last calibration: {report[NEVER]['last_calibration']}", markup=False)


def main() -> int:
    """Run both arms, print and write what came of them; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=int, default=48)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("build/reports/ageing.json"))
    options = parser.parse_args()
    console = Console()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=2, mp_context=context) as pool:
        runs = {n: pool.submit(run, n, options.hours, options.seed) for n in (NEVER, ALWAYS)}
        report = {name: summarize(future.result()) for name, future in runs.items()}
    show(report, console)
    report["setting"] = setting(hours=options.hours, seed=options.seed, wear=json.dumps(WEAR))
    return conclude(report, BOUNDS, options.output, console, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
