"""A slow policy behind the cache: how often is it asked, and what does the robot gain?

    .venv-bench/bin/python benchmarks/policy.py [--cycles 20] [--retrain]      (make bench)

A diffusion policy (``harness/diffusion.py``) learns the demonstration's task from planned motions,
then the same cycles are run three times in physics, all stages in one process and in simulated
time: the policy behind the cache, the policy alone (cache off), and replanning alone (cache off).
The time that each call of the policy really took passes in the simulation as well. Targets come
from the simulation's truth, so that no perception stands between the three. Writes
``build/reports/policy.json``; what was learned is kept in ``build/policy.pt``. torch stands in
requirements/bench.txt.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from harness.demonstrations import demonstrate
from harness.setting import interpreter_of_comparisons, setting
from kv_action_router.contracts import FloatArray
from kv_action_router.errors import InputError
from kv_action_router.reporting.benchmark import conclude
from kv_action_router.reporting.statistics import quantiles, share_of, summary
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.cell import Samples
from kv_action_router.simulation.episode import Episode, EpisodeConfig
from kv_action_router.simulation.sight import true_target
from kv_action_router.synthesis.clearance import Clearance
from kv_action_router.synthesis.policy import ChunkPolicy, Observation
from kv_action_router.synthesis.policy_source import PolicySource
from kv_action_router.synthesis.synthesizer import BehaviorSynthesizer

TASKS, ITERATIONS = 2000, 3000
MOVES = 0.02  # [rad/s]
OFF = 1.0  # no similarity is above it: every decision is a miss


class TimedAsker:
    """Asks a policy at once, and holds its answer back for as long as it took."""

    def __init__(self, policy: ChunkPolicy, clock: Any) -> None:
        self.period = policy.period
        self.took_ms: list[float] = []
        self._policy = policy
        self._clock = clock
        self._ready_ns = 0
        self._actions: FloatArray | None = None

    def ask(self, observation: Observation) -> None:
        """Put a question."""
        begin = time.perf_counter_ns()
        self._actions = self._policy.act(observation)
        took = time.perf_counter_ns() - begin
        self.took_ms.append(took / 1e6)
        self._ready_ns = self._clock() + took

    def answer(self) -> FloatArray | None:
        """Return the actions once the time has passed that they took."""
        return self._actions if self._clock() >= self._ready_ns else None


class Watch:
    """Notes, step by step, how long decisions keep the robot waiting, and how it moves."""

    def __init__(self, episode: Episode) -> None:
        self._episode = episode
        self._asked_ns = 0
        self._positions: list[FloatArray] = []
        self.waits_ms: list[float] = []
        episode.on_step = self._step

    def jerk(self) -> float:
        """Return the RMS of the set-points' third difference [rad/s^3], of all joints."""
        rows = np.array(self._positions)
        dt = self._episode.robot.plant.dt
        third = np.diff(rows, n=3, axis=0) / dt**3
        return float(np.sqrt(np.mean(third**2)))

    def _step(self, samples: Samples) -> None:
        set_point = self._episode.injection.controller.set_point
        if set_point.last_ns:  # before the first tick it is nowhere
            self._positions.append(np.array(set_point.position))
        awaiting = self._episode.synthesis.synthesizer.tasks.stack.awaiting
        if awaiting and not self._asked_ns:
            self._asked_ns = samples.now_ns
        elif self._asked_ns and not awaiting:
            self.waits_ms.append((samples.now_ns - self._asked_ns) / 1e6)
            self._asked_ns = 0


def run(
    name: str, cycles: int, seed: int, policy: ChunkPolicy | None, cached: bool
) -> dict[str, Any]:
    """Run cycles from an empty cache; return the figures."""
    config = EpisodeConfig()
    config = dataclasses.replace(
        config, simulation=dataclasses.replace(config.simulation, seed=seed)
    )
    if not cached:
        off = dataclasses.replace(
            config.caching, threshold=OFF, scene_names=("none",), scene_thresholds=(OFF,)
        )
        config = dataclasses.replace(config, caching=off)
    asker = None
    with Episode(true_target, config) as episode:
        if policy is not None:
            clock, robot = episode.robot.clock, RobotModel.load(config.simulation.robot)
            asker = TimedAsker(policy, clock)
            source = PolicySource(
                robot, config.synthesis, asker, Clearance(robot, config.synthesis), clock
            )
            episode.synthesis.synthesizer = BehaviorSynthesizer(
                robot, config.synthesis, source=source, clock=clock
            )
        watch = Watch(episode)
        done = []
        ended = ""
        for _ in range(cycles):
            try:
                done.append(episode.touch())
            except InputError as error:  # it stands on the target and does not get away
                ended = str(error)
                break
            if not done[-1].success:
                go_home(episode, len(done))
    good = sum(cycle.success for cycle in done)
    return {
        "name": name,
        "cycles": cycles,
        "tried": len(done),
        "ended": ended,
        "succeeded": good,
        "rates": {
            "cycles": share_of(good, len(done)),
            "task_hits": share_of(sum(c.task_hits for c in done), sum(c.decisions for c in done)),
        },
        "calls_per_task": 0.0 if asker is None else len(asker.took_ms) / len(done),
        "call_ms": summary([] if asker is None else asker.took_ms),
        "wait_ms": summary(watch.waits_ms),
        "jerk_rms": watch.jerk(),
        "touch_error_mm": quantiles([c.touch_error * 1e3 for c in done], p50=0.5, max=1.0),
        "cycle_s": summary([cycle.duration for cycle in done]),
        "task_hits": sum(c.task_hits for c in done) / max(1, sum(c.decisions for c in done)),
        "reasons": [cycle.reason for cycle in done if not cycle.success],
    }


def go_home(episode: Episode, number: int) -> None:
    """Run the task's last stage alone: where a task fails, the tool may stand on the target."""
    tasks = episode.synthesis.synthesizer.tasks
    home = dataclasses.replace(episode.task, name="go_home", stages=episode.task.stages[-1:])
    episode.synthesis.start(home, f"home {number}", episode.robot.now_ns)
    while tasks.stack.active:
        episode.step()


def learned(path: Path, seed: int, retrain: bool, console: Console) -> Any:
    """Return the policy, trained now or earlier."""
    from harness import diffusion

    simulation = EpisodeConfig().simulation
    stages = demonstrate("touch_target", simulation, 1, seed).stages
    if retrain or not path.exists():
        with console.status(f"planning {TASKS} demonstrations"):
            shown = demonstrate("touch_target", simulation, TASKS, seed)
        with console.status("training"):
            begin = time.monotonic()
            taught = diffusion.train(shown, ITERATIONS, seed)
            console.print(f"trained in {time.monotonic() - begin:.0f} s")
        path.parent.mkdir(parents=True, exist_ok=True)
        diffusion.torch.save(taught, path)
    return diffusion.load(path, stages)


def show(rows: list[dict[str, Any]]) -> Table:
    """Return a table with a row a variant."""
    table = Table(
        "variant", "touched", "calls / task", "call [ms]", "wait p50 [ms]", "max", "jerk rms",
        "error p50 [mm]", "cycle [s]", "task hits",
    )  # fmt: skip
    for row in rows:
        call, wait, error = row["call_ms"]["p50"], row["wait_ms"], row["touch_error_mm"]["p50"]
        table.add_row(
            row["name"],
            f"{row['succeeded']} of {row['tried']}",
            f"{row['calls_per_task']:.2f}",
            "-" if call is None else f"{call:.0f}",
            f"{wait['p50']:.0f}",
            f"{wait['max']:.0f}",
            f"{row['jerk_rms']:.1f}",
            "-" if error is None else f"{error:.2f}",
            f"{row['cycle_s']['mean']:.2f}",
            f"{row['task_hits']:.2f}",
        )
    return table


def main() -> int:
    """Train where needed, run the three variants; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--retrain", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("build/reports/policy.json"))
    options = parser.parse_args()
    console = Console()
    try:
        import torch
    except ImportError:
        other = interpreter_of_comparisons()
        if Path(sys.executable) != other and other.exists():
            os.execv(other, [str(other), *sys.argv])
        console.print("torch is not installed (requirements/bench.txt): run `make bench`")
        return 1 if options.check else 0
    policy = learned(Path("build/policy.pt"), options.seed, options.retrain, console)
    torch.set_num_threads(1)
    rows = []
    for name, asked, cached in (
        ("policy behind the cache", policy, True),
        ("policy, cache off", policy, False),
        ("replanning, cache off", None, False),
    ):
        with console.status(name):
            rows.append(run(name, options.cycles, options.seed, asked, cached))
    console.print(show(rows))
    report = {
        "setting": setting(torch=torch.__version__),
        "parameters": policy.parameters,
        "variants": rows,
    }
    return conclude(report, (), options.output, console, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
