"""What the networks are taught with."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from kv_action_router.encoding.network.layout import (
    ANSWERS,
    CLOSEUP,
    CLOSEUP_MAP,
    HEADING,
    HEADING_SPREAD,
    OVERVIEW_MAP,
    PRESENT,
    SPREAD,
)

HIDDEN, SHOWN = 0.08, 0.22  # share of the face: below it is not there, above it is
_BLOB = 0.9  # [cells] standard deviation of a place on the overview's map
_TEMPERATURE = 0.1  # of the contrast between scenes
_EXACT, _EXACT_TURN = 5e-4, 5e-3  # errors that are as good as none [cut-out widths], [rad]


def likely_loss(logits: Tensor, spot: Tensor, visible: Tensor) -> Tensor:
    """Return the focal loss of a map of places, as CenterNet (Zhou et al. 2019) has it.

    Args:
        logits: (n, 1, rows, columns).
        spot: row and column of the target (n, 2).
        visible: share of its face (n,); what is neither hidden nor shown does not count nearby.
    """
    rows = torch.arange(OVERVIEW_MAP[0]).view(1, -1, 1)
    columns = torch.arange(OVERVIEW_MAP[1]).view(1, 1, -1)
    square = (rows - spot[:, :1, None]) ** 2 + (columns - spot[:, 1:, None]) ** 2
    blob = torch.exp(-0.5 * square / _BLOB**2)
    blob = blob * (visible > HIDDEN).view(-1, 1, 1)
    unsure = ((visible > HIDDEN) & (visible < SHOWN)).view(-1, 1, 1) & (blob > 0.01)
    weight = (~unsure).float()
    logits = logits[:, 0]
    error = functional.binary_cross_entropy_with_logits(logits, blob, reduction="none")
    surprise = (torch.sigmoid(logits) - blob).abs() ** 2
    return (error * surprise * weight).sum() / len(spot)


def scene_loss(scene: Tensor, number: Tensor) -> Tensor:
    """Return the contrast between looks at one scene and at others (Khosla et al. 2020).

    Args:
        scene: of unit norm (n, 24).
        number: of the scene (n,).
    """
    likeness = scene @ scene.T
    oneself = torch.eye(len(scene), dtype=torch.bool)
    same = (number[:, None] == number[None, :]) & ~oneself
    scores = (likeness / _TEMPERATURE).masked_fill(oneself, -1e9)
    share = scores - torch.logsumexp(scores, dim=1, keepdim=True)
    contrast = -(share * same).sum() / same.sum().clamp(min=1)
    apart = ((1.0 - likeness) * same).sum() / same.sum().clamp(min=1)
    return contrast + 4.0 * apart


def closeup_loss(
    outputs: tuple[Tensor, Tensor, Tensor, Tensor],
    place: Tensor,
    face: Tensor,
    visible: Tensor,
    heading: Tensor,
    fold: int,
) -> dict[str, Tensor]:
    """Return the parts of the close-up's loss.

    Args:
        outputs: of ``CloseupNetwork.logits``.
        place: of the center, in cut-out widths (n, 2).
        face: share of each cell that shows the face (n, 1, 24, 24).
        visible: share of the face (n,); 0 = something else is looked at.
        heading: sine and cosine (n, 2).
        fold: of the heading; 0 = there is none.
    """
    found, center, faces, answers = outputs
    assert answers.shape[1] == ANSWERS
    shown, hidden = visible > SHOWN, visible < HIDDEN
    present = functional.binary_cross_entropy_with_logits(
        answers[:, PRESENT], shown.float(), reduction="none"
    )
    parts = {"present": (present * (shown | hidden)).mean()}
    inside = shown & (place.abs() < 0.5).all(dim=1)
    count = inside.sum().clamp(min=1)
    error = ((found - place).abs() * inside[:, None]).sum() / count
    parts["place"] = 20.0 * error
    # a Laplace distribution forgives outliers; the error itself is trained by the part above
    apart = (found.detach() - place).abs()
    likelihood = _likelihood(apart, answers[:, SPREAD], _EXACT)
    parts["spread"] = 0.1 * (likelihood * inside[:, None]).sum() / count
    parts["center"] = 0.3 * (_center(center, place) * inside).sum() / count
    parts["face"] = functional.binary_cross_entropy_with_logits(faces, face)
    if fold:
        turn = answers[:, HEADING]
        parts["heading"] = ((turn - heading).abs().sum(1) * inside).sum() / count
        told = torch.atan2(turn[:, 0], turn[:, 1]).detach()
        off = torch.atan2(heading[:, 0], heading[:, 1]) - told
        off = torch.atan2(torch.sin(off), torch.cos(off)).abs()
        likely = _likelihood(off, answers[:, HEADING_SPREAD], _EXACT_TURN)
        parts["turn"] = 0.1 * (likely * inside).sum() / count
    return parts


def _likelihood(error: Tensor, spread: Tensor, least: float) -> Tensor:
    """Return the negative logarithm of a Laplace distribution's density, but for a constant.

    Args:
        error: absolute.
        spread: logarithm of the distribution's scale.
        least: added to the error, so that no scale pays that is far below it.
    """
    return (error + least) * torch.exp(-spread) + spread


def _center(logits: Tensor, place: Tensor) -> Tensor:
    """Return the cross entropy of the center's map with a narrow blob at the place (n,)."""
    along = (torch.arange(CLOSEUP_MAP) * 2 + 0.5 - (CLOSEUP - 1) / 2) / CLOSEUP
    wide = 1.0 / CLOSEUP_MAP  # a cell
    down = torch.exp(-0.5 * ((along - place[:, 1:]) / wide) ** 2)
    across = torch.exp(-0.5 * ((along - place[:, :1]) / wide) ** 2)
    blob = (down[:, :, None] * across[:, None, :]).flatten(1)
    blob = blob / blob.sum(1, keepdim=True).clamp(min=1e-6)
    return -(blob * torch.log_softmax(logits, dim=1)).sum(1)
