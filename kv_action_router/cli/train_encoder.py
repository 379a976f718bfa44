"""Trains the perception network of a target: frames, both networks, thresholds, model card.

    .venv-bench/bin/python -P -m kv_action_router.cli.train_encoder [--target disc] [--seed 1]
                                                                      (make train-encoder)

Frames of all cells that have the target are rendered once, into ``build/learning``; then each
network is trained on one core. A run that was broken off goes on where it was. The same seed leads
to the same weights on the same machine; what was reached is compared with the shipped model card.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import cv2
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from kv_action_router.cli.evaluate_encoder import CARDS, bounds, evaluate, table
from kv_action_router.cli.evaluate_encoder import SCENES as HELD_OUT_SCENES
from kv_action_router.encoding.network.checkpoint import NAMES, SHIPPED, Checkpoint, encoder_id
from kv_action_router.errors import CheckpointError
from kv_action_router.learning import card, dataset
from kv_action_router.learning.calibration import calibrate
from kv_action_router.learning.cells import Cell, cells_of
from kv_action_router.learning.dataset import LOOKS, SCENES, Plan
from kv_action_router.learning.evaluation import HIDDEN
from kv_action_router.learning.frames import LEAN_MAXIMUM
from kv_action_router.reporting.bounds import broken

_HELD_BACK = 2  # shards of each cell for thresholds, not for training
_BUILD = Path("build/learning")
_FRAMES = "frames-"  # and a cell's name: a job
_PASSED_ON = ("target", "seed", "shards", "overview-epochs", "closeup-epochs", "build")


def main(arguments: list[str] | None = None) -> int:
    """Train, or do one job of it; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="disc", help="whose cells are looked at")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--shards", type=int, default=20, help=f"a cell, of {SCENES * LOOKS} frames"
    )
    parser.add_argument("--overview-epochs", type=int, default=6, help="passes over the frames")
    parser.add_argument("--closeup-epochs", type=int, default=10, help="passes over the frames")
    parser.add_argument("--build", type=Path, default=_BUILD, help="frames, and what was reached")
    parser.add_argument("--checkpoint", type=Path, help="folder to write; default: the shipped one")
    parser.add_argument("--card", type=Path, help="model card to write")
    parser.add_argument("--only", help="one job, telling lines of JSON")
    options = parser.parse_args(arguments)
    cv2.setNumThreads(1)
    if options.shards <= _HELD_BACK:
        parser.error(f"--shards must be more than {_HELD_BACK}, got {options.shards}")
    plans = [
        Plan(each, options.shards, options.seed, options.build) for each in cells_of(options.target)
    ]
    if not options.only:
        return _all(plans, options)
    if options.only.startswith(_FRAMES):
        (plan,) = (plan for plan in plans if _FRAMES + plan.cell.name == options.only)
        dataset.render(plan, lambda number: _say(number + 1))
        return 0
    return _train(options.only, plans, options)


def _all(plans: Sequence[Plan], options: argparse.Namespace) -> int:
    console = Console(width=132)
    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(), TextColumn("{task.fields[note]}"),
    )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        for jobs in (
            {_FRAMES + plan.cell.name: plan.shards for plan in plans},
            {name: _epochs(options)[name] for name in NAMES},
        ):
            bars = {
                job: progress.add_task(job, total=steps, note="") for job, steps in jobs.items()
            }
            for job, told in _run(list(jobs), options):
                progress.update(bars[job], completed=told["done"], note=told["note"])
    models = {name: _model(plans, options, name).read_bytes() for name in NAMES}
    cells = [plan.cell for plan in plans]
    numbers = calibrate(models, dataset.load(_files(plans, held_back=True)), cells[0])
    target = options.target
    folder = options.checkpoint or SHIPPED / target
    before = _shipped(target)
    from kv_action_router.learning.export import save_checkpoint  # torch: seconds, now needed

    made = save_checkpoint(folder, target, models, numbers, _told(plans, options))
    report = evaluate(cells, str(folder), "onnx", HELD_OUT_SCENES)
    console.print(table(report))
    told = {**made.card, "held_out": report}
    card.write_json(folder, told)
    path = options.card or CARDS / f"{target}.md"
    card.write(path, told, encoder_id(told))
    for line in broken(report, bounds(report, before, numbers.fold), essential_only=False):
        console.print(f"falls short: {line}", markup=False)  # names hold units: [mm]
    console.print(f"checkpoint: {folder}, {encoder_id(told)}\nmodel card: {path}")
    return 0


def _told(plans: Sequence[Plan], options: argparse.Namespace) -> dict[str, Any]:
    """Return how the networks are made, for the card."""
    frames = len(plans) * (options.shards - _HELD_BACK) * SCENES * LOOKS
    return {
        "cells": [plan.cell.name for plan in plans],
        "seed": options.seed,
        "frames": frames,
        "scenes": frames // LOOKS,
        "epochs": _epochs(options),
        "hidden_share": HIDDEN,
        "largest_lean_degrees": math.degrees(math.atan(math.sqrt(2.0) * LEAN_MAXIMUM)),
        "camera_error_mm": {plan.cell.name: _camera_error(plan.cell) for plan in plans},
    }


def _camera_error(cell: Cell) -> float:
    return 1e3 * math.hypot(*cell.simulation.camera_error)


def _shipped(target: str) -> dict[str, Any]:
    """Return the card of the shipped checkpoint; an empty one where there is none."""
    try:
        return dict(Checkpoint.load(target).card)
    except CheckpointError:
        return {}


def _run(jobs: Sequence[str], options: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Do each job in a process of its own; yield what they tell.

    Raises:
        SystemExit: one of them failed; its errors were printed.
    """
    command = [sys.executable, "-P", "-m", "kv_action_router.cli.train_encoder"]
    for key in _PASSED_ON:
        command += [f"--{key}", str(getattr(options, key.replace("-", "_")))]
    running = {
        job: subprocess.Popen([*command, "--only", job], stdout=subprocess.PIPE, text=True)
        for job in jobs
    }
    try:
        yield from _tell(running)
    finally:
        for process in running.values():
            process.terminate()
            process.wait()


def _tell(running: dict[str, subprocess.Popen[str]]) -> Iterator[tuple[str, dict[str, Any]]]:
    import selectors

    with selectors.DefaultSelector() as ready:
        for name, process in running.items():
            assert process.stdout is not None
            ready.register(process.stdout, selectors.EVENT_READ, name)
        while ready.get_map():
            for key, _ in ready.select():
                line = key.fileobj.readline()  # type: ignore[union-attr]
                if line:
                    yield key.data, json.loads(line)
                    continue
                ready.unregister(key.fileobj)
                code = running[key.data].wait()
                if code:
                    raise SystemExit(f"job {key.data} ended with code {code}")


def _train(name: str, plans: Sequence[Plan], options: argparse.Namespace) -> int:
    from kv_action_router.learning.export import to_onnx
    from kv_action_router.learning.train import Course, deterministic, train

    of_cuts = name == "closeup"
    data = dataset.load(
        _files(plans, held_back=False), lambda key: key.startswith("cut_") == of_cuts
    )
    deterministic(threads=1)
    cell = plans[0].cell
    course = Course(_epochs(options), options.seed, cell.window, cell.fold, _place(plans, options))

    def tell(_: str, epoch: int, losses: dict[str, float]) -> None:
        _say(epoch, " ".join(f"{key} {value:.3f}" for key, value in losses.items()))

    network = train(name, data, course, tell)
    _model(plans, options, name).write_bytes(to_onnx(name, network))
    return 0


def _say(done: int, note: str = "") -> None:
    print(json.dumps({"done": done, "note": note}), flush=True)


def _files(plans: Sequence[Plan], held_back: bool) -> list[Path]:
    """Return the shards to train with, or those held back from it; all must be there already."""
    chosen = slice(-_HELD_BACK, None) if held_back else slice(None, -_HELD_BACK)
    return [file for plan in plans for file in dataset.render(plan)[chosen]]


def _epochs(options: argparse.Namespace) -> dict[str, int]:
    return {"overview": options.overview_epochs, "closeup": options.closeup_epochs}


def _place(plans: Sequence[Plan], options: argparse.Namespace) -> Path:
    """Return the folder of what is reached: another one where what leads there has changed."""
    from kv_action_router.learning.train import recipe

    told = " ".join(str(plan.place) for plan in plans) + f" {options.shards} {recipe()}"
    return Path(options.build) / f"{options.target}-{dataset.digest(told)}"


def _model(plans: Sequence[Plan], options: argparse.Namespace, name: str) -> Path:
    epochs = _epochs(options)[name]
    return _place(plans, options) / f"{name}-{options.seed}-{epochs}.onnx"


if __name__ == "__main__":
    raise SystemExit(main())
