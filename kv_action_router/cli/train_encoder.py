"""Trains the perception network of a cell: frames, both networks, thresholds, model card.

    .venv-bench/bin/python -P -m kv_action_router.cli.train_encoder [--cell touch] [--seed 1]
                                                                      (make train-encoder)

Frames are rendered once, into ``build/learning``; each network is trained on one core. A run that
was broken off goes on where it was. The same seed leads to the same weights on the same machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from kv_action_router.cli.evaluate_encoder import CARDS, evaluate, table
from kv_action_router.cli.evaluate_encoder import SCENES as HELD_OUT_SCENES
from kv_action_router.encoding.network.checkpoint import NAMES, SHIPPED, encoder_id
from kv_action_router.learning import card, dataset
from kv_action_router.learning.calibration import calibrate
from kv_action_router.learning.cells import CELLS, cell
from kv_action_router.learning.dataset import LOOKS, SCENES, Plan

_HELD_BACK = 3  # shards for thresholds, not for training
_BUILD = Path("build/learning")


def main(arguments: list[str] | None = None) -> int:
    """Train, or do one network's part of it; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cell", default="touch", choices=tuple(CELLS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shards", type=int, default=32, help=f"of {SCENES * LOOKS} frames")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--build", type=Path, default=_BUILD, help="frames, and what was reached")
    parser.add_argument("--checkpoint", type=Path, help="folder to write; default: the shipped one")
    parser.add_argument("--card", type=Path, help="model card to write")
    parser.add_argument("--only", choices=NAMES, help="train one network, telling lines of JSON")
    options = parser.parse_args(arguments)
    cv2.setNumThreads(1)
    if options.shards <= _HELD_BACK:
        parser.error(f"--shards must be more than {_HELD_BACK}, got {options.shards}")
    if options.only:
        return _train(options.only, options)
    return _all(options)


def _plan(options: argparse.Namespace) -> Plan:
    return Plan(cell(options.cell), options.shards, options.seed, options.build)


def _all(options: argparse.Namespace) -> int:
    from kv_action_router.learning.export import save_checkpoint

    console = Console(width=132)
    plan = _plan(options)
    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(), TextColumn("{task.fields[note]}"),
    )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("frames (shards)", total=options.shards, note="")
        files = dataset.render(plan, lambda n: progress.update(bar, completed=n + 1))
        bars = {name: progress.add_task(name, total=options.epochs, note="") for name in NAMES}
        for name, told in _train_both(options):
            losses = " ".join(f"{key} {value:.3f}" for key, value in told["losses"].items())
            progress.update(bars[name], completed=told["epoch"], note=losses)
    models = {name: _model(plan, options, name).read_bytes() for name in NAMES}
    numbers = calibrate(models, dataset.load(files[-_HELD_BACK:]), plan.cell)
    frames = (options.shards - _HELD_BACK) * SCENES * LOOKS
    training = {
        "cell": plan.cell.name,
        "seed": options.seed,
        "frames": frames,
        "scenes": frames // LOOKS,
        "epochs": options.epochs,
    }
    folder = options.checkpoint or SHIPPED / plan.cell.checkpoint
    made = save_checkpoint(folder, plan.cell.checkpoint, models, numbers, training)
    report = evaluate(plan.cell, str(folder), "onnx", HELD_OUT_SCENES)
    console.print(table(report))
    told = {**made.card, "held_out": report}
    card.write_json(folder, told)
    path = options.card or CARDS / f"{plan.cell.checkpoint}.md"
    card.write(path, told, encoder_id(told))
    console.print(f"checkpoint: {folder}\nmodel card: {path}")
    return 0


def _train_both(options: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Train each network in a process of its own; yield what they tell.

    Raises:
        SystemExit: one of them failed; its errors were printed.
    """
    command = [sys.executable, "-P", "-m", "kv_action_router.cli.train_encoder"]
    for key in ("cell", "seed", "shards", "epochs", "build"):
        command += [f"--{key}", str(getattr(options, key))]
    running = {
        name: subprocess.Popen([*command, "--only", name], stdout=subprocess.PIPE, text=True)
        for name in NAMES
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
                    raise SystemExit(f"training of {key.data} ended with code {code}")


def _train(name: str, options: argparse.Namespace) -> int:
    from kv_action_router.learning.export import to_onnx
    from kv_action_router.learning.train import Course, deterministic, train

    plan = _plan(options)
    files = dataset.render(plan)  # all there already
    data = dataset.load(files[:-_HELD_BACK])
    deterministic(threads=1)
    course = Course(
        {name: options.epochs}, options.seed, plan.cell.window, plan.cell.fold, plan.place
    )

    def tell(_: str, epoch: int, losses: dict[str, float]) -> None:
        print(json.dumps({"epoch": epoch, "losses": losses}), flush=True)

    network = train(name, data, course, tell)
    _model(plan, options, name).write_bytes(to_onnx(name, network))
    return 0


def _model(plan: Plan, options: argparse.Namespace, name: str) -> Path:
    return plan.place / f"{name}-{options.seed}-{options.epochs}.onnx"


if __name__ == "__main__":
    raise SystemExit(main())
