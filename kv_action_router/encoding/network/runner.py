"""Who computes a network: onnxruntime, or torch, behind one small protocol."""

from __future__ import annotations

import importlib
from typing import Any, Protocol

import numpy as np

from kv_action_router.contracts import Float32Array
from kv_action_router.encoding.network.checkpoint import Checkpoint
from kv_action_router.encoding.network.layout import INPUTS, OUTPUTS
from kv_action_router.errors import ConfigError

ENGINES = ("onnx", "torch")


class Network(Protocol):
    """One network with its buffers, which stay where they are.

    Attributes:
        input: planes to look at; write them, then :meth:`run`.
        outputs: name -> answer, overwritten by the next run.
    """

    input: Float32Array
    outputs: dict[str, Float32Array]

    def run(self) -> None:
        """Compute the outputs of the present input, in the calling thread."""


class OnnxNetwork:
    """A network run by onnxruntime in one thread, on buffers that are bound once."""

    def __init__(self, model: bytes, name: str) -> None:
        """Prepare ``name`` of the layout.

        Raises:
            ConfigError: onnxruntime is not installed.
        """
        runtime = _module("onnxruntime", "onnx", "requirements/runtime.txt")
        options: Any = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.execution_mode = runtime.ExecutionMode.ORT_SEQUENTIAL
        options.log_severity_level = 3
        self._session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.input: Float32Array = np.zeros(INPUTS[name], np.float32)
        self.outputs = {key: np.zeros(shape, np.float32) for key, shape in OUTPUTS[name].items()}
        self._binding = self._session.io_binding()
        self._binding.bind_input(name, "cpu", 0, np.float32, INPUTS[name], self.input.ctypes.data)
        for key, values in self.outputs.items():
            self._binding.bind_output(key, "cpu", 0, np.float32, values.shape, values.ctypes.data)

    def run(self) -> None:
        """Compute the outputs."""
        self._session.run_with_iobinding(self._binding)


def open_networks(engine: str, checkpoint: Checkpoint) -> dict[str, Network]:
    """Return name -> network of a checkpoint.

    Raises:
        ConfigError: unknown engine, or what it needs is not installed.
    """
    if engine == "onnx":
        return {name: OnnxNetwork(model, name) for name, model in checkpoint.models.items()}
    if engine == "torch":
        _module("torch", engine, "requirements/learning.txt")
        made: dict[str, Network] = importlib.import_module(
            "kv_action_router.learning.torch_network"
        ).open_networks(checkpoint)
        return made
    raise ConfigError("perception", f"one of {', '.join(ENGINES)}", engine)


def _module(name: str, engine: str, requirements: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(
            "perception", f"segmentation where {name} ({requirements}) is not installed", engine
        ) from error
