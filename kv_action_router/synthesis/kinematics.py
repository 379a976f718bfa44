"""Moving the end of a motion in space: a few Newton steps on the Jacobian from where it ends."""

from __future__ import annotations

from typing import Protocol

import numpy as np

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
    axis = 0.5 * np.array(
        [
            rotation[2, 1] - rotation[1, 2],
            rotation[0, 2] - rotation[2, 0],
            rotation[1, 0] - rotation[0, 1],
        ]
    )
    sine = float(np.sqrt(axis @ axis))
    cosine = 0.5 * (float(np.trace(rotation)) - 1.0)
    if sine < 1.0e-9:
        return axis
    return axis * (float(np.arctan2(sine, cosine)) / sine)


def rotation_about(vector: FloatArray) -> FloatArray:
    """Return the rotation (3, 3) of a vector [rad] (3,), by Rodrigues' formula."""
    angle = float(np.sqrt(vector @ vector))
    if angle < 1.0e-12:
        return np.eye(3)
    x, y, z = vector / angle
    skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    turned: FloatArray = np.eye(3) + np.sin(angle) * skew + (1.0 - np.cos(angle)) * (skew @ skew)
    return turned


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
        error[:3] = position - present
        error[3:] = rotation_vector(rotation @ turned.T)
        if np.abs(error).max() < TOLERANCE:
            return q
        jacobian = model.jacobian(q)
        normal = jacobian @ jacobian.T
        normal.flat[::7] += DAMPING
        step = jacobian.T @ np.linalg.solve(normal, error)
        largest = float(np.abs(step).max())
        q += step * min(1.0, STEP_LIMIT / max(largest, 1.0e-12))
    raise ReanchorError(
        f"end cannot be moved to {np.round(position, 4).tolist()} m by a local correction:"
        f" {float(np.abs(error).max()):.4f} m or rad remain after {ITERATIONS} steps"
    )


def shifted_end(model: ArmKinematics, end: FloatArray, displacement: FloatArray) -> FloatArray:
    """Return the joint positions (n,) that move the tip [m] (3,) and keep its rotation.

    Raises:
        ReanchorError: as :func:`solve_near`.
    """
    position, rotation = model.forward(end)
    return solve_near(model, position + displacement, rotation, end)
