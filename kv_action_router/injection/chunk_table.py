"""A chunk, checked and rearranged for the control loop: finite, known and inside limits."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import (
    CHUNK_DURATION,
    CHUNK_PERIOD,
    CHUNK_SAMPLES,
    FloatArray,
    TrajectoryChunk,
)
from kv_action_router.errors import ChunkRefusedError
from kv_action_router.injection.chunk_bounds import DISAGREEMENT, RATIO_SLACK, ChunkBounds
from kv_action_router.injection.execution_table import Snapshot
from kv_action_router.injection.robot import JointModel

INTERFACES = ("position", "velocity")
PERIOD_NS = round(CHUNK_PERIOD * 1e9)
END_NS = (CHUNK_SAMPLES - 1) * PERIOD_NS  # from the anchor to the last sample

_POSITION_SLACK = 1e-6  # [rad] rounding of whoever planned right at a limit
_VELOCITY_SLACK = 1e-6  # [rad/s]
_AT_REST = 1e-3  # [rad/s]
_REMEMBERED = 16  # sets of column names


@dataclass(frozen=True, slots=True)
class ChunkTable:
    """Samples of one chunk in the model's joint order.

    Invariant: finite; velocities are the positions' slope; all inside the limits in force; the rows
    are C-contiguous float64.

    Attributes:
        chunk: that it was made from.
        rows: positions [rad], then velocities [rad/s], of all joints (100, 2 n).
        relative: joints that are given by velocity only; their positions count from 0.
        rests: whether the last sample has velocity 0.
    """

    chunk: TrajectoryChunk
    rows: FloatArray
    relative: tuple[bool, ...]
    rests: bool

    @property
    def velocities(self) -> FloatArray:
        """Velocities [rad/s] (100, n)."""
        return self.rows[:, len(self.relative) :]

    def accelerations(self) -> FloatArray:
        """Return the slope of the velocities [rad/s^2] (100, n)."""
        velocities = self.velocities
        slope = np.empty_like(velocities)
        np.subtract(velocities[1:], velocities[:-1], out=slope[:-1])
        slope[:-1] /= CHUNK_PERIOD
        slope[-1] = slope[-2]
        return slope


@dataclass(frozen=True, slots=True)
class _Arrangement:
    """Which column holds each joint's position, then each joint's velocity; -1 = none does."""

    order: npt.NDArray[np.intp]
    relative: tuple[bool, ...]
    complete: bool


class ChunkChecker:
    """Checks chunks for one robot.

    A few whole-array comparisons, which no NaN or infinity passes, tell what is above any doubt.
    Only the rest is looked at column by column. There the finite check comes first: a clamp would
    turn an infinity into a limit, NaN into anything.
    """

    def __init__(self, model: JointModel) -> None:
        self._names = model.joint_names
        self._continuous: list[bool] = model.continuous.tolist()
        self._lower: list[float] = model.lower.tolist()
        self._upper: list[float] = model.upper.tolist()
        self._arrangements: dict[tuple[str, ...], _Arrangement] = {}
        self._bounds = ChunkBounds(len(self._names))

    def check(self, chunk: TrajectoryChunk, limits: Snapshot) -> ChunkTable:
        """Return the chunk in the model's joint order; its columns come in any order.

        Raises:
            ChunkRefusedError: naming the column or joint, the limit and the value received.
        """
        samples = np.asarray(chunk.samples, dtype=float)
        shape = (CHUNK_SAMPLES, len(chunk.columns))
        if samples.shape != shape:
            raise ChunkRefusedError(f"samples must be of shape {shape}, got {samples.shape}")
        arrangement = self._arrangements.get(chunk.columns)
        if arrangement is not None and arrangement.complete:
            rows = samples.take(arrangement.order, axis=1)
            if limits is not self._bounds.limits:
                self._bounds.set(limits, self._lower, self._upper, self._continuous)
            if not self._bounds.hold(rows):
                self._look_closer(chunk, samples, limits)
        else:
            arrangement, rows = self._look_closer(chunk, samples, limits)
        for output in chunk.auxiliary:
            if not (math.isfinite(output.value) and 0.0 <= output.time <= CHUNK_DURATION):
                raise ChunkRefusedError(
                    f"auxiliary {output.name} must be finite and inside {CHUNK_DURATION} s, "
                    f"got {output.value} at {output.time} s"
                )
        last = rows[-1, len(self._names) :].tolist()
        rests = max(last) < _AT_REST and min(last) > -_AT_REST
        return ChunkTable(chunk, rows, arrangement.relative, rests)

    def _look_closer(
        self, chunk: TrajectoryChunk, samples: FloatArray, limits: Snapshot
    ) -> tuple[_Arrangement, FloatArray]:
        """Return the arrangement and the complete rows (100, 2 n), or name what is at fault."""
        if not np.isfinite(samples).all():
            row, column = (int(value) for value in np.argwhere(~np.isfinite(samples))[0])
            raise ChunkRefusedError(
                f"{chunk.columns[column]} must be finite, got {samples[row, column]} in sample "
                f"{row}"
            )
        arrangement = self._arrangements.get(chunk.columns)
        if arrangement is None:
            arrangement = self._arrange(chunk.columns)
        rows = samples.take(arrangement.order, axis=1)
        with np.errstate(over="ignore", invalid="ignore"):  # finite, but perhaps enormous
            if not arrangement.complete:
                _complete(rows, arrangement)
            self._check_limits(rows, arrangement.relative, limits)
        return arrangement, rows

    def _arrange(self, columns: tuple[str, ...]) -> _Arrangement:
        where: dict[str, int] = {}
        for index, column in enumerate(columns):
            joint, _, interface = column.rpartition("/")
            if joint not in self._names or interface not in INTERFACES:
                raise ChunkRefusedError(
                    f"column {column!r} is unknown; columns are joint/position and joint/velocity "
                    f"of {', '.join(self._names)}"
                )
            if column in where:
                raise ChunkRefusedError(f"column {column!r} comes twice")
            where[column] = index
        position = [where.get(f"{name}/position", -1) for name in self._names]
        velocity = [where.get(f"{name}/velocity", -1) for name in self._names]
        for name, p, v in zip(self._names, position, velocity, strict=True):
            if p < 0 and v < 0:
                raise ChunkRefusedError(f"joint {name} has neither position nor velocity")
        arrangement = _Arrangement(
            order=np.array(position + velocity),
            relative=tuple(index < 0 for index in position),
            complete=min(*position, *velocity) >= 0,
        )
        if len(self._arrangements) >= _REMEMBERED:
            self._arrangements.clear()
        self._arrangements[columns] = arrangement
        return arrangement

    def _check_limits(self, rows: FloatArray, relative: tuple[bool, ...], limits: Snapshot) -> None:
        n = len(self._names)
        step = rows[1:] - rows[:-1]
        mean = rows[1:, n:] + rows[:-1, n:]
        mean *= 0.5 * CHUNK_PERIOD
        mean -= step[:, :n]
        disagreement = (np.abs(mean).max(axis=0) / CHUNK_PERIOD).tolist()
        change = np.abs(step).max(axis=0).tolist()
        least, most = rows.min(axis=0).tolist(), rows.max(axis=0).tolist()
        for i, name in enumerate(self._names):
            bounded = not (relative[i] or self._continuous[i])
            low, high = self._lower[i], self._upper[i]
            if bounded and not (
                low - _POSITION_SLACK <= least[i] and most[i] <= high + _POSITION_SLACK
            ):
                raise ChunkRefusedError(
                    f"{name} must stay inside {low:.4f} to {high:.4f} rad, got {least[i]:.4f} to "
                    f"{most[i]:.4f}"
                )
            limit = limits.velocity_limit[i]
            speed = max(-least[n + i], most[n + i], change[i] / CHUNK_PERIOD)
            if not speed <= RATIO_SLACK * limit:
                raise ChunkRefusedError(
                    f"velocity of {name} must be at most {limit:.4f} rad/s, got {speed:.4f}"
                )
            limit = limits.acceleration_limit[i]
            if not change[n + i] <= RATIO_SLACK * limit * CHUNK_PERIOD + _VELOCITY_SLACK:
                raise ChunkRefusedError(
                    f"acceleration of {name} must be at most {limit:.4f} rad/s^2, got "
                    f"{change[n + i] / CHUNK_PERIOD:.4f}"
                )
            if not disagreement[i] <= DISAGREEMENT:
                raise ChunkRefusedError(
                    f"{name}: velocities must be the slope of the positions within "
                    f"{DISAGREEMENT} rad/s, got {disagreement[i]:.4f}"
                )


def _complete(rows: FloatArray, arrangement: _Arrangement) -> None:
    """Make positions (100, n) from velocities, or the other way round, where they are missing."""
    n = len(arrangement.relative)
    for i, relative in enumerate(arrangement.relative):
        if relative:
            speed = rows[:, n + i]
            rows[0, i] = 0.0
            rows[1:, i] = np.cumsum(0.5 * CHUNK_PERIOD * (speed[1:] + speed[:-1]))
        elif arrangement.order[n + i] < 0:
            rows[:, n + i] = np.gradient(rows[:, i], CHUNK_PERIOD)
