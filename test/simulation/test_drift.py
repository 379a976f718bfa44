"""The work-pieces of a shift: drawn once, in reach, drifting."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from kv_action_router.errors import ConfigError
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.drift import Workpiece, workpieces


def drawn(pieces: tuple[Workpiece, ...]) -> list[list[float]]:
    """Return all numbers of work-pieces; NaN as -1, so that they can be compared."""
    rows = [
        [*piece.position, *piece.tint, piece.pallet, piece.interrupted_after, *piece.moved_to]
        for piece in pieces
    ]
    return np.nan_to_num(np.array(rows), nan=-1.0).tolist()


def test_the_same_seed_draws_the_same_shift_and_another_seed_another() -> None:
    assert drawn(workpieces(60, 3)) == drawn(workpieces(60, 3))
    assert drawn(workpieces(60, 3)) != drawn(workpieces(60, 4))


def test_all_pieces_are_in_reach() -> None:
    robot = RobotModel.load("ur5e")
    for piece in workpieces(500, 1)[::10]:
        for place in (piece.position, piece.moved_to):
            robot.solve_ik(place)  # raises if it is not
            robot.solve_ik(place + np.array([0.0, 0.0, 0.06]))


def test_place_height_light_and_surface_change_over_the_shift() -> None:
    pieces = workpieces(500, 1)
    places = np.array([piece.position for piece in pieces])
    light = np.array([piece.tint.max() for piece in pieces])
    assert pieces[-1].pallet >= 10
    assert np.ptp(places[:, 0]) > 0.08
    assert np.ptp(places[:, 1]) > 0.15
    assert np.ptp(places[:, 2]) == pytest.approx(0.036)
    assert light.min() < 0.6 * light.max()
    for piece, following in itertools.pairwise(pieces):
        if following.pallet == piece.pallet:  # a pallet is emptied from the top
            assert following.position[2] <= piece.position[2]


def test_somebody_reaches_in_or_takes_a_piece_away_now_and_then() -> None:
    pieces = workpieces(500, 1)
    disturbed = [piece for piece in pieces if not math.isnan(piece.interrupted_after)]
    moved = [piece for piece in disturbed if math.dist(piece.moved_to, piece.position) > 0.05]
    canceled = [piece for piece in pieces if not math.isnan(piece.canceled_after)]
    assert 25 < len(disturbed) < 90
    assert 25 < len(canceled) < 90
    assert not {id(piece) for piece in disturbed} & {id(piece) for piece in canceled}
    assert 0.25 < len(moved) / len(disturbed) < 0.75


def test_one_drive_gets_too_hot_and_cools_down() -> None:
    temperatures = [piece.temperature for piece in workpieces(100, 1)]
    assert max(temperatures) > 70.0
    assert temperatures[0] < 50.0
    assert temperatures[-1] < 50.0


def test_a_shift_without_cycles_is_refused() -> None:
    with pytest.raises(ConfigError, match="cycles must be at least 1, got 0"):
        workpieces(0, 1)
