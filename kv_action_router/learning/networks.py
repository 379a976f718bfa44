"""The two networks in torch. Batch normalization helps training and is folded away afterwards."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from kv_action_router.encoding.network.layout import (
    ANSWERS,
    CLOSEUP,
    CLOSEUP_CELL,
    CLOSEUP_MAP,
    HEADING_SPREAD,
    PLANES,
    SCENE_SIZE,
    SPREAD,
)

_EMPTY = 1e-6


class Block(nn.Module):
    """Convolution, normalization while training, ReLU."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1, size: int = 3) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, size, stride, size // 2)
        self.norm: nn.Module = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return features (n, outputs, rows / stride, columns / stride)."""
        return torch.relu(self.norm(self.conv(x)))

    def fold(self) -> None:
        """Fold the normalization into the convolution; only for inference afterwards."""
        if isinstance(self.norm, nn.BatchNorm2d):
            self.conv = nn.utils.fuse_conv_bn_eval(self.conv, self.norm)
            self.norm = nn.Identity()


def _larger(x: Tensor) -> Tensor:
    return nn.functional.interpolate(x, scale_factor=2.0, mode="nearest")


class OverviewNetwork(nn.Module):
    """Planes (n, 5, 120, 160) to likely places (n, 1, 30, 40) and scene (n, 24) of unit norm."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Block(PLANES, 24, 4, 7)
        self.second = Block(24, 24)
        self.down = Block(24, 32, 2)
        self.wide = Block(32, 32)
        self.back = nn.Conv2d(32, 24, 1)
        self.joined = Block(24, 24)
        self.likely = nn.Conv2d(24, 1, 1)
        self.pool = nn.AvgPool2d((3, 4))  # 15 x 20 to 5 x 5
        self.describe = nn.Linear(32 * 25, 64)
        self.scene = nn.Linear(64, SCENE_SIZE)
        nn.init.constant_(self.likely.bias, -4.0)  # places are rare

    def logits(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits of likely places, and the scene."""
        near = self.second(self.first(planes))
        far = self.wide(self.down(near))
        likely = self.likely(self.joined(near + _larger(self.back(far))))
        scene = self.scene(torch.relu(self.describe(self.pool(far).flatten(1))))
        return likely, scene / torch.sqrt((scene * scene).sum(1, keepdim=True) + _EMPTY)

    def forward(self, overview: Tensor) -> tuple[Tensor, Tensor]:
        """Return likely places as probabilities, and the scene."""
        likely, scene = self.logits(overview)
        return torch.sigmoid(likely), scene


class CloseupNetwork(nn.Module):
    """Planes (n, 5, 48, 48) to the center's place (n, 2), the face (n, 1, 24, 24) and answers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Block(PLANES, 24, 2, 5)
        self.second = Block(24, 24)
        self.down = Block(24, 32, 2)
        self.wide = Block(32, 32)
        self.lower = Block(32, 48, 2)
        self.back_lower = nn.Conv2d(48, 32, 1)
        self.joined_lower = Block(32, 32)
        self.back = nn.Conv2d(32, 24, 1)
        self.joined = Block(24, 24)
        self.maps = nn.Conv2d(24, 2, 1)  # center, face
        self.pool = nn.AvgPool2d(2)  # 6 x 6 to 3 x 3
        self.describe = nn.Linear(48 * 9, 64)
        self.answers = nn.Linear(64, ANSWERS)
        with torch.no_grad():  # begin where errors will be, or the first steps are wild
            self.answers.bias[SPREAD] = -3.5
            self.answers.bias[HEADING_SPREAD] = -1.0
        middle = (CLOSEUP - 1) / 2
        along = CLOSEUP_CELL * torch.arange(CLOSEUP_MAP) + 0.5 * (CLOSEUP_CELL - 1) - middle
        grid = torch.meshgrid(along / CLOSEUP, along / CLOSEUP, indexing="ij")
        self.register_buffer("columns", grid[1].reshape(-1).float())
        self.register_buffer("rows", grid[0].reshape(-1).float())

    def logits(self, planes: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return place, logits of the center (n, 576), logits of the face, answers."""
        near = self.second(self.first(planes))
        far = self.wide(self.down(near))
        farther = self.lower(far)
        answers = self.answers(torch.relu(self.describe(self.pool(farther).flatten(1))))
        far = self.joined_lower(far + _larger(self.back_lower(farther)))
        maps = self.maps(self.joined(near + _larger(self.back(far))))
        center = maps[:, :1].flatten(1)
        weight = torch.softmax(center, dim=1)
        place = torch.stack(((weight * self.columns).sum(1), (weight * self.rows).sum(1)), dim=1)
        return place, center, maps[:, 1:], answers

    def forward(self, closeup: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return place, face as probabilities, answers."""
        place, _, face, answers = self.logits(closeup)
        return place, torch.sigmoid(face), answers


def fold(network: nn.Module) -> nn.Module:
    """Fold all normalizations of a network, in place; return it ready for inference."""
    network.eval()
    for part in network.modules():
        if isinstance(part, Block):
            part.fold()
    return network


NETWORKS: dict[str, type[nn.Module]] = {"overview": OverviewNetwork, "closeup": CloseupNetwork}
