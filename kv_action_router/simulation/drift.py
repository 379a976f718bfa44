"""A working shift: where each work-piece lies, how the cell looks, and what disturbs the work.

Work-pieces come on pallets. A pallet stands somewhere near the last one, is of one of a few
materials, and carries layers of pieces, so that they lie lower and lower. The place where pallets
are put moves over the shift, and daylight goes and comes back. Now and then somebody reaches into
the cell: the arm is interrupted on its way and, every other time, finds the piece elsewhere. As
often somebody takes the piece away: the task is canceled, and the next one begins where the arm
has stopped. In the middle of the shift one drive gets too hot for a while.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import ConfigError

# Share of red, green and blue that a pallet's surface reflects, relative to the bare table.
MATERIALS: tuple[tuple[float, float, float], ...] = (
    (1.0, 1.0, 1.0),  # bare table
    (1.1, 0.9, 0.7),  # wood
    (0.75, 0.95, 1.3),  # blue crate
    (0.6, 0.6, 0.65),  # dark plastic
    (0.9, 1.1, 0.8),  # green foam
)
_PIECES = (15, 45)  # on a pallet
_LAYERS = 4
_LAYER_HEIGHT = 0.012  # [m]
_LOWEST = 0.010  # [m] top of a piece on the table
_REGION = (np.array([0.37, -0.14]), np.array([0.55, 0.14]))  # [m] in the arm's comfortable reach
_MIDDLE = np.array([0.46, 0.0])  # [m]
_WANDERING = np.array([0.04, 0.09])  # [m] of the place where pallets are put
_PALLET_SPREAD = 0.02  # [m] standard deviation of a pallet's place
_PIECE_SPREAD = 0.015  # [m] of a piece's place on its pallet
_LIGHT = (0.55, 1.1)  # dusk and noon, relative to the light that the table was described in
_FLICKER = 0.02  # standard deviation of the light from piece to piece
_INTERRUPTED, _CANCELED = 0.1, 0.1  # shares of cycles
_REACHING_IN = (0.15, 3.5)  # [s] after the cycle's beginning
_TAKING_AWAY = (0.15, 0.9)  # [s] on the way to the piece
_KNOCKED = (0.06, 0.10)  # [m] that a piece is moved by
_WARM, _HOT = 45.0, 74.0  # [degC] of the drive that gets hot
_HOT_WIDTH = 0.04  # share of the shift


@dataclass(frozen=True, slots=True)
class Workpiece:
    """One work-piece and its circumstances.

    Attributes:
        position: true center of its top face, base frame [m] (3,).
        tint: share of red, green and blue of the picture (3,).
        pallet: that it lies on, from 0.
        interrupted_after: when somebody reaches in [s]; NaN = nobody does.
        moved_to: where the piece lies then, base frame [m] (3,).
        canceled_after: when somebody takes it away [s]; NaN = nobody does.
        temperature: of the hottest drive [degC].
    """

    position: FloatArray
    tint: FloatArray
    pallet: int
    interrupted_after: float
    moved_to: FloatArray
    canceled_after: float
    temperature: float


def workpieces(cycles: int, seed: int) -> tuple[Workpiece, ...]:
    """Return the work-pieces of a shift; the same for the same arguments.

    Raises:
        ConfigError: no cycles.
    """
    if cycles < 1:
        raise ConfigError("cycles", "at least 1", cycles)
    generator = np.random.default_rng(seed)
    pieces: list[Workpiece] = []
    pallet, left, size = -1, 0, 1
    place, material = _MIDDLE, np.ones(3)
    for number in range(cycles):
        share = number / cycles
        if left == 0:
            pallet += 1
            size = left = int(generator.integers(*_PIECES, endpoint=True))
            turn = 2.0 * math.pi * share
            middle = _MIDDLE + _WANDERING * np.array([math.sin(2.0 * turn), math.sin(turn)])
            place = middle + _PALLET_SPREAD * generator.standard_normal(2)
            material = np.array(MATERIALS[int(generator.integers(len(MATERIALS)))])
        layer = (left - 1) * _LAYERS // size
        left -= 1
        position = _on_table(place + _PIECE_SPREAD * generator.standard_normal(2), layer)
        interrupted, canceled, moved_to = math.nan, math.nan, position
        disturbed = generator.random()
        if disturbed < _INTERRUPTED:
            interrupted = float(generator.uniform(*_REACHING_IN))
            if generator.random() < 0.5:
                moved_to = _knocked(position, layer, generator)
        elif disturbed < _INTERRUPTED + _CANCELED:
            canceled = float(generator.uniform(*_TAKING_AWAY))
        dusk, noon = _LIGHT
        light = noon - (noon - dusk) * math.sin(math.pi * share) ** 2
        light += _FLICKER * float(generator.standard_normal())
        heat = math.exp(-(((share - 0.5) / _HOT_WIDTH) ** 2))
        pieces.append(
            Workpiece(
                position,
                light * material,
                pallet,
                interrupted,
                moved_to,
                canceled,
                _WARM + (_HOT - _WARM) * heat,
            )
        )
    return tuple(pieces)


def _on_table(place: FloatArray, layer: int) -> FloatArray:
    low, high = _REGION
    return np.append(np.clip(place, low, high), _LOWEST + layer * _LAYER_HEIGHT)


def _knocked(position: FloatArray, layer: int, generator: np.random.Generator) -> FloatArray:
    """Return a place well away from a piece's, towards the middle rather than out of reach."""
    way = float(generator.uniform(*_KNOCKED))
    low, high = _REGION
    while True:
        angle = float(generator.uniform(0.0, 2.0 * math.pi))
        place = position[:2] + way * np.array([math.cos(angle), math.sin(angle)])
        if (place >= low).all() and (place <= high).all():
            return _on_table(place, layer)
