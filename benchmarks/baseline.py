"""An end-to-end policy: ResNet-18 features, LSTM, MLP decoder; one action chunk for each image.

    .venv-bench/bin/python benchmarks/baseline.py eager_320x240 onnxruntime_320x240 [--frames 100]

What a user would run instead of the cache, at its cheapest: no camera, no transport, no depth, one
image at a time, weights not trained (they do not change the time). 320x240 is the camera's image as
it comes, which our encoder sees too; 224x224 is that of ImageNet, resized outside the time that is
measured. One thread. Prints one line of JSON; ``pipeline.py`` runs it. torch stands in
requirements/bench.txt.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torchvision.models import resnet18

WARM_UP = 10
FEATURES, HIDDEN, STEPS, JOINTS = 512, 256, 100, 6


class Policy(nn.Module):
    """Image (1, 3, h, w), joint state (1, 12) and memory to positions and velocities (100, 12)."""

    def __init__(self) -> None:
        super().__init__()
        network = resnet18(weights=None)
        self.features = nn.Sequential(*list(network.children())[:-1], nn.Flatten())
        self.memory = nn.LSTM(FEATURES + 2 * JOINTS, HIDDEN, batch_first=True)
        self.decoder = nn.Sequential(
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, STEPS * 2 * JOINTS),
        )

    def forward(
        self, image: torch.Tensor, joints: torch.Tensor, h: torch.Tensor, c: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the chunk (1, 100, 12) and the memory, both (1, 1, 256)."""
        seen = torch.cat((self.features(image), joints), dim=1)
        out, (h, c) = self.memory(seen.unsqueeze(1), (h, c))
        chunk = self.decoder(out[:, -1])
        return chunk.view(1, STEPS, 2 * JOINTS), h, c


Step = Callable[[np.ndarray, np.ndarray], np.ndarray]  # image (h, w, 3) uint8, joints -> chunk


def normalized(image: np.ndarray) -> np.ndarray:
    """Return an image (h, w, 3) as the network takes it, (1, 3, h, w) float32."""
    mean = np.array((0.485, 0.456, 0.406), np.float32)
    deviation = np.array((0.229, 0.224, 0.225), np.float32)
    scaled = (image * np.float32(1.0 / 255.0) - mean) / deviation
    return np.ascontiguousarray(scaled.transpose(2, 0, 1))[None]


def eager(policy: Policy) -> Step:
    """Return a step of the policy as torch runs it by default."""
    memory = [torch.zeros(1, 1, HIDDEN), torch.zeros(1, 1, HIDDEN)]

    def step(image: np.ndarray, joints: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            tensors = torch.from_numpy(normalized(image)), torch.from_numpy(joints)
            chunk, memory[0], memory[1] = policy(*tensors, *memory)
        return chunk.numpy()

    return step


def exported(policy: Policy, size: tuple[int, int]) -> Step:
    """Return a step of the policy exported to ONNX and run by onnxruntime."""
    import io

    import onnxruntime

    inputs = torch.zeros(1, 3, *size), torch.zeros(1, 2 * JOINTS)
    memory = torch.zeros(1, 1, HIDDEN), torch.zeros(1, 1, HIDDEN)
    file = io.BytesIO()
    torch.onnx.export(
        policy,
        (*inputs, *memory),
        file,
        input_names=["image", "joints", "h", "c"],
        output_names=["chunk", "h_next", "c_next"],
        dynamo=False,
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        file.getvalue(), options, providers=["CPUExecutionProvider"]
    )
    state = [tensor.numpy() for tensor in memory]

    def step(image: np.ndarray, joints: np.ndarray) -> np.ndarray:
        feed = {"image": normalized(image), "joints": joints, "h": state[0], "c": state[1]}
        chunk, state[0], state[1] = session.run(None, feed)
        return chunk

    return step


def measure(name: str, frames: int) -> dict[str, Any]:
    """Return the time of each frame [ms] and what was run."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    runner, _, shape = name.partition("_")
    width, height = (int(part) for part in shape.split("x"))
    policy = Policy().eval()
    step = eager(policy) if runner == "eager" else exported(policy, (height, width))
    generator = np.random.default_rng(1)
    image = generator.integers(0, 256, (height, width, 3), np.uint8)
    joints = generator.standard_normal((1, 2 * JOINTS)).astype(np.float32)
    times = []
    for index in range(frames + WARM_UP):
        begin = time.perf_counter_ns()
        chunk = step(image, joints)
        spent = time.perf_counter_ns() - begin
        if index >= WARM_UP:
            times.append(spent / 1e6)
    if chunk.shape != (1, STEPS, 2 * JOINTS) or not np.isfinite(chunk).all():
        raise ValueError(f"chunk must be finite and (1, {STEPS}, {2 * JOINTS}), got {chunk.shape}")
    return {
        "times_ms": times,
        "parameters": sum(parameter.numel() for parameter in policy.parameters()),
        "torch": torch.__version__,
        "threads": 1,
        "warm_up": WARM_UP,
    }


def main() -> int:
    """Measure policies; print the result of each by its name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("policies", nargs="+", help="eager_WIDTHxHEIGHT, onnxruntime_WIDTHxHEIGHT")
    parser.add_argument("--frames", type=int, default=100)
    options = parser.parse_args()
    found = {name: measure(name, options.frames) for name in options.policies}
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
