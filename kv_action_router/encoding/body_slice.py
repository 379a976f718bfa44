"""Body slice (16): how the robot itself stands and moves, by a fixed projection.

The inputs, each with its weight, are written one after the other; those that are not measured are
zero and named in a bit field. A fixed orthogonal projection brings them to 16 numbers, which are
scaled to norm sqrt(0.25). For n joints:

| inputs | size | weight | value |
|---|---|---|---|
| pose | 4 n | 1/sqrt(n) | sin q, cos q, sin 2q, cos 2q |
| velocity | n | 0.3/sqrt(n) | velocity / limit, within +-1 |
| duty | n | 0.15/sqrt(n) | mean PWM duty since the last key, within +-1 |
| odometry | 3 | 0.4 x confidence | tanh of x, y [m] and yaw [rad] displacement |
| orientation | 3 | 0.1 | direction of gravity in the IMU's frame |
| acceleration | 3 | 0.1 | specific force / 9.81 m/s^2, within +-2 |
| angular velocity | 3 | 0.1 | rate / 3 rad/s, within +-1 |

The same pose gives the cosine 1; the pose outweighs the rest, since it decides whether a
cached motion can start here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntFlag

import numpy as np

from kv_action_router.contracts import (
    BODY_SLICE,
    SLICE_NORMS,
    Float32Array,
    FloatArray,
    ImuSample,
)
from kv_action_router.encoding.projection import orthogonal_projection

SIZE = BODY_SLICE.stop - BODY_SLICE.start
SEED = 2027
_VELOCITY, _DUTY, _ODOMETRY, _ORIENTATION, _ACCELERATION, _RATE = (
    0.3,
    0.15,
    0.4,
    0.1,
    0.1,
    0.1,
)
_GRAVITY = 9.81  # [m/s^2]
_RATE_SCALE = 3.0  # [rad/s]


class MaskedInput(IntFlag):
    """Body inputs that were not measured (``TaskKey.MASK_*``)."""

    NONE = 0
    VELOCITY = 1
    DUTY = 2
    ODOMETRY = 4
    IMU_ORIENTATION = 8
    IMU_ACCELERATION = 16
    IMU_ANGULAR_VELOCITY = 32


_VELOCITY_BIT, _DUTY_BIT = MaskedInput.VELOCITY.value, MaskedInput.DUTY.value
_ODOMETRY_BIT, _ORIENTATION_BIT = MaskedInput.ODOMETRY.value, MaskedInput.IMU_ORIENTATION.value
_ACCELERATION_BIT = MaskedInput.IMU_ACCELERATION.value
_RATE_BIT = MaskedInput.IMU_ANGULAR_VELOCITY.value
_NOTHING = (0.0, 0.0, 0.0)
_MASKS = tuple(MaskedInput(bits) for bits in range(64))  # making one costs more than all the rest


class BodyEncoder:
    """Encodes the robot's own state. One instance a thread: the input buffer is reused."""

    def __init__(self, velocity_limit: FloatArray, spindles: Sequence[bool] = ()) -> None:
        """Prepare for joints.

        Args:
            velocity_limit: of each [rad/s] (n,).
            spindles: joints that turn a tool on its own axis (n,), empty = none: how they stand and
                turn says nothing of the situation, and is left out.
        """
        n = len(velocity_limit)
        self._limit = [float(limit) for limit in velocity_limit]
        self._nothing = [0.0] * n
        self._inputs = np.zeros(6 * n + 12)
        share = 1.0 / math.sqrt(n)
        weights = np.concatenate(
            (
                np.full(4 * n, share),
                np.full(n, _VELOCITY * share),
                np.full(n, _DUTY * share),
                np.full(3, _ODOMETRY),
                np.full(3, _ORIENTATION),
                np.full(3, _ACCELERATION),
                np.full(3, _RATE),
            )
        )
        for index, spindle in enumerate(spindles):
            if spindle:
                weights[index : 6 * n : n] = 0.0
        self._matrix = orthogonal_projection(SIZE, len(weights), SEED) * weights

    def encode(
        self,
        position: FloatArray,
        velocity: FloatArray,
        *,
        duty: Sequence[float] | FloatArray | None = None,
        displacement: FloatArray | None = None,
        odometry_confidence: float = 0.0,
        imu: ImuSample | None = None,
    ) -> tuple[Float32Array, MaskedInput]:
        """Return the slice (16,) float32 and which inputs were not measured.

        Args:
            position: [rad] (n,), finite.
            velocity: [rad/s] (n,); NaN = not measured.
            duty: -1 to 1 (n,); NaN or None = not measured.
            displacement: x, y [m], yaw [rad] (3,) over the last second; None = no odometry.
            odometry_confidence: 0 to 1.
            imu: newest sample; NaN parts = not measured.
        """
        # plain numbers: for a dozen joints they cost a fraction of as many small arrays
        angles = position.tolist()
        sine, cosine = list(map(math.sin, angles)), list(map(math.cos, angles))
        pose = sine + cosine
        pose += [2.0 * s * c for s, c in zip(sine, cosine, strict=True)]  # sin 2q
        pose += [1.0 - 2.0 * s * s for s in sine]  # cos 2q
        speed = [v / limit for v, limit in zip(velocity.tolist(), self._limit, strict=True)]
        speed, complete = _bounded(speed, 1.0)
        masked = 0 if complete else _VELOCITY_BIT
        if duty is None:
            load, complete = self._nothing, False
        else:
            load, complete = _bounded(list(map(float, duty)), 1.0)
        if not complete:
            masked |= _DUTY_BIT
        rest, missing = _motion(displacement, odometry_confidence, imu)
        inputs = self._inputs
        inputs[:] = pose + speed + load + rest
        projected = self._matrix.dot(inputs)
        # sin^2 + cos^2 = 1 for every joint: the inputs never vanish, but their projection might
        norm = max(math.sqrt(projected.dot(projected)), 1e-9)
        projected *= SLICE_NORMS["body"] / norm
        return projected.astype(np.float32), _MASKS[masked | missing]


def _motion(
    displacement: FloatArray | None, confidence: float, imu: ImuSample | None
) -> tuple[list[float], int]:
    """Return the 12 inputs from odometry and IMU, and the bits of those that are missing."""
    moved = gravity = force = rate = None
    if displacement is not None:
        moved = [confidence * math.tanh(value) for value in displacement.tolist()]
    if imu is not None:
        gravity = _gravity(imu.orientation)
        force = [value / _GRAVITY for value in imu.linear_acceleration.tolist()]
        rate = [value / _RATE_SCALE for value in imu.angular_velocity.tolist()]
    inputs: list[float] = []
    masked = 0
    for values, bound, bit in (
        (moved, 1.0, _ODOMETRY_BIT),
        (gravity, 1.0, _ORIENTATION_BIT),
        (force, 2.0, _ACCELERATION_BIT),
        (rate, 1.0, _RATE_BIT),
    ):
        if values is None:
            inputs += _NOTHING
            masked |= bit
            continue
        values, complete = _bounded(values, bound)
        inputs += values
        if not complete:
            masked |= bit
    return inputs, masked


def _bounded(values: list[float], bound: float) -> tuple[list[float], bool]:
    """Return the finite values, clipped, and zero for the rest; and whether all were finite."""
    if math.isfinite(sum(values)):  # only where all its terms are
        if max(values) <= bound and min(values) >= -bound:
            return values, True
        return [max(-bound, min(bound, value)) for value in values], True
    finite = [math.isfinite(value) for value in values]
    clipped = [
        max(-bound, min(bound, value)) if known else 0.0
        for value, known in zip(values, finite, strict=True)
    ]
    return clipped, all(finite)


def _gravity(orientation: FloatArray) -> list[float] | None:
    """Return the unit vector of gravity in the frame whose orientation is x, y, z, w."""
    x, y, z, w = orientation.tolist()
    norm = x * x + y * y + z * z + w * w
    if not (math.isfinite(norm) and norm > 0.25):
        return None
    return [
        -2.0 * (x * z - y * w) / norm,
        -2.0 * (y * z + x * w) / norm,
        (2.0 * (x * x + y * y) - norm) / norm,
    ]
