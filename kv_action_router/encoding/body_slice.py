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


class BodyEncoder:
    """Encodes the robot's own state. One instance a thread: the input buffer is reused."""

    def __init__(self, velocity_limit: FloatArray) -> None:
        """Prepare for joints with these velocity limits [rad/s] (n,)."""
        n = len(velocity_limit)
        self._n = n
        self._limit: FloatArray = np.array(velocity_limit, dtype=float)
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
        self._matrix = orthogonal_projection(SIZE, len(weights), SEED) * weights

    def encode(
        self,
        position: FloatArray,
        velocity: FloatArray,
        *,
        duty: FloatArray | None = None,
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
        n, inputs = self._n, self._inputs
        masked = MaskedInput.NONE
        np.sin(position, out=inputs[:n])
        np.cos(position, out=inputs[n : 2 * n])
        np.sin(2.0 * position, out=inputs[2 * n : 3 * n])
        np.cos(2.0 * position, out=inputs[3 * n : 4 * n])
        if not _fill(inputs[4 * n : 5 * n], velocity / self._limit, 1.0):
            masked |= MaskedInput.VELOCITY
        if not _fill(inputs[5 * n : 6 * n], duty, 1.0):
            masked |= MaskedInput.DUTY
        rest = inputs[6 * n :]
        moved = None if displacement is None else odometry_confidence * np.tanh(displacement)
        if not _fill(rest[0:3], moved, 1.0):
            masked |= MaskedInput.ODOMETRY
        if not _fill(rest[3:6], None if imu is None else _gravity(imu.orientation), 1.0):
            masked |= MaskedInput.IMU_ORIENTATION
        force = None if imu is None else imu.linear_acceleration / _GRAVITY
        if not _fill(rest[6:9], force, 2.0):
            masked |= MaskedInput.IMU_ACCELERATION
        rate = None if imu is None else imu.angular_velocity / _RATE_SCALE
        if not _fill(rest[9:12], rate, 1.0):
            masked |= MaskedInput.IMU_ANGULAR_VELOCITY
        projected = self._matrix @ inputs
        # sin^2 + cos^2 = 1 for every joint: the inputs never vanish, but their projection might
        norm = max(float(np.sqrt(projected @ projected)), 1e-9)
        return (projected * (SLICE_NORMS["body"] / norm)).astype(np.float32), masked


def _fill(place: FloatArray, values: FloatArray | None, bound: float) -> bool:
    """Write the finite values, clipped, and zero for the rest; return whether all were finite."""
    if values is None:
        place.fill(0.0)
        return False
    finite = np.isfinite(values)
    if finite.all():
        np.clip(values, -bound, bound, out=place)
        return True
    np.clip(np.where(finite, values, 0.0), -bound, bound, out=place)
    return False


def _gravity(orientation: FloatArray) -> FloatArray | None:
    """Return the unit vector of gravity in the frame whose orientation is x, y, z, w."""
    x, y, z, w = (float(value) for value in orientation)
    norm = x * x + y * y + z * z + w * w
    if not (math.isfinite(norm) and norm > 0.25):
        return None
    return (
        np.array(
            [
                -2.0 * (x * z - y * w),
                -2.0 * (y * z + x * w),
                2.0 * (x * x + y * y) - norm,
            ]
        )
        / norm
    )
