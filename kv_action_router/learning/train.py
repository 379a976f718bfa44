"""Training: resumed where it was left, the same from the same seed."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kv_action_router.learning import batches, losses, networks
from kv_action_router.learning.dataset import Arrays
from kv_action_router.learning.networks import NETWORKS

Report = Callable[[str, int, dict[str, float]], None]
_RATE, _DECAY = 2e-3, 1e-4
_WARM_UP = 0.05  # share of all steps during which the rate rises


@dataclass(frozen=True)
class Course:
    """How long and with what.

    Attributes:
        epochs: passes over all examples, by network.
        seed: of initial weights, order and variation.
        window: width of the close-up [m].
        fold: of the target's heading; 0 = none.
        folder: that holds what was reached after each epoch.
    """

    epochs: dict[str, int]
    seed: int
    window: float
    fold: int
    folder: Path


def recipe() -> str:
    """Return the source of all that decides what a training leads to, beside the examples."""
    return "".join(map(inspect.getsource, (batches, losses, networks, sys.modules[__name__])))


def deterministic(threads: int) -> None:
    """Make torch give the same numbers each time, on this many threads."""
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)


def train(name: str, data: Arrays, course: Course, report: Report) -> nn.Module:
    """Return a trained network.

    Args:
        name: of the network.
        data: examples.
        course: of the training.
        report: told of each epoch: network, epochs done, means of the losses.
    """
    torch.manual_seed(course.seed)
    network = NETWORKS[name]().to(memory_format=torch.channels_last)  # a third faster
    optimizer = torch.optim.AdamW(network.parameters(), lr=_RATE, weight_decay=_DECAY)
    epochs = course.epochs[name]
    file = course.folder / f"{name}-{course.seed}-{epochs}.pt"
    done = _resume(file, network, optimizer)
    report(name, done, {})
    for epoch in range(done, epochs):
        generator = np.random.default_rng([course.seed, len(name), epoch])
        network.train()
        totals: dict[str, list[float]] = {}
        for batch, share in _batches(name, data, course, generator):
            for group in optimizer.param_groups:
                group["lr"] = _RATE * _schedule((epoch + share) / epochs)
            parts = _losses(network, batch, course)
            optimizer.zero_grad(set_to_none=True)
            loss: Tensor = torch.stack(list(parts.values())).sum()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimizer.step()
            for key, value in parts.items():
                totals.setdefault(key, []).append(float(value.detach()))
        _save(file, network, optimizer, epoch + 1)
        report(name, epoch + 1, {key: float(np.mean(values)) for key, values in totals.items()})
    return network.eval()


def _batches(
    name: str, data: Arrays, course: Course, generator: np.random.Generator
) -> Iterator[tuple[Any, float]]:
    """Yield batches of an epoch, each with the share of the epoch that lies behind."""
    if name == "overview":
        made: Iterator[Any] = batches.overviews(data, generator)
        examples = len(data["scene"])
    else:
        made = batches.cutouts(data, course.window, generator)
        examples = int(np.count_nonzero(data["cut_visible"] >= 0.0))
    seen = 0
    for batch in made:
        yield batch, min(1.0, seen / examples)
        seen += len(batch.planes)


def _losses(network: nn.Module, batch: Any, course: Course) -> dict[str, Tensor]:
    planes = batch.planes.to(memory_format=torch.channels_last)
    if isinstance(batch, batches.Overviews):
        likely, scene = network.logits(planes)
        return {
            "likely": losses.likely_loss(likely, batch.spot, batch.visible),
            "scene": 0.3 * losses.scene_loss(scene, batch.scene),
        }
    return losses.closeup_loss(
        network.logits(planes),
        batch.place,
        batch.face,
        batch.visible,
        batch.heading,
        course.fold,
    )


def _schedule(share: float) -> float:
    """Return the rate's share: up, then down along a cosine."""
    if share < _WARM_UP:
        return 0.05 + 0.95 * share / _WARM_UP
    return 0.5 * (1.0 + math.cos(math.pi * (share - _WARM_UP) / (1.0 - _WARM_UP))) + 1e-3


def _save(file: Path, network: nn.Module, optimizer: torch.optim.Optimizer, epoch: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".part")
    state = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
    torch.save(state, partial)
    partial.rename(file)


def _resume(file: Path, network: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Take over what was reached; return the epochs that lie behind."""
    if not file.exists():
        return 0
    state = torch.load(file, weights_only=True)
    network.load_state_dict(state["network"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["epoch"])
