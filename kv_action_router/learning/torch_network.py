"""The networks computed by torch, from the same checkpoint as onnxruntime computes."""

from __future__ import annotations

import numpy as np
import torch

from kv_action_router.contracts import Float32Array
from kv_action_router.encoding.network.checkpoint import Checkpoint
from kv_action_router.encoding.network.layout import INPUTS, OUTPUTS
from kv_action_router.encoding.network.runner import Network
from kv_action_router.errors import CheckpointError
from kv_action_router.learning.networks import NETWORKS, fold


class TorchNetwork:
    """A network run by torch in one thread; attributes as ``encoding.network.runner.Network``."""

    def __init__(self, name: str, tensors: dict[str, Float32Array]) -> None:
        """Take over the weights of ``name`` of the layout.

        Raises:
            CheckpointError: they are not this network's.
        """
        torch.set_num_threads(1)
        self._network = fold(NETWORKS[name]())
        state = {key: torch.from_numpy(values.copy()) for key, values in tensors.items()}
        try:
            self._network.load_state_dict(state)
        except RuntimeError as error:
            raise CheckpointError(name, "weights of this network", str(error)) from error
        self.input: Float32Array = np.zeros(INPUTS[name], np.float32)
        self.outputs = {key: np.zeros(shape, np.float32) for key, shape in OUTPUTS[name].items()}
        self._planes = torch.from_numpy(self.input)  # the same memory
        self._answers = [torch.from_numpy(values) for values in self.outputs.values()]

    @torch.inference_mode()
    def run(self) -> None:
        """Compute the outputs of the present input."""
        for place, answer in zip(self._answers, self._network(self._planes), strict=True):
            place.copy_(answer)


def open_networks(checkpoint: Checkpoint) -> dict[str, Network]:
    """Return name -> network.

    Raises:
        CheckpointError: weights are not these networks'.
    """
    return {name: TorchNetwork(name, dict(tensors)) for name, tensors in checkpoint.tensors.items()}
