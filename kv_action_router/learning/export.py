"""From trained networks to a checkpoint, which is read back before it counts."""

from __future__ import annotations

import copy
import io
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from kv_action_router.encoding.network.checkpoint import (
    FORMAT,
    Checkpoint,
    Numbers,
    describe,
)
from kv_action_router.encoding.network.layout import INPUTS, OUTPUTS
from kv_action_router.learning.card import write_json
from kv_action_router.learning.networks import fold


def to_onnx(name: str, network: nn.Module) -> bytes:
    """Return a network as an ONNX file; weights keep their names."""
    ready = fold(copy.deepcopy(network)).to(memory_format=torch.contiguous_format)
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter that keeps the weights' names is the old one
        torch.onnx.export(
            ready,
            (torch.zeros(INPUTS[name]),),
            file,
            input_names=[name],
            output_names=list(OUTPUTS[name]),
            dynamo=False,
        )
    return file.getvalue()


def save_checkpoint(
    folder: Path,
    target: str,
    models: Mapping[str, bytes],
    numbers: Numbers,
    training: Mapping[str, Any],
) -> Checkpoint:
    """Write a checkpoint; whatever was there stays when the new one cannot be read back.

    Args:
        folder: that holds it.
        target: what it was trained to see.
        models: name -> ONNX file.
        numbers: that belong to the weights.
        training: how it was made, for the card.

    Raises:
        CheckpointError: weights are not finite, or numbers out of bounds; nothing was changed.
    """
    files = {name: describe(data, name) for name, data in models.items()}
    card = {
        "format": FORMAT,
        "target": target,
        "numbers": vars(numbers),
        "files": files,
        "training": dict(training),
    }
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        made = Path(scratch) / folder.name
        made.mkdir()
        for name, data in models.items():
            (made / f"{name}.onnx").write_bytes(data)
        write_json(made, card)
        Checkpoint.load(made)
        if folder.exists():
            shutil.rmtree(folder)
        made.rename(folder)
    return Checkpoint.load(folder)
