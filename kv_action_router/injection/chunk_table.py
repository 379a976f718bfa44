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
from kv_action_router.injection.execution_table import Snapshot
from kv_action_router.injection.robot import JointModel

INTERFACES = ("position", "velocity")
PERIOD_NS = round(CHUNK_PERIOD * 1e9)
END_NS = (CHUNK_SAMPLES - 1) * PERIOD_NS  # from the anchor to the last sample

_POSITION_SLACK = 1e-6  # [rad] rounding of whoever planned right at a limit
_RATIO_SLACK = 1.01  # likewise, of velocities and accelerations
_VELOCITY_SLACK = 1e-6  # [rad/s]
_DISAGREEMENT = 0.02  # [rad/s] between the positions' slope and the velocities


@dataclass(frozen=True, slots=True)
class ChunkTable:
    """Samples of one chunk in the model's joint order.

    Invariant: finite; velocities are the positions' slope; all inside the limits that were in
    force.

    Attributes:
        chunk: that it was made from.
        position: [rad] 100 lists of n.
        velocity: [rad/s] 100 lists of n.
        relative: joints that are given by velocity only; their positions count from 0.
        velocity_array: (100, n), for checks.
        acceleration_array: (100, n) [rad/s^2], for checks.
        rests: whether the last sample has velocity 0.
    """

    chunk: TrajectoryChunk
    position: list[list[float]]
    velocity: list[list[float]]
    relative: tuple[bool, ...]
    velocity_array: FloatArray
    acceleration_array: FloatArray
    rests: bool


def check_chunk(chunk: TrajectoryChunk, model: JointModel, limits: Snapshot) -> ChunkTable:
    """Return the chunk in the model's joint order.

    Columns come in any order. The finite check comes first: a clamp would turn an infinity into a
    limit, and NaN into anything.

    Raises:
        ChunkRefusedError: naming the column or joint, the limit and the value received.
    """
    samples = np.asarray(chunk.samples)
    shape = (CHUNK_SAMPLES, len(chunk.columns))
    if samples.shape != shape:
        raise ChunkRefusedError(f"samples must be of shape {shape}, got {samples.shape}")
    if not np.isfinite(samples).all():
        row, column = (int(value) for value in np.argwhere(~np.isfinite(samples))[0])
        raise ChunkRefusedError(
            f"{chunk.columns[column]} must be finite, got {samples[row, column]} in sample {row}"
        )
    position, velocity, relative = _arrange(chunk, samples, model)
    acceleration = np.empty_like(velocity)
    with np.errstate(over="ignore", invalid="ignore"):  # finite numbers may still be enormous
        acceleration[:-1] = np.diff(velocity, axis=0) / CHUNK_PERIOD
        acceleration[-1] = acceleration[-2]
        _check_limits(model, limits, position, velocity, acceleration, np.array(relative))
    for output in chunk.auxiliary:
        if not (math.isfinite(output.value) and 0.0 <= output.time <= CHUNK_DURATION):
            raise ChunkRefusedError(
                f"auxiliary {output.name} must be finite and inside {CHUNK_DURATION} s, "
                f"got {output.value} at {output.time} s"
            )
    rests = bool((np.abs(velocity[-1]) < 1e-3).all())
    return ChunkTable(
        chunk, position.tolist(), velocity.tolist(), relative, velocity, acceleration, rests
    )


def _arrange(
    chunk: TrajectoryChunk, samples: FloatArray, model: JointModel
) -> tuple[FloatArray, FloatArray, tuple[bool, ...]]:
    where: dict[str, int] = {}
    known = set(model.joint_names)
    for index, column in enumerate(chunk.columns):
        joint, _, interface = column.rpartition("/")
        if joint not in known or interface not in INTERFACES:
            raise ChunkRefusedError(
                f"column {column!r} is unknown; columns are joint/position and joint/velocity of "
                f"{', '.join(model.joint_names)}"
            )
        if column in where:
            raise ChunkRefusedError(f"column {column!r} comes twice")
        where[column] = index
    n = len(model.joint_names)
    position, velocity = np.empty((CHUNK_SAMPLES, n)), np.empty((CHUNK_SAMPLES, n))
    relative = []
    for i, name in enumerate(model.joint_names):
        p, v = where.get(f"{name}/position"), where.get(f"{name}/velocity")
        relative.append(p is None)
        if v is not None:
            velocity[:, i] = samples[:, v]
        elif p is not None:
            velocity[:, i] = np.gradient(samples[:, p], CHUNK_PERIOD)
        else:
            raise ChunkRefusedError(f"joint {name} has neither position nor velocity")
        if p is not None:
            position[:, i] = samples[:, p]
        else:
            speed = velocity[:, i]
            position[0, i] = 0.0
            np.cumsum(0.5 * CHUNK_PERIOD * (speed[1:] + speed[:-1]), out=position[1:, i])
    return position, velocity, tuple(relative)


def _check_limits(
    model: JointModel,
    limits: Snapshot,
    position: FloatArray,
    velocity: FloatArray,
    acceleration: FloatArray,
    relative: npt.NDArray[np.bool_],
) -> None:
    names = model.joint_names
    bounded = ~(relative | model.continuous)
    outside = bounded & (
        (position.min(axis=0) < model.lower - _POSITION_SLACK)
        | (position.max(axis=0) > model.upper + _POSITION_SLACK)
    )
    if outside.any():
        i = int(np.argmax(outside))
        raise ChunkRefusedError(
            f"{names[i]} must stay inside {model.lower[i]:.4f} to {model.upper[i]:.4f} rad, got "
            f"{position[:, i].min():.4f} to {position[:, i].max():.4f}"
        )
    slope = np.diff(position, axis=0) / CHUNK_PERIOD
    fastest = np.maximum(np.abs(velocity).max(axis=0), np.abs(slope).max(axis=0))
    _check(names, "velocity", "rad/s", fastest, np.array(limits.velocity_limit))
    most = np.array(limits.acceleration_limit)
    slack = _VELOCITY_SLACK / CHUNK_PERIOD
    _check(names, "acceleration", "rad/s^2", np.abs(acceleration).max(axis=0) - slack, most)
    disagreement = np.abs(slope - 0.5 * (velocity[1:] + velocity[:-1])).max(axis=0)
    if (disagreement > _DISAGREEMENT).any():
        i = int(np.argmax(disagreement))
        raise ChunkRefusedError(
            f"{names[i]}: velocities must be the slope of the positions within {_DISAGREEMENT} "
            f"rad/s, got {disagreement[i]:.4f}"
        )


def _check(
    names: tuple[str, ...], what: str, unit: str, value: FloatArray, limit: FloatArray
) -> None:
    ratio = value / limit
    i = int(np.argmax(ratio))
    if not ratio[i] <= _RATIO_SLACK:
        raise ChunkRefusedError(
            f"{what} of {names[i]} must be at most {limit[i]:.4f} {unit}, got {value[i]:.4f}"
        )
