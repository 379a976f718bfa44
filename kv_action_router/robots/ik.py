"""Inverse kinematics of the tool tip: damped Newton from the seed."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pinocchio as pin
from scipy.linalg.lapack import dposv

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import UnreachableError
from kv_action_router.robots.kinematics import Kinematics

TOLERANCE = 1e-6  # [m] and [rad]; a Newton step costs less than a looser answer would later
ITERATIONS = 40
STEP_LIMIT = 0.4  # [rad] largest change of one joint in one step: a step must not change the branch
DAMPING_FLOOR = 1e-9
PATIENCE = 6  # steps after which the error must have fallen noticeably
RANDOM_SEEDS = 2  # tried after the seed and home


def solve_ik(
    kinematics: Kinematics,
    target_position: FloatArray,
    rotation: FloatArray | None,
    seed: FloatArray,
    home: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> FloatArray:
    """Return joint positions [rad] (n,) that put the tool tip at a pose.

    Levenberg-Marquardt with the damping of Sugihara, "Solvability-unconcerned inverse kinematics
    by the Levenberg-Marquardt method" (IEEE T-RO 2011): half the squared error plus a floor, so
    that it neither jumps at singularities nor slows down near the solution. Tries the seed, then
    home, then a few fixed random positions.

    Args:
        target_position: [m] (3,), base frame.
        rotation: of the tip (3, 3); None = tool down, turn about its axis free.
        seed: where to start [rad] (n,).
        home: second start [rad] (n,).
        lower: [rad] (n,).
        upper: [rad] (n,).

    Raises:
        UnreachableError: no start converged inside the limits; the message names the error left.
    """
    target = np.asarray(target_position, dtype=float)
    if target.shape != (3,) or not np.isfinite(target).all():
        raise UnreachableError(f"target position must be 3 finite numbers, got {target_position!r}")
    best = math.inf
    for start in _starts(seed, home, lower, upper):
        q, error = _descend(kinematics, target, rotation, start, lower, upper)
        if error <= TOLERANCE:
            return q
        best = min(best, error)
    x, y, z = target
    raise UnreachableError(
        f"tip cannot reach x {x:.3f}, y {y:.3f}, z {z:.3f} m inside joint limits: "
        f"an error of {best:.4f} m or rad remains"
    )


def _starts(
    seed: FloatArray, home: FloatArray, lower: FloatArray, upper: FloatArray
) -> Iterator[FloatArray]:
    yield np.clip(seed, lower, upper)
    yield np.clip(home, lower, upper)
    generator = np.random.default_rng(0)  # fixed: the same target gives the same answer
    low, high = np.maximum(lower, -math.pi), np.minimum(upper, math.pi)
    for _ in range(RANDOM_SEEDS):
        yield generator.uniform(np.minimum(low, high), high)


def _descend(
    kinematics: Kinematics,
    target: FloatArray,
    rotation: FloatArray | None,
    start: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> tuple[FloatArray, float]:
    """Return the last position and its error, largest component [m or rad]."""
    q = np.array(start, dtype=float)
    rows = 6 if rotation is not None else 5  # the turn about the base frame's z is free
    error = np.zeros(rows)
    checkpoint = math.inf
    for step in range(ITERATIONS):
        position, present, jacobian = kinematics.forward_and_jacobian(q)
        error[:3] = target - position
        if rotation is None:
            error[3:] = _turn_down(present[:, 2])
        else:
            error[3:] = pin.log3(rotation @ present.T)
        largest = float(np.abs(error).max())
        if largest <= TOLERANCE:
            return q, largest
        if step % PATIENCE == PATIENCE - 1:
            if largest > 0.7 * checkpoint:
                break
            checkpoint = largest
        used = jacobian[:rows]
        damping = 0.5 * float(error @ error) + DAMPING_FLOOR
        change = _damped_step(used, damping, error)
        # A joint at its limit that wants to leave it gets no share of the step.
        blocked = ((q <= lower) & (change < 0.0)) | ((q >= upper) & (change > 0.0))
        if blocked.any():
            used = used * ~blocked
            change = _damped_step(used, damping, error)
        change *= min(1.0, STEP_LIMIT / max(float(np.abs(change).max()), 1e-12))
        q += change
        np.maximum(q, lower, out=q)
        np.minimum(q, upper, out=q)
    return q, largest


def _damped_step(jacobian: FloatArray, damping: float, error: FloatArray) -> FloatArray:
    """Return the step (n,) that least squares with damping takes against an error (rows,)."""
    normal = jacobian @ jacobian.T
    normal.flat[:: len(normal) + 1] += damping
    # Positive definite by its damping: Cholesky, without the checks that cost more than it.
    _, solution, _ = dposv(normal, error)
    step: FloatArray = jacobian.T @ solution
    return step


def _turn_down(axis: FloatArray) -> tuple[float, float]:
    """Return the turn about the base frame's x and y that brings a unit axis onto -z [rad]."""
    x, y, z = axis
    sine = math.hypot(x, y)
    angle = math.atan2(sine, -z)
    if sine < 1e-9:
        return (angle, 0.0)  # straight up: any way round is as good
    return (-y * angle / sine, x * angle / sine)
