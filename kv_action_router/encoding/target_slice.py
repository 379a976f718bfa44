"""Target slice (16): the pose of the thing to act on, as sines and cosines that decode exactly.

Each of x, y, z is written at two wavelengths, 4 m and 1 m, and yaw at one and two cycles a turn:
eight (sin, cos) pairs of equal amplitude, so the norm is the same for every pose. The cosine of
two slices is the mean of ``cos(2 pi d / wavelength)`` over the pairs: near 1 it falls with the
square of the distance. The short wavelength makes two centimeters visible; the long one
keeps the decoding unambiguous for coordinates inside +-2 m.

Along one axis the similarity falls up to 0.5 m and rises again until 1 m, where only the long
wavelength disagrees. :func:`similarity` gives the table.
"""

from __future__ import annotations

import math

import numpy as np

from kv_action_router.contracts import SLICE_NORMS, Float32Array, FloatArray, Pose
from kv_action_router.errors import InputError

WAVELENGTHS = (4.0, 1.0)  # [m]
YAW_CYCLES = (1, 2)  # a turn
REACH = 1.95  # [m] largest coordinate that is encoded; the decoding is unambiguous below 2 m
SIZE = 16
_AMPLITUDE = SLICE_NORMS["target"] / math.sqrt(SIZE // 2)
_COARSE = 2.0 * math.pi / WAVELENGTHS[0]
_FINE = 2.0 * math.pi / WAVELENGTHS[1]


def reaches(position: FloatArray) -> bool:
    """Return whether a position [m] (3,) can be encoded."""
    return all(abs(value) <= REACH for value in position.tolist())


def encode(position: FloatArray, yaw: float) -> Float32Array:
    """Return the slice (16,): per axis sin, cos at 4 m, then at 1 m; yaw at 1 and 2 cycles.

    Args:
        position: in the robot's base frame [m] (3,).
        yaw: about the base frame's z axis [rad].

    Raises:
        InputError: a coordinate is not finite or beyond the unambiguous range.
    """
    if not math.isfinite(yaw):
        raise InputError("yaw", "finite", yaw)
    values: list[float] = []
    for axis, value in enumerate(position.tolist()):
        if not abs(value) <= REACH:
            raise InputError(f"target position {'xyz'[axis]}", f"within +-{REACH} m", value)
        for angle in (_COARSE * value, _FINE * value):
            values += (_AMPLITUDE * math.sin(angle), _AMPLITUDE * math.cos(angle))
    for angle in (yaw, 2.0 * yaw):
        values += (_AMPLITUDE * math.sin(angle), _AMPLITUDE * math.cos(angle))
    return np.array(values, dtype=np.float32)


def decode(values: Float32Array) -> tuple[FloatArray, float]:
    """Return position [m] (3,) and yaw [rad] in (-pi, pi]: the inverse of :func:`encode`.

    The long wavelength picks the period, the short one the place inside it.

    Raises:
        InputError: wrong size, not finite, or the zero slice of a key without a target.
    """
    values = np.asarray(values, dtype=float)
    if values.shape != (SIZE,):
        raise InputError("target slice", f"of shape ({SIZE},)", values.shape)
    if not np.isfinite(values).all() or not values.any():
        raise InputError("target slice", "finite and not zero", values.tolist())
    angles = np.arctan2(values[0::2], values[1::2])
    coarse = angles[0:6:2] / _COARSE
    fine = angles[1:6:2] / _FINE
    position = fine + WAVELENGTHS[1] * np.round((coarse - fine) / WAVELENGTHS[1])
    half = angles[7] / 2.0
    turns = np.round((angles[6] - half) / math.pi)
    yaw = math.remainder(float(half + math.pi * turns), 2.0 * math.pi)
    return position, yaw


def encode_pose(pose: Pose) -> Float32Array:
    """Return the slice of a pose; its roll and pitch are not written."""
    x, y, z, w = pose.orientation
    yaw = math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return encode(pose.position, yaw)


def decode_pose(values: Float32Array) -> Pose:
    """Return the pose, upright, that a slice holds."""
    position, yaw = decode(values)
    orientation = np.array([0.0, 0.0, math.sin(yaw / 2.0), math.cos(yaw / 2.0)])
    return Pose(position, orientation)


def similarity(offset: FloatArray, yaw: float = 0.0) -> float:
    """Return the cosine of two slices that differ by ``offset`` [m] (3,) and ``yaw`` [rad]."""
    offset = np.asarray(offset, dtype=float)
    total = np.cos(_COARSE * offset).sum() + np.cos(_FINE * offset).sum()
    return float((total + math.cos(yaw) + math.cos(2.0 * yaw)) / 8.0)


def similarity_table(
    distances: tuple[float, ...] = (
        0.0,
        0.005,
        0.01,
        0.02,
        0.05,
        0.1,
        0.2,
        0.3,
        0.4,
        0.5,
    ),
) -> list[tuple[float, float, float]]:
    """Return rows (distance [m], similarity along one axis, similarity along the x-y diagonal)."""
    diagonal = np.array([1.0, 1.0, 0.0]) / math.sqrt(2.0)
    return [(d, similarity(np.array([d, 0.0, 0.0])), similarity(d * diagonal)) for d in distances]
