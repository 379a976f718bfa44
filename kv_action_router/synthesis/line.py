"""A straight line of the tool's tip as a path in joint space."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from scipy.interpolate import BSpline, make_interp_spline

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import ReanchorError, UnreachableError
from kv_action_router.synthesis.basis import DEGREE, taylor
from kv_action_router.synthesis.kinematics import (
    ArmKinematics,
    rotation_about,
    rotation_vector,
    solve_near,
)
from kv_action_router.synthesis.pieces import Pieces

FEWEST_POINTS = 6  # for the path's polynomial of degree 5
POINT_DISTANCE = 0.03  # [m] between way-points on longer lines
LARGEST_STEP = 0.5  # [rad] between two way-points; more means that the arm changes its branch


class LineRobot(ArmKinematics, Protocol):
    """Kinematics with position limits."""

    lower: FloatArray
    upper: FloatArray


class LinePath:
    """Joint positions over the share of a straight line, 0 to 1.

    Attributes:
        length: of the line [m].
        end: joint positions at its end (n,).

    Raises:
        UnreachableError: a way-point can't be reached, or only with a jump.
    """

    def __init__(
        self, model: LineRobot, start: FloatArray, position: FloatArray, rotation: FloatArray
    ) -> None:
        """Solve the way-points from the tip's pose at ``start`` (n,) to the given one."""
        first, turned = model.forward(start)
        way = position - first
        turn = rotation_vector(rotation @ turned.T)
        self.length = float(np.sqrt(way @ way))
        count = max(FEWEST_POINTS, int(np.ceil(self.length / POINT_DISTANCE)) + 1)
        shares = _path_table(count).shares.tolist()
        points = np.empty((count, len(start)))
        points[0] = seed = np.asarray(start, dtype=float)
        for row in range(1, count):
            share = shares[row]
            if row > 2:  # the path is smooth: go on as it bends
                seed = 3.0 * (points[row - 1] - points[row - 2]) + points[row - 3]
            elif row > 1:
                seed = 2.0 * points[row - 1] - points[row - 2]
            try:
                points[row] = solve_near(
                    model, first + share * way, rotation_about(share * turn) @ turned, seed
                )
            except ReanchorError as error:
                raise UnreachableError(
                    f"line cannot be followed at {share:.0%}: {error}"
                ) from error
            if np.abs(points[row] - points[row - 1]).max() > LARGEST_STEP:
                raise UnreachableError(f"line would turn the arm over at {share:.0%}")
        self.end: FloatArray = points[-1]
        table = _path_table(count)
        self._path = Pieces(table.breaks, (table.polynomials @ points).reshape(-1, 6, len(start)))

    def positions(self, shares: FloatArray) -> FloatArray:
        """Return joint positions (m, n) at shares of the line (m,)."""
        return self._path.derivative(np.clip(shares, 0.0, 1.0), 0)

    def slope(self, share: float) -> FloatArray:
        """Return the joint positions' derivative with respect to the share (n,)."""
        return self._path.state(share)[1]


class PressedLine:
    """A line whose set-point goes on beyond its end, by what springs need to press there.

    What lies beyond is a straight way in joint space: the springs' own, along which they press in
    one direction only. Where the tip meets what is there a little earlier or later than at the
    line's end, it slides a little.

    Attributes:
        length: of the line and, along it, of what lies beyond [m].
        line: share of the length that is the line.
        end: joint positions at its end (n,).
    """

    def __init__(self, path: LinePath, end: FloatArray, beyond: float) -> None:
        """Go on to ``end`` (n,), which lies ``beyond`` the line along it [m]."""
        self.length = path.length + beyond
        self.line = path.length / self.length
        self.end = end
        self._path = path

    def positions(self, shares: FloatArray) -> FloatArray:
        """Return joint positions (m, n) at shares of the length (m,)."""
        beyond = np.clip((shares - self.line) / max(1.0 - self.line, 1.0e-9), 0.0, 1.0)[:, None]
        along = self._path.positions(np.minimum(shares / self.line, 1.0))
        return np.asarray(along + beyond * (self.end - self._path.end))

    def slope(self, share: float) -> FloatArray:
        """Return the joint positions' derivative with respect to the share (n,), on the line."""
        return np.asarray(self._path.slope(min(share / self.line, 1.0)) / self.line)


@dataclass(frozen=True, slots=True)
class _PathTable:
    """Interpolation of degree 5 at equally spaced shares; linear in the points.

    Attributes:
        shares: of the points (m,).
        breaks: ends of the spline's spans (k + 1,).
        polynomials: the spans' terms from the points (6 k, m).
    """

    shares: FloatArray
    breaks: FloatArray
    polynomials: FloatArray


@lru_cache(maxsize=64)
def _path_table(count: int) -> _PathTable:
    shares = np.linspace(0.0, 1.0, count)
    unit: BSpline = make_interp_spline(shares, np.eye(count), k=DEGREE)
    breaks = np.unique(unit.t)
    return _PathTable(shares, breaks, taylor(unit, breaks).reshape(-1, count))


def distance_from_line(
    model: ArmKinematics, positions: FloatArray, first: FloatArray, last: FloatArray
) -> float:
    """Return the largest distance [m] of the tip at positions (m, n) from a line of two points."""
    way = last - first
    length = float(np.sqrt(way @ way))
    if length < 1.0e-9:
        return 0.0
    direction = way / length
    worst = 0.0
    for q in positions:
        offset = model.forward(q)[0] - first
        offset = offset - (offset @ direction) * direction
        worst = max(worst, float(np.sqrt(offset @ offset)))
    return worst
