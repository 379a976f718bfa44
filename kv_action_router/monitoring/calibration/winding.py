"""Electrical side of one drive: resistance, its growth with temperature, and the back-EMF.

    U = R (1 + alpha (T - 25)) I + k w

k is the torque constant: in SI units, the power that a winding turns into work is U I = k w I.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kv_action_router.contracts import SLOT, Float32Array, FloatArray
from kv_action_router.monitoring.calibration.limits import (
    COEFFICIENT_BAND,
    FEWEST_INLIERS,
    FEWEST_ROWS,
    LARGEST_ERROR,
    LARGEST_RESISTANCE_ERROR,
    LARGEST_SAG,
    LEAST_CURRENT,
    LEAST_WARMING,
    RESISTANCE_BAND,
    Refusal,
    at_least,
    at_most,
    inside,
)
from kv_action_router.monitoring.calibration.regression import LinearFit, robust_fit

_REFERENCE = 25.0  # [degC]
_PRIOR = 0.5  # standard deviation of what is likely beforehand, in shares of the value in force


@dataclass(frozen=True, slots=True)
class WindingFit:
    """What the voltage told.

    Attributes:
        slots: to be taken over, by name.
        back_emf: constant of the back-EMF [V s/rad]; NaN = it was not told.
        refusals: of the resistance.
    """

    slots: dict[str, float]
    back_emf: float
    refusals: tuple[Refusal, ...]


NOT_MEASURED = WindingFit({}, math.nan, ())


def fit_winding(
    slots: Float32Array,
    voltage: FloatArray,
    current: FloatArray,
    velocity: FloatArray,
    temperature: FloatArray,
) -> WindingFit:
    """Fit one drive.

    Args:
        slots: of its execution value in force (32,).
        voltage: [V] (k,); NaN = not measured.
        current: [A] (k,).
        velocity: of the joint [rad/s] (k,).
        temperature: of the winding [degC] (k,); NaN = not measured.
    """
    told = np.isfinite(voltage) & np.isfinite(temperature)
    if not told.any():
        return NOT_MEASURED
    resistance, coefficient, constant, rated = (
        float(slots[SLOT[name]])
        for name in ("winding_resistance", "temperature_coefficient", "torque_constant",
                     "rated_current")
    )  # fmt: skip
    few = at_least("rows with a voltage", int(told.sum()), FEWEST_ROWS)
    if few:
        return WindingFit({}, math.nan, tuple(few))
    voltage, current = voltage[told], current[told]
    velocity, warming = velocity[told], temperature[told] - _REFERENCE
    load = float(np.sqrt(np.mean(np.square(current)))) / rated
    rise = float(np.ptp(np.quantile(warming, (0.02, 0.98))))
    if rise >= LEAST_WARMING:
        fit = robust_fit(
            np.column_stack((current, current * warming, velocity)),
            voltage,
            np.array([resistance, resistance * coefficient, constant]),
            _PRIOR * np.array([resistance, resistance * coefficient, constant]) + 1e-6,
        )
        cold, growth, back_emf = fit.coefficients.tolist()
        new = {"winding_resistance": cold, "temperature_coefficient": growth / cold}
    else:
        fit = robust_fit(
            np.column_stack((current * (1.0 + coefficient * warming), velocity)),
            voltage,
            np.array([resistance, constant]),
            _PRIOR * np.array([resistance, constant]) + 1e-6,
        )
        cold, back_emf = fit.coefficients.tolist()
        new = {"winding_resistance": cold}
    common = [
        *at_least("share of rows that fit the voltage", fit.inliers, FEWEST_INLIERS),
        *at_most("residual of the voltage", fit.spread, LARGEST_SAG * resistance * rated, "V"),
    ]
    seen = not common and _share(fit, -1) <= LARGEST_ERROR
    back_emf = back_emf if seen else math.nan
    idle = at_least("mean current over the rated one", load, LEAST_CURRENT)
    if idle:  # noise of the current tells more than the resistance
        return WindingFit({}, back_emf, tuple(idle))
    refusals = [
        *common,
        *at_most("error of the resistance", _share(fit, 0), LARGEST_RESISTANCE_ERROR),
        *inside("winding_resistance", cold, RESISTANCE_BAND, resistance, "ohm"),
    ]
    if len(new) > 1:
        growth = new["temperature_coefficient"]
        refusals += inside("temperature_coefficient", growth, COEFFICIENT_BAND, unit="1/K")
    return WindingFit({} if refusals else new, back_emf, tuple(refusals))


def _share(fit: LinearFit, index: int) -> float:
    """Return the standard error of a coefficient over the coefficient."""
    value = abs(float(fit.coefficients[index]))
    return float(fit.deviation[index]) / value if value > 0.0 else math.inf
