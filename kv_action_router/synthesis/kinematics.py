"""Moving the end of a motion in space: a few Newton steps on the Jacobian from where it ends."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from scipy.linalg.lapack import dposv

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import ReanchorError

ITERATIONS = 8
TOLERANCE = 1.0e-5  # [m] and [rad]
DAMPING = 1.0e-6
STEP_LIMIT = 0.3  # [rad] a local correction stays on its branch


class ArmKinematics(Protocol):
    """What a local correction needs of a robot's model."""

    def forward(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return position [m] (3,) and rotation (3, 3) of the tool tip."""

    def jacobian(self, q: FloatArray) -> FloatArray:
        """Return the tip's Jacobian (6, n), axes of the base frame."""


def rotation_vector(rotation: FloatArray) -> FloatArray:
    """Return the vector [rad] (3,) of a rotation (3, 3), up to just below half a turn."""
    return np.array(_vector_of(rotation))


def _vector_of(rotation: FloatArray) -> tuple[float, float, float]:
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = rotation.tolist()
    x, y, z = 0.5 * (zy - yz), 0.5 * (xz - zx), 0.5 * (yx - xy)
    sine = math.sqrt(x * x + y * y + z * z)
    if sine < 1.0e-9:
        return x, y, z
    scale = math.atan2(sine, 0.5 * (xx + yy + zz - 1.0)) / sine
    return x * scale, y * scale, z * scale


def rotation_about(vector: FloatArray) -> FloatArray:
    """Return the rotation (3, 3) of a vector [rad] (3,), by Rodrigues' formula."""
    x, y, z = vector.tolist()
    angle = math.sqrt(x * x + y * y + z * z)
    if angle < 1.0e-12:
        return np.eye(3)
    x, y, z = x / angle, y / angle, z / angle
    sine, rest = math.sin(angle), 1.0 - math.cos(angle)
    return np.array(
        (
            (1.0 - rest * (y * y + z * z), rest * x * y - sine * z, rest * x * z + sine * y),
            (rest * x * y + sine * z, 1.0 - rest * (x * x + z * z), rest * y * z - sine * x),
            (rest * x * z - sine * y, rest * y * z + sine * x, 1.0 - rest * (x * x + y * y)),
        )
    )


def solve_near(
    model: ArmKinematics, position: FloatArray, rotation: FloatArray, seed: FloatArray
) -> FloatArray:
    """Return joint positions (n,) whose tip is at a pose near the seed's.

    Raises:
        ReanchorError: it did not converge: the pose is too far away, or near a singularity.
    """
    q = np.array(seed, dtype=float)
    error = np.empty(6)
    for _ in range(ITERATIONS):
        present, turned = model.forward(q)
        np.subtract(position, present, out=error[:3])
        error[3:] = _vector_of(rotation @ turned.T)
        largest = _largest(error)
        if largest < TOLERANCE:
            return q
        jacobian = model.jacobian(q)
        normal = jacobian @ jacobian.T
        normal.flat[::7] += DAMPING
        _, step, failed = dposv(normal, error)  # it is positive definite: half of LU's work
        if failed:
            break
        step = jacobian.T @ step
        length = _largest(step)
        if length > STEP_LIMIT:
            step *= STEP_LIMIT / length
        q += step
    raise ReanchorError(
        f"end cannot be moved to {np.round(position, 4).tolist()} m by a local correction:"
        f" {largest:.4f} m or rad remain after {ITERATIONS} steps"
    )


def _largest(values: FloatArray) -> float:
    """Return the largest magnitude of a few numbers; NaN if one of them is."""
    magnitudes = [abs(value) for value in values.tolist()]
    return math.nan if math.isnan(sum(magnitudes)) else max(magnitudes)


def shifted_end(model: ArmKinematics, end: FloatArray, displacement: FloatArray) -> FloatArray:
    """Return the joint positions (n,) that move the tip [m] (3,) and keep its rotation.

    Raises:
        ReanchorError: as :func:`solve_near`.
    """
    position, rotation = model.forward(end)
    return solve_near(model, position + displacement, rotation, end)
