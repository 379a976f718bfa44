"""Mechanical side of one drive: torque constant and friction, from motion without load.

    k I = tau + c tanh(w / w0) + b w

tau is what gravity and inertia ask for, by the model of the arm. A joint of which they ask for too
little (one that turns about a vertical axis, the last one) tells its constant by the back-EMF.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kv_action_router.contracts import SLOT, Float32Array, FloatArray
from kv_action_router.monitoring.calibration.limits import (
    FEWEST_INLIERS,
    FEWEST_ROWS,
    FRICTION_BAND,
    FRICTION_SPEED,
    LARGEST_DISAGREEMENT,
    LARGEST_ERROR,
    LARGEST_RESIDUAL,
    LEAST_TORQUE,
    Refusal,
    at_least,
    at_most,
    inside,
)
from kv_action_router.monitoring.calibration.regression import LinearFit, robust_fit
from kv_action_router.robots.execution_values import TORQUE_CONSTANT_BAND

_PRIOR = 0.5  # standard deviation of the constant beforehand, in shares of the value in force
_FRICTION_PRIOR = 0.05  # the same of the friction, in shares of the rated torque


@dataclass(frozen=True, slots=True)
class TorqueFit:
    """What the motion told.

    Attributes:
        slots: to be taken over, by name.
        source: what told the torque constant, for people.
        refusals: why there are none.
    """

    slots: dict[str, float]
    source: str
    refusals: tuple[Refusal, ...]


def fit_torque(
    slots: Float32Array,
    data_sheet: float,
    torque: FloatArray,
    velocity: FloatArray,
    current: FloatArray,
    back_emf: float,
) -> TorqueFit:
    """Fit one drive.

    Args:
        slots: of its execution value in force (32,).
        data_sheet: torque constant that the drive began with [N m/A].
        torque: that gravity and inertia ask for [N m] (k,).
        velocity: of the joint [rad/s] (k,).
        current: [A] (k,).
        back_emf: constant of the back-EMF [V s/rad]; NaN = not told.
    """
    moves = np.abs(velocity) >= FRICTION_SPEED
    few = at_least("rows in which the joint moves", int(moves.sum()), FEWEST_ROWS)
    if few:
        return TorqueFit({}, "", tuple(few))
    torque, velocity, current = torque[moves], velocity[moves], current[moves]
    present, coulomb, viscous, width, rated_current = (
        float(slots[SLOT[name]])
        for name in ("torque_constant", "coulomb_friction", "viscous_friction",
                     "friction_velocity", "rated_current")
    )  # fmt: skip
    rated = present * rated_current
    friction = np.column_stack((-np.tanh(velocity / width), -velocity))
    loose = np.full(2, _FRICTION_PRIOR * rated)
    excitation = float(np.std(torque)) / rated
    by_torque = excitation >= LEAST_TORQUE
    if by_torque:
        fit = robust_fit(
            np.column_stack((current, friction)),
            torque,
            np.array([present, coulomb, viscous]),
            np.array([_PRIOR * present, *loose]),
        )
        constant, coulomb, viscous = fit.coefficients.tolist()
        error = float(fit.deviation[0]) / constant
    elif math.isfinite(back_emf):
        fit = robust_fit(friction, torque - back_emf * current, np.array([coulomb, viscous]), loose)
        constant, error = back_emf, 0.0
        coulomb, viscous = fit.coefficients.tolist()
    else:
        refusal = at_least("spread of the torque over the rated one", excitation, LEAST_TORQUE)
        return TorqueFit({}, "", tuple(refusal))
    refusals = [
        *_quality(fit, rated),
        *at_most("error of the torque constant", error, LARGEST_ERROR),
        *inside("torque_constant", constant, TORQUE_CONSTANT_BAND, data_sheet, "N m/A"),
        *inside("coulomb_friction", coulomb, FRICTION_BAND, rated, "N m"),
        *inside("viscous_friction", viscous, FRICTION_BAND, rated, "N m s/rad"),
    ]
    if by_torque and math.isfinite(back_emf):
        refusals += at_most(
            "disagreement of torque and back-EMF",
            abs(back_emf / constant - 1.0),
            LARGEST_DISAGREEMENT,
        )
    new = {
        "torque_constant": constant,
        "coulomb_friction": coulomb,
        "viscous_friction": viscous,
    }
    source = "torque" if by_torque else "back-EMF"
    return TorqueFit({} if refusals else new, source, tuple(refusals))


def _quality(fit: LinearFit, rated: float) -> list[Refusal]:
    return [
        *at_least("share of rows that fit the torque", fit.inliers, FEWEST_INLIERS),
        *at_most("residual of the torque", fit.spread, LARGEST_RESIDUAL * rated, "N m"),
    ]
