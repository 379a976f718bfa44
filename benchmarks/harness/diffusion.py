"""A diffusion policy: a small network that removes noise from a motion, step by step.

The form of Chi et al., "Diffusion Policy" (RSS 2023), on joint states and the seen target instead
of images: a multilayer perceptron predicts the clean motion from a noisy one, its step and the
condition; sampling repeats that many times, which is what takes the time. Deterministic steps
(Song et al., "Denoising Diffusion Implicit Models", 2021).
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
from scipy.interpolate import CubicSpline
from torch import nn

from harness.demonstrations import POINTS, Demonstrations, condition_of
from kv_action_router.contracts import FloatArray
from kv_action_router.synthesis.policy import Observation

STEPS = 100  # of sampling, and of the noise's schedule
HIDDEN, EMBEDDING = 512, 32
BATCH = 256
LEARNING_RATE = 1.0e-3
PERIOD = 0.05  # [s] between actions
SHORTEST = 2 * PERIOD


class Denoiser(nn.Module):
    """Noisy motion (b, m), step (b,) and condition (b, c) to the clean motion (b, m)."""

    def __init__(self, motion: int, condition: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(motion + condition + EMBEDDING, HIDDEN),
            nn.GELU(),
            nn.Linear(HIDDEN, HIDDEN),
            nn.GELU(),
            nn.Linear(HIDDEN, HIDDEN),
            nn.GELU(),
            nn.Linear(HIDDEN, motion),
        )
        rates = torch.exp(torch.arange(EMBEDDING // 2) * (-math.log(1.0e4) / (EMBEDDING // 2)))
        self.register_buffer("rates", rates)
        angle = torch.linspace(0.0, 1.0, STEPS + 1) * (0.5 * math.pi)
        self.register_buffer("kept", torch.cos(angle[1:] * 0.999) ** 2)  # share of the signal

    def forward(
        self, noisy: torch.Tensor, step: torch.Tensor, condition: torch.Tensor
    ) -> torch.Tensor:
        """Predict the clean motion."""
        angle = step[:, None].float() * self.rates
        return self.layers(torch.cat((noisy, condition, angle.sin(), angle.cos()), dim=1))


class DiffusionPolicy:
    """A ``ChunkPolicy``: samples a motion, cut into actions 50 ms apart.

    Attributes:
        period: of its actions [s].
        parameters: of its network.
    """

    period = PERIOD

    def __init__(self, taught: dict[str, torch.Tensor], stages: tuple[str, ...]) -> None:
        self._stages = stages
        self._scale = {name: taught[name] for name in ("c_mean", "c_std", "m_mean", "m_std")}
        self._network = Denoiser(len(taught["m_mean"]), len(taught["c_mean"]))
        weights = {k.removeprefix("net."): v for k, v in taught.items() if k.startswith("net.")}
        self._network.load_state_dict(weights)
        self._network.eval()
        self._generator = torch.Generator().manual_seed(1)
        self.parameters = sum(weight.numel() for weight in self._network.parameters())

    @torch.no_grad()
    def act(self, observation: Observation) -> FloatArray:
        """Return joint positions [rad] (h, n)."""
        scale, network = self._scale, self._network
        told = torch.from_numpy(condition_of(self._stages, observation)).float()
        condition = ((told - scale["c_mean"]) / scale["c_std"])[None]
        noisy = torch.randn((1, len(scale["m_mean"])), generator=self._generator)
        clean = noisy
        for step in range(STEPS - 1, -1, -1):
            clean = network(noisy, torch.tensor([step]), condition)
            if step == 0:
                break
            kept, then = network.kept[step], network.kept[step - 1]
            noise = (noisy - kept.sqrt() * clean) / (1.0 - kept).sqrt()
            noisy = then.sqrt() * clean + (1.0 - then).sqrt() * noise
        motion = (clean[0] * scale["m_std"] + scale["m_mean"]).double().numpy()
        way = motion[:-1].reshape(POINTS, -1)
        way = observation.position + way - way[0]
        duration = max(SHORTEST, float(motion[-1]))
        actions = max(3, round(duration / PERIOD) + 1)
        spline = CubicSpline(np.linspace(0.0, 1.0, POINTS), way, bc_type="clamped")
        result: FloatArray = spline(np.linspace(0.0, 1.0, actions))
        return result


def train(shown: Demonstrations, iterations: int, seed: int) -> dict[str, torch.Tensor]:
    """Return weights and scales, as tensors only."""
    torch.manual_seed(seed)
    condition = torch.from_numpy(shown.condition).float()
    motion = torch.from_numpy(shown.motion).float()
    scale = {
        "c_mean": condition.mean(0),
        "c_std": condition.std(0).clamp_min(1.0e-3),
        "m_mean": motion.mean(0),
        "m_std": motion.std(0).clamp_min(1.0e-3),
    }
    condition = (condition - scale["c_mean"]) / scale["c_std"]
    motion = (motion - scale["m_mean"]) / scale["m_std"]
    network = Denoiser(motion.shape[1], condition.shape[1])
    optimizer = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=1.0e-6)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, iterations)
    for _ in range(iterations):
        rows = torch.randint(len(motion), (BATCH,))
        step = torch.randint(STEPS, (BATCH,))
        kept = network.kept[step][:, None]
        noisy = kept.sqrt() * motion[rows] + (1.0 - kept).sqrt() * torch.randn(
            BATCH, len(motion[0])
        )
        loss = nn.functional.mse_loss(network(noisy, step, condition[rows]), motion[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return {**scale, **{f"net.{name}": value for name, value in network.state_dict().items()}}


def load(path: Path, stages: tuple[str, ...]) -> DiffusionPolicy:
    """Return a policy that was trained; only tensors are loaded."""
    return DiffusionPolicy(torch.load(path, weights_only=True), stages)
