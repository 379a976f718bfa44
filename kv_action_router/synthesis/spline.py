"""A motion in joint space: a clamped B-spline of degree 5 over time.

``Motion`` and ``contracts.BehaviorValue`` are an inverse pair (``from_behavior``, ``to_behavior``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.interpolate import BSpline, make_interp_spline

from kv_action_router.contracts import BehaviorValue, FloatArray, Pose
from kv_action_router.errors import InputError
from kv_action_router.synthesis.basis import (
    DEGREE,
    ENDS,
    Basis,
    basis,
    taylor,
    uniform_knots,
)
from kv_action_router.synthesis.knots import SHORTEST, check_knots, made_uniform
from kv_action_router.synthesis.pieces import Pieces

HOLD_DURATION = 0.1  # [s] of a motion that stays where it is
POSITION_INTERFACE = "position"


class MotionState(NamedTuple):
    """Position [rad], velocity [rad/s] and acceleration [rad/s^2] of all joints, each (n,)."""

    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray

    @classmethod
    def at_rest(cls, position: FloatArray) -> MotionState:
        """Return a state that stands still."""
        return cls(
            np.asarray(position, dtype=float), np.zeros(len(position)), np.zeros(len(position))
        )


@dataclass(frozen=True, slots=True)
class Motion:
    """Joint positions over time, from 0 to ``duration``; before and after, it stays at its ends.

    Invariant: knots start at 0, never decrease and are clamped; all numbers are finite.

    Attributes:
        knots: [s] (m + DEGREE + 1,).
        coefficients: [rad] (m, n).
        duration: length [s].
    """

    knots: FloatArray
    coefficients: FloatArray
    _uniform: bool | None = field(default=None, repr=False, compare=False)  # None = not known yet
    duration: float = field(init=False, repr=False, compare=False)
    _pieces: Pieces | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        count = len(self.coefficients)
        if self.coefficients.ndim != 2 or count < DEGREE + 1:
            raise InputError(
                "coefficients", f"(m, n) with m at least {DEGREE + 1}", np.shape(self.coefficients)
            )
        if self.knots.shape != (count + DEGREE + 1,):
            raise InputError("knots", f"{count + DEGREE + 1} values", self.knots.shape)
        if not np.isfinite(self.coefficients).all():
            raise InputError("coefficients", "finite", "NaN or infinity")
        if not self._uniform:
            check_knots(self.knots)
        object.__setattr__(self, "duration", float(self.knots[-1]))
        object.__setattr__(self, "_pieces", None)  # made when it is first evaluated

    # --- making ---------------------------------------------------------------------------

    @classmethod
    def uniform(cls, coefficients: FloatArray, duration: float) -> Motion:
        """Make a motion on uniform knots from coefficients (m, n)."""
        if not SHORTEST <= duration < np.inf:
            raise InputError("duration", f"at least {SHORTEST} s and finite", duration)
        knots = basis(len(coefficients)).knots * duration
        return cls(knots, np.ascontiguousarray(coefficients), True)

    @classmethod
    def hold(cls, position: FloatArray, duration: float = HOLD_DURATION) -> Motion:
        """Make a motion that stays at a position (n,)."""
        point = np.asarray(position, dtype=float)
        if point.ndim != 1 or point.size == 0 or not np.isfinite(point).all():
            raise InputError("position", "finite, one value a joint", position)
        return cls.uniform(np.tile(point, (DEGREE + 1, 1)), duration)

    @classmethod
    def through(cls, waypoints: FloatArray, times: FloatArray | None = None) -> Motion:
        """Interpolate way-points (m, n), from rest to rest.

        One way-point, or only identical ones, give a hold. Between way-points the spline may
        overshoot them: judge the result with :func:`retime.inside`, which retimes or refuses.

        Args:
            waypoints: [rad].
            times: [s] (m,), starting at 0 and rising; None = equal steps of 1 s.

        Raises:
            InputError: no way-point, not finite, or times that don't rise.
        """
        points = np.atleast_2d(np.asarray(waypoints, dtype=float))
        if points.ndim != 2 or points.size == 0:
            raise InputError("waypoints", "at least one, as (m, n)", np.shape(waypoints))
        if not np.isfinite(points).all():
            raise InputError("waypoints", "finite", "NaN or infinity")
        stamps = np.arange(float(len(points))) if times is None else np.asarray(times, dtype=float)
        if stamps.shape != (len(points),) or not np.isfinite(stamps).all() or stamps[0] != 0.0:
            raise InputError("times", f"{len(points)} finite values from 0", times)
        if (np.diff(stamps) <= 0.0).any():
            raise InputError("times", "rising", times)
        if (points == points[0]).all():
            return cls.hold(points[0], max(float(stamps[-1]), HOLD_DURATION))
        still = [(1, np.zeros(points.shape[1])), (2, np.zeros(points.shape[1]))]
        spline = make_interp_spline(stamps, points, k=DEGREE, bc_type=(still, still))
        return cls(np.asarray(spline.t), np.ascontiguousarray(spline.c))

    @classmethod
    def from_behavior(cls, value: BehaviorValue, joint_names: tuple[str, ...]) -> Motion:
        """Read the position columns of a behavior value, in the order of ``joint_names``.

        Raises:
            InputError: wrong degree, size, knots, not finite, or a joint without a column.
        """
        if value.degree != DEGREE:
            raise InputError("degree", str(DEGREE), value.degree)
        columns = {name: index for index, name in enumerate(value.dimensions)}
        if len(columns) != len(value.dimensions):
            raise InputError("dimensions", "distinct", value.dimensions)
        if np.shape(value.coefficients)[1:] != (len(columns),):
            raise InputError("coefficients", f"(m, {len(columns)})", np.shape(value.coefficients))
        wanted = [f"{joint}/{POSITION_INTERFACE}" for joint in joint_names]
        missing = [name for name in wanted if name not in columns]
        if missing:
            raise InputError("dimensions", f"complete, with {', '.join(missing)}", value.dimensions)
        order = [columns[name] for name in wanted]
        knots = np.asarray(value.knots, dtype=float)
        coefficients = np.ascontiguousarray(value.coefficients[:, order], dtype=float)
        return cls(knots, coefficients, _uniform=made_uniform(knots, len(coefficients)) or None)

    def to_behavior(
        self, subtask: str, joint_names: tuple[str, ...], target: Pose | None
    ) -> BehaviorValue:
        """Write the motion as a behavior value that has not begun."""
        return BehaviorValue(
            subtask=subtask,
            dimensions=tuple(f"{joint}/{POSITION_INTERFACE}" for joint in joint_names),
            degree=DEGREE,
            knots=self.knots,
            coefficients=self.coefficients,
            phase=0.0,
            decay=np.ones(len(joint_names)),
            target=target,
        )

    # --- reading --------------------------------------------------------------------------

    @property
    def start(self) -> FloatArray:
        """First position (n,) [rad]."""
        first: FloatArray = self.coefficients[0]
        return first

    @property
    def end(self) -> FloatArray:
        """Last position (n,) [rad]."""
        last: FloatArray = self.coefficients[-1]
        return last

    def derivative(self, times: FloatArray | float, order: int) -> FloatArray:
        """Return a derivative (0 = position) at times [s]: (m, n), or (n,) for one time."""
        rows = np.atleast_1d(np.asarray(times, dtype=float))
        values = self.pieces().derivative(np.clip(rows, 0.0, self.duration), order)
        if order:
            values[(rows < 0.0) | (rows > self.duration)] = 0.0
        return values if np.ndim(times) else values[0]

    def position(self, time: float) -> FloatArray:
        """Return the position (n,) at one time [s]."""
        if time >= self.duration:
            return self.end
        return self.pieces().value(max(time, 0.0))

    def state(self, time: float) -> MotionState:
        """Return position, velocity and acceleration at one time [s]."""
        state = self.pieces().state(min(max(time, 0.0), self.duration))
        if not 0.0 <= time <= self.duration:
            state[1:] = 0.0
        return MotionState(state[0], state[1], state[2])

    def sample(self, times: FloatArray, samples: FloatArray) -> None:
        """Write positions and velocities side by side (m, 2 n) for rising times [s] (m,)."""
        inside = len(times)
        if times[-1] > self.duration:
            inside = int(times.searchsorted(self.duration, side="right"))
        outside = int(times.searchsorted(0.0)) if times[0] < 0.0 else 0
        size = self.coefficients.shape[1]
        if inside > outside:
            self.pieces().sample(times[outside:inside], samples[outside:inside])
        for rows, point in ((samples[:outside], self.start), (samples[inside:], self.end)):
            if len(rows):
                rows[:, :size], rows[:, size:] = point, 0.0

    def pieces(self) -> Pieces:
        """Return its polynomials."""
        pieces = self._pieces
        if pieces is None:
            pieces = _pieces_of(self)
            object.__setattr__(self, "_pieces", pieces)
        return pieces

    # --- uniform form ---------------------------------------------------------------------

    def is_uniform(self) -> bool:
        """Say whether the knots are uniform, so that the tables of ``basis`` apply."""
        if self._uniform is None:
            table = uniform_table(len(self.coefficients))
            uniform = bool(np.abs(self.knots - table.knots * self.duration).max() < 1.0e-9)
            object.__setattr__(self, "_uniform", uniform)
        return bool(self._uniform)

    def remainder(self, time: float, size: int) -> Motion:
        """Return what is left after a time [s], on uniform knots with ``size`` coefficients.

        Position, velocity and acceleration are exact at both ends; in between it is a
        least-squares fit on knots at least as fine as this motion's own.
        """
        begin = min(max(time, 0.0), self.duration)
        length = self.duration - begin
        if length < SHORTEST:
            return Motion.hold(self.end)
        table = uniform_table(size)
        first, last = self.state(begin), self.state(self.duration)
        scale = np.array([[1.0], [length], [length * length]])
        coefficients = table.fit(
            self.derivative(begin + table.samples * length, 0),
            np.array(first) * scale,
            np.array(last) * scale,
        )
        return Motion.uniform(coefficients, length)

    def uniform_form(self, size: int) -> Motion:
        """Return this motion itself when its knots are uniform, else its fit on uniform knots."""
        return self if self.is_uniform() else self.remainder(0.0, size)


def uniform_table(size: int) -> Basis:
    """Return the tables for a number of coefficients."""
    return basis(size)


def fit_motion(
    positions: FloatArray, start: MotionState, end: MotionState, duration: float, size: int
) -> Motion:
    """Fit a motion to positions (l, n) at ``basis(size).samples``, with exact end states."""
    scale = np.array([[1.0], [duration], [duration * duration]])
    coefficients = basis(size).fit(positions, np.array(start) * scale, np.array(end) * scale)
    return Motion.uniform(coefficients, duration)


def _pieces_of(motion: Motion) -> Pieces:
    knots, coefficients = motion.knots, motion.coefficients
    size = coefficients.shape[1]
    if motion.is_uniform():
        table = basis(len(coefficients))
        return Pieces(
            table.breaks * motion.duration,
            (table.pieces @ coefficients).reshape(-1, DEGREE + 1, size),
        )
    breaks = np.unique(knots)
    spline = BSpline(knots, coefficients, DEGREE)
    return Pieces(breaks, taylor(spline, breaks))


__all__ = [
    "DEGREE",
    "ENDS",
    "Motion",
    "MotionState",
    "fit_motion",
    "uniform_knots",
]
